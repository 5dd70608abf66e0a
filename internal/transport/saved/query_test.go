package saved

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/core/table"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The body is the value of a single root field, or the items of its page.
func TestBodies(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, _ *store.Store, q *Queries) {
		for text, want := range map[string]struct{ start, columns, independent string }{
			"{tools(limit: 1) {items {slug c: category {label}}}}":                                          {`[{"slug":"`, "slug c.label", ""},
			"{t: tools(limit: 1) {d: items {slug}}}":                                                        {`[{"slug":"`, "slug", ""},
			"{tools(limit: 1) {meta {total} items {slug}}}":                                                 {`{"meta":{"total":`, "meta.total slug", ""},
			"{tools(limit: 1) {...P}} fragment P on ToolPage {items {...T slug}} fragment T on Tool {name}": {`[{"name":"`, "name slug", ""},
			"{toolConnection(first: 1) {nodes {slug}}}":                                                     {`[{"slug":"`, "slug", ""},
			"{toolConnection(first: 1) {edges {node {slug}}}}":                                              {`[{"slug":"`, "slug", ""},
			"{toolConnection(first: 1) {edges {node {slug} cursor}}}":                                       {`{"edges":[{"node":`, "node.slug cursor", ""},
			"{toolConnection(first: 0) {edges {node {slug}}}}":                                              {`[]`, "slug", ""},
			"{stats {toolsTotal}}":                                                                          {`{"toolsTotal":`, "toolsTotal", ""},
			"{stats {toolsTotal} feed {credit}}":                                                            {`{"stats":{"toolsTotal":`, "stats.toolsTotal feed.credit", ""},
			`{tool(slug: "nobody") {slug}}`:                                                                 {`null`, "slug", ""},
			"{tools(limit: 1) @skip(if: true) {items {slug}}}":                                              {`null`, "slug", ""},
			"{toolConnection(first: 1) {edges @skip(if: true) {node {slug}}}}":                              {`null`, "slug", ""},
			"{toolConnection(first: 1) {edges {node @skip(if: true) {slug}}}}":                              {`[null]`, "slug", ""},
			"{tools(limit: 1) {items {priceHistory {price} slug}}}":                                         {`[{"priceHistory":`, "slug price", ""},
			"{tools(limit: 1) {items {slug price priceHistory {price pricing}}}}":                           {`[{"slug":"`, "slug price priceHistory.price pricing", ""},
			"{changes(first: 1) {nodes {slug fields}}}":                                                     {`[{"slug":"`, "slug fields", ""},
			"{changes(first: 1) {nodes {slug after}}}":                                                      {`[{"slug":"`, "slug after", ""},
			"{changes(first: 1) {events}}":                                                                  {`{"events":[`, "events", ""},
			`{nodes(ids: ["tool/nobody"]) {id ... on Tool {name}}}`:                                         {`[null]`, "id name", ""},
			"{categories {slug tools(limit: 1) {slug name}}}":                                               {`[{"slug":"`, "slug tools.slug name", ""},
			"{a: toolGroups(by: category) {key count} b: toolGroups(by: pricing) {count key}}":              {`{"a":[`, "list key count", ""},
			"{a: toolGroups(by: category) {list: key} b: toolGroups(by: pricing) {list: key}}":              {`{"a":[`, "list list.list", ""},
			"{a: toolGroups(by: category) {key} b: toolGroups(by: pricing) {key count}}":                    {`{"a":[`, "", "a b"},
			"{categories {slug} comparisons(limit: 1) {items {slug}}}":                                      {`{"categories":[`, "", "categories comparisons.items"},
			"{tools(limit: 1) {items {slug priceHistory {price} history {score}}}}":                         {`[{"slug":"`, "", "priceHistory history"},
		} {
			compiled := check.Try(newQuery(q.Executor, text)).OK(t)
			result := q.Executor.Execute(t.Context(), graph.Request{Operation: compiled.operation})
			check.Must(t, result.Problem(), nil, "%s: want a result", text)
			body := check.Try(compiled.bodyOf(result.Data)).OK(t)
			columns, independent := "", strings.TrimSpace(strings.Join(compiled.independent[:], " "))
			if compiled.table != nil {
				columns = strings.Join(compiled.table.Columns, " ")
			}
			if !strings.HasPrefix(string(body), want.start) || columns != want.columns || independent != want.independent {
				t.Errorf("%s: got %.60s, columns %q, independent lists %q, want %+v", text, body, columns, independent, want)
			}
		}
	})
}

