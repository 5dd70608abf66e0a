package graphql_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/release"
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
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %v and\n%s\nwant %s", err, out, want)
	}
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
			if got := serve(h, post(body, accept)); got.Code != statuses[i] {
				t.Errorf("%s as %s: got %d %s, want %d", body, accept, got.Code, got.Body, statuses[i])
			}
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

func TestGet(t *testing.T) {
	h := demoHandler(t)
	get := func(params url.Values) *httptest.ResponseRecorder {
		return serve(h, httptest.NewRequest(http.MethodGet, "/graphql?"+params.Encode(), nil))
	}
	got := get(url.Values{"query": {`query A($n: Int!) {tools(limit: $n) {items {slug}}} query B {feed {release}}`}, "operationName": {"A"}, "variables": {`{"n":1}`}})
	expect(t, "GET", got.Body.String(), `{"data":{"tools":{"items":[{"slug":"bosco-et-matelots"}]}}}`)
	check.Equal(t, get(url.Values{"query": {"{__typename}"}, "variables": {"{"}}).Code, 400, "invalid variables")
}

func TestPersistedQueries(t *testing.T) {
	h := demoHandler(t)
	// printf '{feed {release}}' | sha256sum
	const hash = "8f33175c331934c89aa5b78b3a21a295d6daeeb497fe5bd8bff326f850a8f04b"
	const named = `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`
	unknown := serve(h, post(named, ""))
	if unknown.Code != 200 || !strings.Contains(unknown.Body.String(), `"PersistedQueryNotFound"`) || !strings.Contains(unknown.Body.String(), `"PERSISTED_QUERY_NOT_FOUND"`) {
		t.Errorf("got %d %s, want 200 PersistedQueryNotFound", unknown.Code, unknown.Body)
	}
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
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE categories RENAME TO elsewhere"); err != nil {
			t.Fatal(err)
		}
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
	if body := got.Body.String(); !strings.Contains(body, "Something went wrong on our side.") || strings.Contains(body, "nil pointer") {
		t.Errorf("got %d %s, want a generic message", got.Code, body)
	}
}
