package saved

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/core/table"
	"palmares/internal/dev/testkit"
)

// The body is the value of a single root field, or the items of its page.
func TestBodies(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, _ *store.Store, q *Queries) {
		for text, want := range map[string]struct{ start, columns, nested string }{
			"{tools(limit: 1) {items {slug c: category {label}}}}":                                          {`[{"slug":"`, "slug c.label", ""},
			"{t: tools(limit: 1) {d: items {slug}}}":                                                        {`[{"slug":"`, "slug", ""},
			"{tools(limit: 1) {meta {total} items {slug}}}":                                                 {`{"meta":{"total":`, "meta.total items", "items"},
			"{tools(limit: 1) {...P}} fragment P on ToolPage {items {...T slug}} fragment T on Tool {name}": {`[{"name":"`, "name slug", ""},
			"{toolConnection(first: 1) {nodes {slug}}}":                                                     {`[{"slug":"`, "slug", ""},
			"{toolConnection(first: 1) {edges {node {slug}}}}":                                              {`[{"slug":"`, "slug", ""},
			"{toolConnection(first: 1) {edges {node {slug} cursor}}}":                                       {`{"edges":[{"node":`, "edges", "edges"},
			"{toolConnection(first: 0) {edges {node {slug}}}}":                                              {`[]`, "slug", ""},
			"{stats {toolsTotal}}":                                                                          {`{"toolsTotal":`, "toolsTotal", ""},
			"{stats {toolsTotal} feed {credit}}":                                                            {`{"stats":{"toolsTotal":`, "stats.toolsTotal feed.credit", ""},
			`{tool(slug: "nobody") {slug}}`:                                                                 {`null`, "slug", ""},
			"{tools(limit: 1) @skip(if: true) {items {slug}}}":                                              {`null`, "slug", ""},
			"{toolConnection(first: 1) {edges @skip(if: true) {node {slug}}}}":                              {`null`, "slug", ""},
			"{toolConnection(first: 1) {edges {node @skip(if: true) {slug}}}}":                              {`[null]`, "slug", ""},
			"{tools(limit: 1) {items {slug priceHistory {price}}}}":                                         {`[{"slug":"`, "slug priceHistory", "priceHistory"},
			"{changes(first: 1) {nodes {slug fields}}}":                                                     {`[{"slug":"`, "slug fields", "fields"},
			"{changes(first: 1) {nodes {slug after}}}":                                                      {`[{"slug":"`, "slug after", "after"},
			"{changes(first: 1) {events}}":                                                                  {`{"events":[`, "events", "events"},
			`{nodes(ids: ["tool/nobody"]) {id ... on Tool {name}}}`:                                         {`[null]`, "id name", ""},
			"{categories {slug tools(limit: 1) {name}}}":                                                    {`[{"slug":"`, "slug tools", "tools"},
		} {
			compiled, err := newQuery(q.Executor, text)
			testkit.Check(t, err)
			result := q.Executor.Execute(t.Context(), graph.Request{Operation: compiled.operation})
			if p := result.Problem(); p != nil {
				t.Fatalf("%s: got %v, want a result", text, p)
			}
			body, err := compiled.bodyOf(result.Data)
			testkit.Check(t, err)
			if columns := strings.Join(compiled.columns, " "); !strings.HasPrefix(string(body), want.start) || columns != want.columns || compiled.nested != want.nested {
				t.Errorf("%s: got %.60s, columns %q, nested %q, want %+v", text, body, columns, compiled.nested, want)
			}
		}
	})
}

func TestWrite(t *testing.T) {
	objects := &query{columns: []string{"a", "b.c"}}
	values := &query{columns: []string{"v"}}
	for _, c := range []struct {
		query             *query
		body, csv, ndjson string
	}{
		{objects, `[{"a":1,"b":{"c":"x"}},{"a":null,"b":null},null]`, "a,b.c\r\n1,x\r\n,\r\n,\r\n", `{"a":1,"b":{"c":"x"}}` + "\n" + `{"a":null,"b":null}` + "\nnull\n"},
		{objects, `{"a":"=1","b":{"c":""}}`, "a,b.c\r\n'=1,\"\"\r\n", `{"a":"=1","b":{"c":""}}` + "\n"},
		{objects, `[]`, "a,b.c\r\n", ""},
		{objects, `null`, "a,b.c\r\n,\r\n", "null\n"},
		{values, `[1,"x"]`, "v\r\n1\r\nx\r\n", "1\n\"x\"\n"},
	} {
		for format, want := range map[string]string{table.CSV: c.csv, table.NDJSON: c.ndjson, formatJSON: c.body} {
			if got, err := c.query.write([]byte(c.body), format, ""); err != nil || string(got) != want {
				t.Errorf("%s as %s: got %q and %v, want %q", c.body, format, got, err, want)
			}
		}
	}
}

// Browsers get the page, which executes the query for itself.
func TestPage(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, _ *Queries) {
		const text = "query ($n: Int! = 1) {tools(limit: $n) {items {slug}}}"
		q, _ := newQueries(t, s, BuiltIn{Name: "names", Description: "Names", Text: text})
		var view *View
		var err error
		q.Page = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			view, err = q.View(r)
		})
		send := func(path, accept string) {
			view = nil
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", accept)
			q.ServeHTTP(httptest.NewRecorder(), r)
		}
		const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		send("/q/palmares/names?n=2", browser)
		if view == nil || view.Text != text || view.Name != "names" || view.Description != "Names" || view.Values["n"] != int64(2) || len(view.Parameters) != 1 ||
			strings.Join(view.Columns, " ") != "slug" || strings.Count(string(view.Body), "slug") != 2 || view.Result.Release != 1 || view.Err != nil {
			t.Errorf("got %+v, want the query with two tools", view)
		}
		for path, want := range map[string]string{"/q/palmares/names?n=x": "n must be an integer", "/q/palmares/names?n=500": "limit must be an integer from 1 to 200"} {
			if send(path, browser); view == nil || view.Result != nil || !strings.Contains(messageOf(view.Err), want) {
				t.Errorf("%s: got %+v, want %s", path, view, want)
			}
		}
		for path, accept := range map[string]string{"/q/palmares/names.json": browser, "/q/palmares/names?format=csv": browser, "/q/palmares/names": "*/*"} {
			if send(path, accept); view != nil {
				t.Errorf("%s, %s: got a page, want none", path, accept)
			}
		}
		if send("/q/palmares/unknown", browser); problem.Of(err).Code != problem.NotFound {
			t.Errorf("unknown query: got %v, want the page of an error", err)
		}
	})
}