// Each of the panels in docs/design is one table.
func TestTwentyPanelsAreTables(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, _ *store.Store, q *Queries) {
		page := check.Try(os.ReadFile("../../../docs/design/012-twenty-panels.md")).OK(t)
		rows := regexp.MustCompile("(?m)^\\| `[a-z-]+` \\| .* \\| `(.*)` \\|$").FindAllStringSubmatch(string(page), -1)
		check.Equal(t, len(rows), 20, "panels")
		for _, row := range rows {
			compiled := check.Try(newQuery(q.Executor, row[1])).OK(t, row[1])
			check.OK(t, compiled.checkTable(), row[1])
			check.Equal(t, len(compiled.body) > 0, true, row[1])
		}
	})
}

func TestWrite(t *testing.T) {
	objects := &query{table: &table.Shape{Columns: []string{"a", "b.c"}, Root: &table.Level{Columns: map[string]int{"a": 0, "b.c": 1}}}}
	values := &query{table: &table.Shape{Columns: []string{"v"}, Root: &table.Level{Columns: map[string]int{"": 0}}}}
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
			got := check.Try(c.query.write([]byte(c.body), format, "", nil, 1<<20)).OK(t, "%s as %s", c.body, format)
			check.Equal(t, string(got), want, "%s as %s", c.body, format)
		}
	}
}

// Lists become rows, and the metrics of series become columns, even if there are no
// points.
func TestTables(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, _ *store.Store, q *Queries) {
		for _, c := range []struct {
			text      string
			variables map[string]any
			csv       string // the start
		}{
			{`{series(metrics: [count, tested], every: month) {metric points {period value}}}`, nil, "period,count,tested\r\n2026-11,48,42\r\n"},
			{`{series(metrics: count, by: tier, every: month) {key points {period start value} m: metric}}`, nil, "key,period,start,count\r\n1,2026-11,2026-11-01,"},
			{`{series(metrics: [count], every: month) {points {period value}}}`, nil, "period,value\r\n2026-11,48\r\n"},
			{`{series(metrics: [count, tested], every: month) {metric points {count: period value}}}`, nil, "metric,count,value\r\ncount,2026-11,48\r\ntested,2026-11,42\r\n"},
			{`{series(metrics: [count, tested], every: month) {metric points {period}}}`, nil, "metric,period\r\ncount,2026-11\r\ntested,2026-11\r\n"},
			{`query($m: [SeriesMetric!]! = [count]) {series(metrics: $m, every: month) {metric points {period value}}}`, nil, "period,count\r\n2026-11,48\r\n"},
			{`query($m: [SeriesMetric!]! = [count]) {series(metrics: $m, every: month) {metric points {period value}}}`,
				map[string]any{"m": []any{"tested", "count"}}, "period,tested,count\r\n2026-11,42,48\r\n"},
			{`{all: series(metrics: [count], every: month) {metric points {value}} free: series(metrics: [tested], every: month, filter: {pricings: [gratuit]}) {metric points {value}}}`,
				nil, "list,count,tested\r\nall,48,\r\nfree,,"},
			{`{series(metrics: [count], by: category, every: month, filter: {categories: ["nothing"]}) {metric key points {period value}}}`, nil, "key,period,count\r\n"},
			{`{tools(limit: 1, filter: {search: "nothing at all"}) {meta {total} items {slug}}}`, nil, "meta.total,slug\r\n"},
			{`{categories {slug toolCount tools(limit: 1, sort: name_asc) {slug}}}`, nil, "slug,toolCount,tools.slug\r\nagents,6,"},
		} {
			compiled := check.Try(newQuery(q.Executor, c.text)).OK(t)
			result := q.Executor.Execute(t.Context(), graph.Request{Operation: compiled.operation, Variables: c.variables})
			check.Must(t, result.Problem(), nil, "%s: want a result", c.text)
			body := check.Try(compiled.bodyOf(result.Data)).OK(t)
			got, err := compiled.write(body, table.CSV, "", c.variables, 1<<20)
			check.True(t, err == nil && strings.HasPrefix(string(got), c.csv),
				"%s: got %q and %v, want %q", c.text, got, err, c.csv)
			if compiled.table.IsNested() {
				lines := check.Try(compiled.write(body, table.NDJSON, "", c.variables, 1<<20)).OK(t, c.text)
				check.Equal(t, bytes.Count(lines, []byte("\n")), bytes.Count(got, []byte("\r\n"))-1, "%s: %q", c.text, string(lines))
			}
		}
	})
}

