package graphql_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

// demoHandler serves the demo catalog.
func demoHandler(t *testing.T) *graphql.Handler {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	return newHandler(newExecutor(s))
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

func post(body, accept string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return r
}

func TestGraphQLOverHTTPAuditsWithNode(t *testing.T) {
	dir := filepath.Join("testdata", "audits")
	testkit.NPM(t, dir)
	server := httptest.NewServer(demoHandler(t))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "run.mjs", server.URL)
	cmd.Dir = dir
	const want = "61 passed, 0 failed"
	out := check.Try(cmd.CombinedOutput()).OK(t)
	check.Contains(t, string(out), want)
}

func TestMediaTypes(t *testing.T) {
	h := demoHandler(t)
	const modern, old = "application/graphql-response+json", "application/json"
	for accept, want := range map[string]string{
		"":                                old,
		"*/*":                             old,
		"application/*":                   old,
		modern:                            modern,
		old:                               old,
		modern + ", " + old:               modern,
		old + ";q=0.9, " + modern:         modern,
		modern + ";q=0.2, " + old:         old,
		modern + ";q=0, */*;q=0.1":        old,
		"text/html, " + modern + ";q=0.5": modern,
		modern + "; charset=utf-8":        modern,
		" ":                               old,
		old + ";q=0, */*":                 modern,
		"*/*, " + modern:                  modern,
	} {
		check.Equal(t, serve(h, post(`{"query":"{__typename}"}`, accept)).Header().Get("Content-Type"), want+"; charset=utf-8", "%q", accept)
	}
	for _, accept := range []string{"text/html", old + ";q=0", modern + "; charset=latin1", "application/json;q=2"} {
		check.Equal(t, serve(h, post(`{"query":"{__typename}"}`, accept)).Code, http.StatusNotAcceptable, "%q", accept)
	}
	for body, statuses := range map[string][2]int{
		`{"query":"{feed {release}}"}`:                     {200, 200},
		`{"query":"{"}`:                                    {400, 200},
		`{"query":"{bogus}"}`:                              {400, 200},
		`{"query":"{tools(limit: 999) {items {slug}}}"}`:   {200, 200}, // executed: the field failed, not the request
		`{"query":"{embeddings(slug: \"plume\") {hash}}"}`: {401, 200},
		`{"query":"{a: feed {release} b: feed {release}}","operationName":"none"}`: {400, 200},
	} {
		for i, accept := range []string{modern, old} {
			got := serve(h, post(body, accept))
			check.Equal(t, got.Code, statuses[i], "%s as %s: %s", body, accept, got.Body)
		}
	}
}

func TestHeaders(t *testing.T) {
	got := serve(demoHandler(t), post(`{"query":"{tools(limit: 3) {items {slug name}}}"}`, "")).Header()
	for name, want := range map[string]string{
		"X-GraphQL-Cost": "13", "X-GraphQL-Cost-Limit": "20000", "X-Service-Updated-At": "2026-11-10", "X-Content-Type-Options": "nosniff",
	} {
		expect(t, name, got.Get(name), want)
	}
}

func TestPersistedQueries(t *testing.T) {
	h := demoHandler(t)
	// printf '{feed {release}}' | sha256sum
	const hash = "8f33175c331934c89aa5b78b3a21a295d6daeeb497fe5bd8bff326f850a8f04b"
	const named = `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`
	unknown := serve(h, post(named, ""))
	check.Equal(t, unknown.Code, 200, unknown.Body)
	check.Contains(t, unknown.Body.String(), `"PersistedQueryNotFound"`)
	check.Contains(t, unknown.Body.String(), `"PERSISTED_QUERY_NOT_FOUND"`)
	const want = `{"data":{"feed":{"release":1}}}`
	expect(t, "registered", serve(h, post(strings.Replace(named, `{"ext`, `{"query":"{feed {release}}","ext`, 1), "")).Body.String(), want)
	expect(t, "known", serve(h, post(named, "")).Body.String(), want)
}

// failingCatalog is a catalog that cannot be read.
type failingCatalog struct {
	release.Database
	err error
}

func (f failingCatalog) CurrentRelease(context.Context) (*ent.Release, error) { return nil, f.err }

