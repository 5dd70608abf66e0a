package graphql_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

func TestInvalidRequests(t *testing.T) {
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
		"malformed, with a secret": {post(`{"query":"{feed}","password":"s3cret" oops`), 400, "The body is not valid JSON (line 1, column 39)."},
		"malformed in a line":      {post("{\n  \"query\": \"{feed}\",\n  \"é\": 'x'\n}"), 400, "The body is not valid JSON (line 3, column 8)."},
		"a body that ends early":   {post("{\"query\":\n\"{feed}\""), 400, "The body is not valid JSON (line 2, column 9)."},
		"no JSON":                  {post("{feed}"), 400, "The body is not valid JSON (line 1, column 2)."},
		"a batch":                  {post(`[` + good + `,` + good + `]`), 400, "The body must be a single JSON object. Batches are not supported."},
		"nothing":                  {post(``), 400, "The body is empty."},
		"null":                     {post(`null`), 400, "The body must be a single JSON object. Batches are not supported."},
		"a key twice":              {post(`{"query":"{__typename}","query":"{feed{release}}"}`), 400, "The body is not valid JSON (line 1, column 25)."},
		"more after it":            {post(good + "\n {}"), 400, "The body must end after its JSON value (line 2, column 2)."},
		"invalid UTF-8":            {post("{\"query\":\"{\xff}\"}"), 400, "The body is not valid JSON (line 1, column 12)."},
		"no query":                 {post(`{}`), 400, "query is required."},
		"a query of numbers":       {post(`{"query":7}`), 400, "query must be a string."},
		"variables of text":        {post(`{"query":"{__typename}","variables":"x"}`), 400, "variables must be an object."},
		"a form":                   {with(post(`query={__typename}`), "Content-Type", "application/x-www-form-urlencoded"), 415, "The body must be application/json in UTF-8."},
		"another charset":          {with(post(good), "Content-Type", "application/json; charset=latin1"), 415, "The body must be application/json in UTF-8."},
		"a compressed body":        {with(post(good), "Content-Encoding", "gzip"), 415, "The body must not be compressed."},
		"an HTML page":             {with(post(good), "Accept", "text/html"), 406, "Accept must allow application/graphql-response+json or application/json."},
		"another method":           {httptest.NewRequest(http.MethodDelete, "/graphql", nil), 405, "The method DELETE is not allowed; use GET, POST or QUERY."},
		"a query twice":            {httptest.NewRequest(http.MethodGet, "/graphql?query={a}&query={b}", nil), 400, "query must be given only once."},
		"variables in the URL":     {httptest.NewRequest(http.MethodGet, "/graphql?query={a}&variables={%22a%22:}", nil), 400, "variables is not valid JSON (line 1, column 6)."},
		"a long URL":               {httptest.NewRequest(http.MethodGet, "/graphql?query="+strings.Repeat("a", 40_000), nil), 414, "The URL is too long. Use POST instead."},
		"an invalid hash":          {post(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`), 400, "persistedQuery must have version 1 and a sha256Hash."},
		"a hash of another query":  {post(`{"query":"{__typename}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`), 400, "persistedQuery.sha256Hash must be the SHA-256 hash of the query."},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, c.request)
			body := recorder.Body.String()
			var result struct {
				Data   *json.RawMessage
				Errors []struct{ Message string }
			}
			check.OK(t, json.Unmarshal([]byte(body), &result))
			check.Equal(t, recorder.Code, c.status, body)
			check.Must(t, len(result.Errors), 1, body)
			check.Equal(t, result.Errors[0].Message, c.message, body)
			check.Equal(t, result.Data, nil, body)
			check.Lacks(t, body, "s3cret")
		})
	}
}