// A long value next to a long list would make the table much larger than the result.
func TestTableSize(t *testing.T) {
	inner := &table.Level{Columns: map[string]int{"b": 1}, First: 1}
	q := &query{table: &table.Shape{Columns: []string{"a", "b"}, Root: &table.Level{Columns: map[string]int{"a": 0}, Lists: []string{"l"}, Inner: inner}}}
	body := `{"a":"` + strings.Repeat("x", 10_000) + `","l":[` + strings.Repeat("{},", 10_000) + `{}]}`
	for _, format := range []string{table.CSV, table.NDJSON} {
		got, err := q.write([]byte(body), format, "", nil, 100_000)
		check.Equal(t, problem.Of(err).Code, problem.ResponseTooLarge, "%s: %d", format, len(got))
		check.True(t, len(got) <= 200_000, "%s: got %d bytes and %v, want an error soon after 100,000", format, len(got), err)
	}
}

// Browsers get the page, which executes the query for itself.
func TestPage(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, _ *Queries) {
		const text = "query ($n: Int! = 1) {tools(limit: $n) {items {slug}}}"
		q, _ := newQueries(t, s, BuiltIn{Name: "names", Description: "Names", Text: text})
		var view *View
		var err error
		send := func(path, accept string) {
			view = nil
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", accept)
			if IsPage(r) {
				view, err = q.View(r)
			}
		}
		const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		send("/q/palmares/names?n=2", browser)
		if view == nil || view.Text != text || view.Name != "names" || view.Description != "Names" || view.Values["n"] != int64(2) || len(view.Parameters) != 1 ||
			len(view.Columns) == 0 || strings.Count(string(view.Body), "slug") != 2 || view.Result.Release != 1 || view.Err != nil {
			t.Errorf("got %+v, want the query with two tools", view)
		}
		for path, want := range map[string]string{"/q/palmares/names?n=x": "n must be an integer", "/q/palmares/names?n=500": "limit must be an integer from 1 to 200"} {
			send(path, browser)
			check.MustTrue(t, view != nil, "%s: got %+v, want %s", path, view, want)
			check.Equal(t, view.Result, nil, path)
			check.Contains(t, messageOf(view.Err), want, path)
		}
		for path, accept := range map[string]string{"/q/palmares/names.json": browser, "/q/palmares/names?format=csv": browser, "/q/palmares/names": "*/*"} {
			send(path, accept)
			check.Equal(t, view, nil, "%s, %s", path, accept)
		}
		send("/q/palmares/unknown", browser)
		check.Equal(t, problem.Of(err).Code, problem.NotFound, "unknown query")
	})
}

// The text of a query suggests its title, description and chart.
func TestDraft(t *testing.T) {
	q, _ := newQueries(t, testkit.Open(t, testkit.SQLite(t)))
	for text, want := range map[string]string{
		"query BestFreeTools {tools {items {name score}}}":                                                           "Best free tools||bar name score ",
		"# Growth\n# by month\n{series(metrics: [count], every: month) {metric points {period start value}}}":        "Growth|by month|line period count ",
		"#Growth\nquery APIGrowth {series(metrics: [count, tested]) {metric points {start value}}}":                  "API growth|Growth|   ",
		"query scores_by_key {series(metrics: [mean_score], by: category) {key points {period value}}}":              "Scores by key||line period value key",
		"{stats {toolsTotal toolsTested}}":                                                                           "||tiles   ",
		"{categories {slug label}}":                                                                                  "||table   ",
		"{categories {slug toolCount}}":                                                                              "||   ",
		"{categories {slug} tools {items {name}}}":                                                                   "||   ",
		"#" + strings.Repeat("x", MaxTitle+1) + "\n{stats {toolsTotal}}":                                             "|" + strings.Repeat("x", MaxTitle+1) + "|tiles   ",
		"#" + strings.Repeat("x", MaxDescription+1) + "\nquery " + strings.Repeat("a", 101) + "{stats {toolsTotal}}": "||tiles   ",
	} {
		draft := check.Try(q.Draft(text, nil)).OK(t)
		c := draft.Chart
		check.Equal(t, draft.Title+"|"+draft.Description+"|"+strings.Join([]string{c.Kind, c.X, c.Y, c.Series}, " "), want, "%.60s", text)
		check.Equal(t, c.check(draft.Columns), nil, "%.60s", text)
	}
}