func TestUnavailableDatabase(t *testing.T) {
	h := newHandler(newExecutor(failingCatalog{err: errors.New("pq: internal details of a database")}))
	r := post(`{"query":"{feed {release}}"}`, "")
	got := serve(h, r.WithContext(problem.WithRequestID(r.Context(), "R1")))
	expect(t, "response", got.Body.String(), `{"errors":[{"message":"The catalog is temporarily unavailable. Try again in a minute.","extensions":{"code":"UNAVAILABLE","requestId":"R1"}}]}`)
	expect(t, "status", []any{got.Code, got.Header().Get("Retry-After")}, []any{503, "5"})
	check.Equal(t, serve(h, post(`{"query":"{__schema {queryType {name}}}"}`, "")).Code, 200, "schema without a database")
}

// A failed statement fails the whole operation.
func TestDatabaseFailsDuringOperation(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		check.Try(s.Write.ExecContext(t.Context(), "ALTER TABLE categories RENAME TO elsewhere")).OK(t)
		got := serve(newHandler(newExecutor(s)), post(`{"query":"{feed {release} categories {slug}}"}`, ""))
		expect(t, "response", got.Body.String(), `{"errors":[{"message":"The catalog is temporarily unavailable. Try again in a minute.","extensions":{"code":"UNAVAILABLE"}}]}`)
		expect(t, "status", got.Code, 503)
	})
}

// panickingCatalog can be made to return a nil client, so that readers panic.
type panickingCatalog struct {
	*store.Store
	panics bool
}

func (p *panickingCatalog) Client() *ent.Client {
	if p.panics {
		return nil
	}
	return p.Store.Client()
}

func TestPanicIsMasked(t *testing.T) {
	catalog := &panickingCatalog{Store: testkit.Open(t, testkit.SQLite(t))}
	feedtest.Publish(t, catalog.Store, demo.Catalog())
	h := newHandler(newExecutor(catalog))
	serve(h, post(`{"query":"{feed {release}}"}`, "")) // loads the release
	catalog.panics = true
	got := serve(h, post(`{"query":"{changes(first: 1) {nodes {id}}}"}`, ""))
	body := got.Body.String()
	check.Contains(t, body, "Something went wrong on our side.", got.Code)
	check.Lacks(t, body, "nil pointer", got.Code)
}

// Documents that differ only in formatting share a cached response. All others
// have their own.
func TestEquivalentDocumentsShareResponse(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	responses := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
	handler := graphql.NewHandler(newExecutor(s), responses, graphql.StreamConfig{})
	misses := func(r *http.Request, want string) int64 {
		t.Helper()
		before := responses.Misses.Load()
		check.Contains(t, serve(handler, r).Body.String(), want)
		return responses.Misses.Load() - before
	}
	const one = `{"query":"query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {slug}}}","variables":{"n":1,"s":"name_asc"}}`
	misses(post(one, ""), "aquatinte-4")
	get := httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape("query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {slug}}}")+`&variables=`+url.QueryEscape(`{"s":"name_asc","n":1}`), nil)
	for name, r := range map[string]*http.Request{
		"the same":    post(one, ""),
		"spaces":      post(`{"query":"query($n:Int!$s:ToolSort!){tools(limit:$n,,sort:$s){items{slug}}}","variables":{"n":1,"s":"name_asc"}}`, ""),
		"comments":    post(`{"query":"# hello\nquery ($n: Int!, $s: ToolSort!) {\n  tools(limit: $n, sort: $s) { # tools\n items {slug}}}","variables":{"n":1,"s":"name_asc"}}`, ""),
		"other order": post(`{"variables":{"s":"name_asc","n":1.0},"query":"query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {slug}}}"}`, ""),
		"GET":         get,
	} {
		check.Equal(t, misses(r, "aquatinte-4"), 0, "%s: executions", name)
	}
	for name, body := range map[string]string{
		"another field":    `{"query":"query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {name}}}","variables":{"n":1,"s":"name_asc"}}`,
		"another variable": `{"query":"query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {slug}}}","variables":{"n":2,"s":"name_asc"}}`,
		"an alias":         `{"query":"query ($n: Int!, $s: ToolSort!) {tools(limit: $n, sort: $s) {items {slug: slug}}}","variables":{"n":1,"s":"name_asc"}}`,
		"a string":         `{"query":"{tools(filter: {search: \"a # b\"}) {items {slug}}}"}`,
		"a longer string":  `{"query":"{tools(filter: {search: \"a # c\"}) {items {slug}}}"}`,
	} {
		check.Equal(t, misses(post(body, ""), `"data"`), 1, "%s: executions", name)
	}
	check.Equal(t, misses(post(one, "application/graphql-response+json"), "aquatinte-4"), 1, "another media type: executions")
}