// Clients of other APIs find the field with the items of a list.
func TestItemsUnderAnotherName(t *testing.T) {
	handler := newHandler(newExecutor(testkit.Open(t, testkit.SQLite(t))))
	for query, want := range map[string]string{
		"{tools {data {slug}}}":                               `Cannot query field \"data\" on type \"ToolPage\". Did you mean \"items\"?`,
		"{tools {results {slug}}}":                            `Cannot query field \"results\" on type \"ToolPage\". Did you mean \"items\"?`,
		"{comparisons {nodes {slug}}}":                        `Cannot query field \"nodes\" on type \"ComparisonPage\". Did you mean \"items\"?`,
		"{toolConnection {items {slug}}}":                     `Cannot query field \"items\" on type \"ToolConnection\". Did you mean \"nodes\"?`,
		"{tools {items {slug} itemz}}":                        `Cannot query field \"itemz\" on type \"ToolPage\". Did you mean \"items\"?`,
		"{tools {name}}":                                      `Cannot query field \"name\" on type \"ToolPage\". Did you mean \"items { name }\"?`,
		"{toolConnection {scor}}":                             `Cannot query field \"scor\" on type \"ToolConnection\". Did you mean \"nodes { score }\"?`,
		"{changes {type}}":                                    `Cannot query field \"type\" on type \"ChangeConnection\". Did you mean \"nodes { type }\"?`,
		"{tools {mets {total}}}":                              `Cannot query field \"mets\" on type \"ToolPage\". Did you mean \"meta\"?`,
		"{tools {qqqq}}":                                      `Cannot query field \"qqqq\" on type \"ToolPage\".`,
		"{comparisonGroups(by: year) {key}}":                  `Value \"year\" does not exist in \"ComparisonGroupKey\" enum. Allowed: tool, category, month.`,
		"{tools(sort: \"name_asc\") {meta {total}}}":          `Write the value \"name_asc\" of the enum \"ToolSort\" without quotation marks.`,
		"{tools {meta {data}}}":                               `Cannot query field \"data\" on type \"PageInfoByNumber\".`,
		"{data {slug}}":                                       `Cannot query field \"data\" on type \"Query\".`,
		"{tools {...F}} fragment F on ToolPage {data {slug}}": `Cannot query field \"data\" on type \"ToolPage\". Did you mean \"items\"?`,
	} {
		body := check.Try(json.Marshal(map[string]string{"query": query})).OK(t)
		r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, r)
		check.Contains(t, got.Body.String(), `"message":"`+want+`",`, query)
	}
}

// FuzzHandler checks that no body of a GraphQL request causes a server error, and that every
// response is JSON.
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
		check.True(t, recorder.Code < 500 && json.Valid(recorder.Body.Bytes()), "got %d %s, want valid JSON and no server error", recorder.Code, recorder.Body)
	})
}

// Rejected requests leave nothing in the cache, and executed ones use a limited
// amount of memory, however hostile their documents are.
func TestCachedRequestsUseLimitedMemory(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	const budget = 8 << 20
	responses := cache.New(budget, nil, slog.New(slog.DiscardHandler))
	responses.Publish(1)
	handler := graphql.NewHandler(graphtest.New(graph.Config{
		Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Cache: responses, Tools: func() int { return 5_000 },
	}), responses, graphql.StreamConfig{})
	costly := `{"query":"{tools(limit: 200) {items {comparisons {toolA {name comparisons {slug title winnerName}} toolB {name comparisons {slug title}}}}}}"}`
	got := serve(handler, post(costly, ""))
	check.MustTrue(t, strings.Contains(got.Body.String(), "QUERY_TOO_COMPLEX"), "got %s, want a rejection", got.Body)
	check.Equal(t, responses.Entries(), 0, "items in the cache after a rejection")
	before := heap()
	for i := range 300 {
		// Dozens of long lists, which differ from request to request.
		query := fmt.Sprintf(`query Q%d($f: ToolFilter) {`, i) + repeated(40, `a%d: tools(limit: 1, filter: {categories: [`+strings.TrimSpace(strings.Repeat(`\"c\" `, 60))+`]}) {meta {total}} `) + `b: tools(limit: 1, filter: $f) {meta {total}}}`
		body := fmt.Sprintf(`{"query":"%s","variables":{"f":{"categories":[%s"x%d"]}}}`, query, strings.Repeat(`"c",`, 90), i)
		got := serve(handler, post(body, ""))
		check.Must(t, got.Code, http.StatusOK, "%.200s", got.Body)
		check.MustTrue(t, strings.Contains(got.Body.String(), `"data"`), "got %d %.200s, want data", got.Code, got.Body)
	}
	w := responses.Weight()
	check.True(t, w <= budget*11/10, "got %d bytes cached, want about %d", w, budget)
	grown := heap() - before
	check.True(t, grown <= 2*budget, "got %d more bytes on the heap, want at most %d", grown, 2*budget)
}

