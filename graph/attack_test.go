package graph_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// promptly is how much processor time it may take to refuse a bad request. It
// is generous, for the race detector: what it guards against takes seconds or
// minutes.
const promptly = time.Second

// doubled nests fragments, each spreading the next one twice.
func doubled(levels int) string {
	var doc strings.Builder
	doc.WriteString("{tools {items {...F0}}}")
	for i := range levels {
		fmt.Fprintf(&doc, " fragment F%d on Tool {...F%d ...F%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&doc, " fragment F%d on Tool {slug}", levels)
	return doc.String()
}

func cursorOf(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestDocumentsMadeToHurt(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	deep := func(levels int) string {
		return `{tool(slug: "x") ` + strings.Repeat(`{category {tools `, levels/2) + `{slug}` + strings.Repeat("}}", levels/2) + "}"
	}
	for name, c := range map[string]struct{ query, code, message string }{
		"doubled fragments":              {doubled(25), "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"doubled fragments, fewer":       {doubled(11), "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"identical fields":               {"{tools {items {" + strings.Repeat("slug ", 3000) + "}}}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"aliases":                        {"{tools {items {" + aliases(400) + "}}}", "QUERY_TOO_COMPLEX", "The document has more than 50 aliases."},
		"directives":                     {"{feed {release " + strings.Repeat("@include(if: true) ", 200) + "}}", "QUERY_TOO_COMPLEX", "The document has more than 50 directives."},
		"depth":                          {deep(14), "QUERY_TOO_COMPLEX", "The document has more than 12 levels of fields."},
		"cost":                           {"{tools(limit: 200) {items {comparisons {toolA {name comparisons {slug title winnerName}} toolB {name comparisons {slug title}}}}}}", "QUERY_TOO_COMPLEX", "The operation costs 112232, more than the limit of 20000: request fewer items, fields or filtered lists at once."},
		"the schema, over and over":      {"{__schema {types {fields {type {fields {type {fields {type {fields {name}}}}}}}}}}", "QUERY_TOO_COMPLEX", "The document has more than 3 nested introspection lists."},
		"fragments in a circle":          {"{feed {...A}} fragment A on Feed {...B} fragment B on Feed {...A}", "GRAPHQL_VALIDATION_FAILED", `Cannot spread fragment "A" within itself via "B".`},
		"no operation":                   {"fragment A on Feed {release}", "BAD_USER_INPUT", "The document has no operation."},
		"page 0":                         {"{tools(page: 0) {meta {total}}}", "BAD_USER_INPUT", "page must be between 1 and 1000000 (got 0)."},
		"limit 201":                      {"{tools(limit: 201) {meta {total}}}", "BAD_USER_INPUT", "limit must be between 1 and 200 (got 201)."},
		"first: -1":                      {"{toolConnection(first: -1) {totalCount}}", "BAD_USER_INPUT", "first must be between 0 and 200 (got -1)."},
		"first and last":                 {"{toolConnection(first: 1, last: 1) {totalCount}}", "BAD_USER_INPUT", "first and last cannot be used together."},
		"a cursor that is none":          {`{toolConnection(after: "%%%") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor of this list in the same order."},
		"a cursor of another list":       {`{toolConnection(after: "` + cursorOf(`{"l":"comparisons","p":["2026-01-01","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor of this list in the same order."},
		"a cursor of another order":      {`{toolConnection(after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor of this list in the same order."},
		"a cursor of the other way":      {`{toolConnection(sort: name_desc, after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor of this list in the same order."},
		"a cursor of other types":        {`{toolConnection(before: "` + cursorOf(`{"l":"tools score_desc","p":[false,"8","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor of this list in the same order."},
		"a cursor with a NUL":            {`{toolConnection(sort: name_asc, before: "` + cursorOf(`{"l":"tools name_asc","p":["a","\u0000"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor of this list in the same order."},
		"NUL in a slug":                  {`{tool(slug: "a\u0000b") {slug}}`, "BAD_USER_INPUT", "slug must not contain NUL characters."},
		"a long search":                  {`{tools(filter: {search: "` + strings.Repeat("é", 201) + `"}) {meta {total}}}`, "BAD_USER_INPUT", "filter.search must have at most 200 characters."},
		"a date that never was":          {`{tools(filter: {updatedSince: "2026-02-30"}) {meta {total}}}`, "BAD_USER_INPUT", "A Date must be an existing day in the form YYYY-MM-DD."},
		"an unknown enum value":          {`{tools(sort: best) {meta {total}}}`, "GRAPHQL_VALIDATION_FAILED", `Value "best" does not exist in "ToolSort!" enum.`},
		"a list nested without bounds":   {"{tools(filter: {categories: " + strings.Repeat("[", 200_000), "GRAPHQL_PARSE_FAILED", "exceeded maximum nesting depth of 1000"},
		"a fragment that nobody spreads": {"{__typename} fragment F on Tool {" + strings.Repeat("slug:name slug ", 900) + "}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"a long name":                    {"{" + strings.Repeat("x", 90_000) + "}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"a long argument":                {"{tools(" + strings.Repeat("x", 300) + ": 1) {meta {total}}}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"too many tokens":                {"{" + strings.Repeat("feed{release}", 2000) + "}", "GRAPHQL_PARSE_FAILED", "exceeded token limit of 4000"},
	} {
		t.Run(name, func(t *testing.T) {
			start := wait.CPU()
			answer := execute(t, e, "", c.query)
			if used := wait.CPU() - start; used > promptly {
				t.Errorf("got %v of processor time, want at most %v", used, promptly)
			}
			refusedWith(t, answer, c.code, c.message)
		})
	}
}

// However wrong a document is, the answer stays short.
func TestErrorsAreFewAndShort(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for name, query := range map[string]string{
		"fields that conflict": "{tools {items {" + strings.Repeat("slug:name ", 40) + strings.Repeat("slug ", 400) + "}}}",
		"unknown arguments":    "{feed {release(" + strings.Repeat("x:1 ", 500) + ")}}",
		"a long name":          "{" + strings.Repeat("x", 90_000) + "}",
	} {
		start := wait.CPU()
		answer := execute(t, e, "", query)
		used := wait.CPU() - start
		text, err := json.Marshal(answer.Errors)
		if err != nil || len(answer.Errors) == 0 || len(text) > 10_000 || used > promptly {
			t.Errorf("%s: got %d errors, %d bytes, %v of processor time, %v", name, len(answer.Errors), len(text), used, err)
		}
	}
}

func TestNullWhereNothingMayBeNull(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for query, message := range map[string]string{
		`query ($s: ToolSort) {tools(sort: $s) {meta {total}}}`:                                              "sort must not be null.",
		`query ($s: ToolSort) {category(slug: "code") {tools(sort: $s) {slug}}}`:                             "sort must not be null.",
		`query ($s: Int) {tools(limit: $s) {meta {total}}}`:                                                  "limit must not be null.",
		`query ($s: Int) {tools {...P}} fragment P on ToolPage {items {category {tools(limit: $s) {slug}}}}`: "limit must not be null.",
	} {
		refusedWith(t, execute(t, e, "", query, map[string]any{"s": nil}), "BAD_USER_INPUT", message)
	}
}

// A variable that is left out costs what its default does.
func TestCostOfDefaults(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	costs := map[string]int{}
	for name, query := range map[string]string{
		"left out": `query ($l: Int) {categories {tools(limit: $l) {slug name}}}`, "spelled out": `{categories {tools(limit: 10) {slug name}}}`,
	} {
		costs[name] = execute(t, e, "", query).Cost
	}
	if costs["left out"] != costs["spelled out"] || costs["left out"] < 400 {
		t.Errorf("got %v", costs)
	}
}

func aliases(n int) string {
	var fields strings.Builder
	for i := range n {
		fmt.Fprintf(&fields, "a%d:slug ", i)
	}
	return fields.String()
}

func TestVariablesOfTheWrongKind(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	many := make([]any, 70_000)
	for i := range many {
		many[i] = "code"
	}
	const query = `query ($page: Int!, $filter: ToolFilter) {tools(page: $page, filter: $filter) {meta {total}}}`
	refusedWith(t, execute(t, e, "", query, map[string]any{}), "BAD_USER_INPUT", "$page is required.")
	refusedWith(t, execute(t, e, "", `query ($sort: ToolSort!) {tools(sort: $sort) {meta {total}}}`, map[string]any{"sort": "best"}), "BAD_USER_INPUT", "$sort must be of type ToolSort!.")
	for name, variables := range map[string]map[string]any{
		"text":              {"page": "1"},
		"past 32 bits":      {"page": json.Number("4294967296")},
		"half":              {"page": json.Number("1.5")},
		"null":              {"page": nil},
		"a date of none":    {"page": json.Number("1"), "filter": map[string]any{"updatedSince": "yesterday"}},
		"one in a list":     {"page": json.Number("1"), "filter": map[string]any{"categories": []any{"code", true}}},
		"unknown field":     {"page": json.Number("1"), "filter": map[string]any{"colour": "red"}},
		"more than 65,535":  {"page": json.Number("1"), "filter": map[string]any{"categories": many}},
		"a number too high": {"page": json.Number("1"), "filter": map[string]any{"scoreMin": json.Number("1e999")}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := execute(t, e, "", query, variables)
			if len(answer.Errors) == 0 || answer.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
				t.Errorf("got %s %v", answer.Data, answer.Errors)
			}
		})
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	handler := newHandler(newExecutor(testkit.Open(t, testkit.SQLite(t))))
	post := func(body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	with := func(r *http.Request, name, value string) *http.Request { r.Header.Set(name, value); return r }
	const good = `{"query":"{__typename}"}`
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		message string
	}{
		"a large body":             {post(`{"query":"` + strings.Repeat(" ", 20<<20) + `"}`), 413, "The request body is larger than 100000 bytes."},
		"malformed, with a secret": {post(`{"query":"{feed}","password":"geheim" oops`), 400, "The body is not valid JSON."},
		"a batch":                  {post(`[` + good + `,` + good + `]`), 400, "The body must be one JSON object: batches are not supported."},
		"nothing":                  {post(``), 400, "The body is empty."},
		"null":                     {post(`null`), 400, "The body must be one JSON object: batches are not supported."},
		"a key twice":              {post(`{"query":"{__typename}","query":"{feed{release}}"}`), 400, "The body is not valid JSON."},
		"more after it":            {post(good + `{}`), 400, "The body has more after its JSON value."},
		"invalid UTF-8":            {post("{\"query\":\"{\xff}\"}"), 400, "The body is not valid JSON."},
		"no query":                 {post(`{}`), 400, "query is required."},
		"a query of numbers":       {post(`{"query":7}`), 400, "query must be a string."},
		"variables of text":        {post(`{"query":"{__typename}","variables":"x"}`), 400, "variables must be an object."},
		"a form":                   {with(post(`query={__typename}`), "Content-Type", "application/x-www-form-urlencoded"), 415, "The body must be application/json in UTF-8."},
		"another alphabet":         {with(post(good), "Content-Type", "application/json; charset=latin1"), 415, "The body must be application/json in UTF-8."},
		"a compressed body":        {with(post(good), "Content-Encoding", "gzip"), 415, "The body must not be compressed."},
		"a page":                   {with(post(good), "Accept", "text/html"), 406, "Only application/graphql-response+json and application/json are served."},
		"another method":           {httptest.NewRequest(http.MethodDelete, "/graphql", nil), 405, "The method is not allowed: use GET or POST."},
		"a query twice":            {httptest.NewRequest(http.MethodGet, "/graphql?query={a}&query={b}", nil), 400, "query must be given only once."},
		"a long address":           {httptest.NewRequest(http.MethodGet, "/graphql?query="+strings.Repeat("a", 40_000), nil), 414, "The URL is too long: use POST."},
		"a hash that is none":      {post(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`), 400, "persistedQuery must have version 1 and a sha256Hash."},
		"a hash of something else": {post(`{"query":"{__typename}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`), 400, "persistedQuery.sha256Hash must be the hash of the query."},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, c.request)
			body := recorder.Body.String()
			var answer struct {
				Data   *json.RawMessage
				Errors []struct{ Message string }
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatal(err)
			}
			if recorder.Code != c.status || len(answer.Errors) != 1 || answer.Errors[0].Message != c.message || answer.Data != nil {
				t.Errorf("%d: %s", recorder.Code, body)
			}
			if strings.Contains(body, "geheim") {
				t.Error("it repeats a secret")
			}
		})
	}
}

// FuzzHandler looks for a request that crashes the handler or is answered with
// a fault of the server.
func FuzzHandler(f *testing.F) {
	handler := newHandler(newExecutor(testkit.Open(f, testkit.SQLite(f))))
	f.Add(`{"query":"{feed {release}}"}`)
	f.Add(`{"query":"query ($n: Int!) {tools(limit: $n) {items {slug}}}","variables":{"n":3}}`)
	f.Add(`{"query":"{toolConnection(first: 1, after: \"e30\") {nodes {slug}}}","operationName":"x","extensions":{"persistedQuery":{"version":1}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		if recorder.Code >= 500 || !json.Valid(recorder.Body.Bytes()) {
			t.Errorf("%d: %s", recorder.Code, recorder.Body)
		}
	})
}