// Invalid documents have their own errors, and a response with embeddings is sent
// only to callers who may read them.
func TestErrorsAndEmbeddingsAreNotShared(t *testing.T) {
	h := demoHandler(t)
	for range 2 {
		for body, want := range map[string]string{
			`{"query":"{bogus}"}`:                              `Cannot query field`,
			`{"query":"{tools(limit: 500) {items {slug}}}"}`:   "(got 500)",
			`{"query":"{tools(limit: 501) {items {slug}}}"}`:   "(got 501)",
			`{"query":"{"}`:                                    "Expected Name",
			`{"query":"{embeddings(slug: \"plume\") {hash}}"}`: "Embeddings require an account. Send an API key as a bearer token in the Authorization header, or sign in with OAuth.",
		} {
			check.Contains(t, serve(h, post(body, "")).Body.String(), want, body)
		}
		keyed := post(`{"query":"{embeddings(slug: \"plume\") {hash}}"}`, "")
		keyed = keyed.WithContext(auth.WithCaller(keyed.Context(), auth.Caller{Plan: auth.Pro}))
		check.Contains(t, serve(h, keyed).Body.String(), "sha256-", "with a key: want a hash")
	}
}

// Documents with the maximum number of tokens are not mixed up.
func TestDocumentsAtTokenLimit(t *testing.T) {
	h := demoHandler(t)
	for _, query := range []string{"{tools(limit:1){meta{total}}}", "{tools(limit:2){items{slug}}}"} {
		for missing := range 40 {
			padded := query + strings.Repeat(`#\n`, 4000-missing)
			got := serve(h, post(`{"query":"`+padded+`"}`, "")).Body.String()
			wanted := strings.Contains(query, "meta") == strings.Contains(got, "meta")
			check.MustTrue(t, wanted || strings.Contains(got, "token limit"), "%s: got %s, want its own response", query, got)
		}
	}
}

// A persisted query is registered even if its response is already cached.
func TestPersistedQueryWithCachedResponse(t *testing.T) {
	h := demoHandler(t)
	const query = "{feed {credit}}"
	named := fmt.Sprintf(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"%x"}}}`, sha256.Sum256([]byte(query)))
	want := serve(h, post(`{"query":"`+query+`"}`, "")).Body.String()
	serve(h, post(strings.Replace(named, `{"ext`, `{"query":"`+query+`","ext`, 1), ""))
	expect(t, "by its hash", serve(h, post(named, "")).Body.String(), want)
}

// deprecate deprecates a field for the duration of a test.
func deprecate(t *testing.T, typeName, name, reason string) {
	field := graph.Schema().Types[typeName].Fields.ForName(name)
	before := field.Directives
	t.Cleanup(func() { field.Directives = before })
	field.Directives = ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{{Name: "reason", Value: &ast.Value{Kind: ast.StringValue, Raw: reason}}}}}
}

func TestDeprecatedFields(t *testing.T) {
	deprecate(t, "Statistics", "toolsTested", "Use `toolsTotal`. Deprecated since 2026-11-16, to be removed on 2027-06-30.")
	deprecate(t, "Statistics", "toolsRetired", "Deprecated since 2026-11-20, to be removed on 2027-01-01.")
	deprecate(t, "Statistics", "toolsTotal", "Without dates.")
	h := demoHandler(t)
	for query, want := range map[string][2]string{
		"{stats {toolsTotal}}":                                       {},
		"{stats {toolsTested}}":                                      {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {... {toolsTested}}}":                                {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {...F ...F}} fragment F on Statistics {toolsTested}": {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {toolsTested toolsRetired}}":                         {"@1794787200", "Fri, 01 Jan 2027 00:00:00 GMT"},
	} {
		for range 2 { // the second response is cached
			got := serve(h, httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape(query), nil)).Header()
			linked := slices.Contains(got["Link"], `</changelog>; rel="deprecation"; type="text/html"`)
			check.Equal(t, got.Get("Deprecation"), want[0], "%s: %v", query, got)
			check.Equal(t, got.Get("Sunset"), want[1], "%s: %v", query, got)
			check.Equal(t, linked, want[0] != "", "%s: %v", query, got)
		}
	}
}