func TestChartIsChecked(t *testing.T) {
	q, _ := newQueries(t, testkit.Open(t, testkit.SQLite(t)))
	draft := check.Try(q.Draft("{tools {items {slug name score obsolescence}}}", nil)).OK(t)
	for chart, want := range map[Chart]string{
		{}: "", {Kind: Table}: "", {Kind: Tiles}: "", {Kind: Bar, X: "name", Y: "score"}: "", {Kind: Line, X: "obsolescence", Y: "score", Series: "name"}: "",
		{Kind: "pie"}:                                        "must be line, bar, tiles or table",
		{Kind: Bar, X: "name"}:                               "Choose a column for each axis",
		{Kind: Bar, X: "name", Y: "price"}:                   `no column "price" for the chart. It has these: slug, name, score, obsolescence.`,
		{Kind: Line, X: "name", Y: "score", Series: "color"}: `no column "color"`,
		{Kind: Bar, X: "score", Y: "name"}:                   `(got "name"). These have numbers: score, obsolescence.`,
		{Kind: Bar, X: "score", Y: "score"}:                  "must be different columns",
		{Kind: Line, X: "name", Y: "score", Series: "name"}:  "must be different columns",
	} {
		got := messageOf(chart.check(draft.Columns))
		check.True(t, want != "" || got == "", "%v: got %q, want %q", chart, got, want)
		check.Contains(t, got, want, chart)
	}
	check.Contains(t, messageOf(Chart{Kind: Bar, X: "a", Y: "b"}.check(nil)), "not a table", "without a table: want an error")
}

// A title and a chart belong to the name of a query. Queries that were saved before there
// were titles have one, too.
func TestTitles(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		bar := Chart{Kind: Bar, X: "name", Y: "score"}
		const text = "# Above\nquery Best {tools(limit: 2) {items {name score}}}"
		saved := check.Try(q.Save(t.Context(), owner, NewQuery{
			Name: "best", Handle: "titles", Text: text, Title: " Best tools ", Description: "One\r\n\r\ntwo ", Chart: bar, Public: true,
		})).OK(t)
		check.Equal(t, saved.Title, "Best tools")
		check.Equal(t, saved.Description, "One\n\ntwo")
		check.Equal(t, saved.Chart, bar)
		for address, want := range map[string]presentation{
			"/q/titles/best": {"Best tools", "One\n\ntwo", bar}, hashAddress(hashOf(text)): {"Best", "Above", Chart{}},
		} {
			found := check.Try(q.find(t.Context(), address, 0)).OK(t)
			check.Equal(t, found.presentation, want, address)
		}
		for search, want := range map[string]int{"best TOOLS": 1, "TWO": 1, "kind": 0, "bar": 0, "score": 0} {
			list, _, err := q.Public(t.Context(), search, 10, 0)
			check.OK(t, err, "search for %s", search)
			check.Equal(t, len(list), want, "search for %s", search)
		}
		saved = check.Try(q.Save(t.Context(), owner, NewQuery{Name: "best", Text: text, Chart: Chart{Kind: Table, X: "gone"}})).OK(t, "without a title")
		check.Equal(t, saved.Title, "Best", "without a title")
		check.Equal(t, saved.Chart, Chart{Kind: Table}, "without a title")
		for _, wrong := range []NewQuery{{Title: strings.Repeat("x", MaxTitle+1)}, {Title: "a\nb"}, {Chart: Chart{Kind: Bar, X: "name", Y: "price"}}} {
			wrong.Name, wrong.Text = "wrong", text
			check.Try(q.Save(t.Context(), owner, wrong)).Fails(t, "%+v", wrong)
		}
		check.OK(t, s.Write.SavedQuery.Update().Where(savedquery.Name("best")).SetTitle("").SetDescription("Only this").SetChart("").Exec(t.Context()))
		if old, err := q.Find(t.Context(), owner, "best"); err != nil || old.Title != "Best" || old.Description != "Only this" || old.Chart != (Chart{}) {
			t.Errorf("saved before: got %+v and %v, want a title from the name", old, err)
		}
	})
}