// Cached responses are executed again for the next release, but do not keep their parsed
// documents for that.
func TestCachedResponsesDoNotRetainDocuments(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	responses, documents := cache.New(64<<20, nil, slog.New(slog.DiscardHandler)), cache.New(1, nil, slog.New(slog.DiscardHandler))
	responses.Publish(1)
	handler := graphql.NewHandler(graphtest.New(graph.Config{Catalog: s, Cache: documents}), responses, graphql.StreamConfig{})
	const requests = 50
	before := heap()
	for i := range requests {
		query := fmt.Sprintf("query Q%d {", i) + repeated(35, `a%d: tools(filter: {categories: [`+strings.Repeat(`\"c\" `, 90)+`]}) {meta {total}} `) + "}"
		got := serve(handler, post(`{"query":"`+query+`"}`, ""))
		check.MustTrue(t, strings.HasPrefix(got.Body.String(), `{"data":{`), "got %d %.200s, want data", got.Code, got.Body)
	}
	n := responses.Entries()
	check.MustTrue(t, n >= requests, "got %d items in the cache, want at least %d", n, requests)
	grown := (heap() - before) / requests
	check.True(t, grown <= 100_000, "got %d bytes for each response, want at most 100,000", grown)
	runtime.KeepAlive(responses)
}

// heap returns the number of bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees memory that finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// repeated joins n numbered copies of a format.
func repeated(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

func TestResponseLimitOverHTTP(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	limits := graph.DefaultLimits
	limits.Response = 500
	h := newHandler(newExecutorWith(s, limits))
	for accept, status := range map[string]int{"application/graphql-response+json": http.StatusBadRequest, "application/json": http.StatusOK} {
		for _, query := range []string{"{tools {items {slug name tagline}}}", "{__schema {types {name}}}"} {
			r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(fmt.Sprintf(`{"query": %q}`, query)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			check.Equal(t, w.Code, status, "%s, %s: %s", accept, query, w.Body)
			check.Contains(t, w.Body.String(), `"RESPONSE_TOO_LARGE"`, "%s, %s", accept, query)
			check.Lacks(t, w.Body.String(), `"data"`, "%s, %s", accept, query)
		}
	}
}

// A query that takes too long is the caller's error, unless the database is
// unavailable. A timeout of the server's own operation is a server error.
func TestQueryTimeout(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		healthy := true
		var log bytes.Buffer
		limits := graph.DefaultLimits
		limits.Time = time.Nanosecond
		e := graphtest.New(graph.Config{
			Catalog: s, Limits: limits, Log: slog.New(slog.NewTextHandler(&log, nil)), Healthy: func() bool { return healthy },
		})
		check.OK(t, e.Preload(t.Context())) // callers are not blamed for waiting for the catalog
		log.Reset()
		h := newHandler(e)
		const query = `{tools {items {slug}}}`
		for _, media := range []string{"application/json", "application/graphql-response+json"} {
			got := serve(h, post(`{"query":"`+query+`"}`, media))
			if body := got.Body.String(); got.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `"code":"QUERY_TIMEOUT"`) ||
				!strings.Contains(body, "The query took longer than 1ns. Request fewer items or use simpler filters.") || got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: got %d %s, want 422 QUERY_TIMEOUT", media, got.Code, body)
			}
		}
		check.Equal(t, log.Len(), 0, "log lines %s", &log)

		healthy = false
		got := serve(h, post(`{"query":"`+query+`"}`, ""))
		check.Equal(t, got.Code, http.StatusServiceUnavailable, got.Body)
		check.Contains(t, got.Body.String(), `"code":"UNAVAILABLE"`)
		check.True(t, got.Header().Get("Retry-After") != "", "got %d %s, want 503 UNAVAILABLE", got.Code, got.Body)

		healthy = true
		op := check.Try(graph.NewOperation(query)).OK(t)
		if got := e.Execute(t.Context(), graph.Request{Operation: op}).Problem(); got == nil || got.Code != "TIMEOUT" || got.Code.Status() != http.StatusServiceUnavailable {
			t.Errorf("the server's own operation: got %+v, want 503 TIMEOUT", got)
		}
		check.Contains(t, log.String(), "code=TIMEOUT", "log lines: %s", &log)
	})
}

// A response stays cached until the next release.
func TestChangesAreCachedPerRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		responses := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
		h := graphql.NewHandler(newExecutor(s), responses, graphql.StreamConfig{})
		const body = `{"query":"{changes(order: newest_first, first: 1) {nodes {release}}}"}`
		for range 2 {
			expect(t, "first", serve(h, post(body, "")).Body.String(), `{"data":{"changes":{"nodes":[{"release":1}]}}}`)
		}
		expect(t, "executions", responses.Misses.Load(), 1)
		feedtest.Publish(t, s, bytes.Replace(demo.Catalog(), []byte("2026-11-10"), []byte("2026-11-11"), 1))
		responses.Publish(2)
		for range 2 {
			expect(t, "second", serve(h, post(body, "")).Body.String(), `{"data":{"changes":{"nodes":[{"release":2}]}}}`)
		}
		expect(t, "executions", responses.Misses.Load(), 2)
	})
}
