package graphql_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

// newRequest returns a request for an operation, with headers in pairs.
func newRequest(method, query string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "/graphql?query="+url.QueryEscape(query), nil)
	if method == http.MethodPost || method == middleware.MethodQuery {
		r = httptest.NewRequest(method, "/graphql", strings.NewReader(`{"query":"`+query+`"}`))
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// twoReleases serves two editions of the demo catalog.
func twoReleases(t *testing.T) *graphql.Handler {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	editions := check.Try(demo.Editions()).OK(t)
	feedtest.Publish(t, s, editions[0].Feed)
	feedtest.Publish(t, s, editions[1].Feed)
	return newHandler(newExecutor(s))
}

func TestResponsesOfSafeMethodsCanBeCached(t *testing.T) {
	h := twoReleases(t)
	const shared, private, immutable = "s-maxage=3600, stale-while-revalidate=86400", "private, max-age=31536000, immutable", "public, max-age=31536000, immutable"
	for query, want := range map[string]struct{ release, anonymous, keyed string }{
		"{feed {release}}":                                   {"2", shared, shared},
		"query @asOf(release: 1) {feed {release}}":           {"1", immutable, private},
		"query @asOf(release: 2) {feed {release}}":           {"2", immutable, private},
		`query @asOf(date: \"2099-01-01\") {feed {release}}`: {"2", shared, shared},
		"{__schema {queryType {name}}}":                      {"", shared, shared},
		"query @asOf(release: 1) {__typename}":               {"", shared, shared},
		"{tool}":                                             {"", "no-store", "no-store"},
		"{tools(limit: 0) {meta {total}}}":                   {"2", "no-store", "no-store"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, middleware.MethodQuery} {
			for _, plan := range []auth.Plan{auth.Anonymous, auth.Developer} {
				control := want.anonymous
				if plan != auth.Anonymous {
					control = want.keyed
				}
				name := method + " " + query + " as " + string(plan)
				send := func(headers ...string) *httptest.ResponseRecorder {
					text := query
					if method != middleware.MethodQuery {
						text = strings.ReplaceAll(query, `\"`, `"`)
					}
					r := newRequest(method, text, headers...)
					return serve(h, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: plan})))
				}
				got := send()
				tag := got.Header().Get("ETag")
				responses := []*httptest.ResponseRecorder{got}
				if control == "no-store" {
					expect(t, name+": ETag", tag, "")
				} else {
					unchanged := send("If-None-Match", tag)
					expect(t, name+": status", []int{got.Code, unchanged.Code, unchanged.Body.Len()}, []int{200, 304, 0})
					expect(t, name+": status with another ETag", send("If-None-Match", `"another"`).Code, 200)
					responses = append(responses, unchanged)
				}
				for _, response := range responses {
					for header, want := range map[string]string{
						"Cache-Control": control, "ETag": tag, "X-Service-Release": want.release,
						"Vary": "Accept, Accept-Encoding, Authorization", "Accept-Query": "application/json",
					} {
						expect(t, name+": "+header, response.Header().Get(header), want)
					}
				}
			}
		}
		post := serve(h, newRequest(http.MethodPost, query, "If-None-Match", "*"))
		control := post.Header().Get("Cache-Control")
		if failed := want.anonymous == "no-store"; post.Code == http.StatusNotModified || post.Header().Get("ETag") != "" || failed != (control == "no-store") || !failed && control != "" {
			t.Errorf("POST %s: got %d with Cache-Control %q and ETag %q, want none", query, post.Code, control, post.Header().Get("ETag"))
		}
	}
}

// Nothing is cached before the first release.
func TestNoReleaseCannotBeCached(t *testing.T) {
	h := newHandler(newExecutor(testkit.Open(t, testkit.SQLite(t))))
	for _, method := range []string{http.MethodGet, middleware.MethodQuery} {
		got := serve(h, newRequest(method, "{tools {meta {total}}}"))
		expect(t, method, []any{got.Code, got.Header().Get("Cache-Control")}, []any{200, "no-store"})
	}
}

// QUERY is read like POST and shares its cached responses.
func TestQueryMethod(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	responses := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.Handle("QUERY /graphql", graphql.NewHandler(newExecutor(s), responses, graphql.StreamConfig{}))
	query := func(body string, headers ...string) *http.Request {
		r := httptest.NewRequest(middleware.MethodQuery, "/graphql?query={bogus}", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return r
	}
	const document = `{"query":"query ($n: Int!) {tools(limit: $n, sort: name_asc) {items {slug}}}","variables":{"n":1}}`
	first := serve(mux, query(document))
	expect(t, "response", first.Body.String(), `{"data":{"tools":{"items":[{"slug":"aquatinte-4"}]}}}`)
	misses := responses.Misses.Load()
	expect(t, "spaces", serve(mux, query(strings.ReplaceAll(document, " ", "  "))).Header().Get("ETag"), first.Header().Get("ETag"))
	expect(t, "executions", responses.Misses.Load(), misses)

	tag := first.Header().Get("ETag")
	other := strings.Replace(document, `"n":1`, `"n":2`, 1)
	expect(t, "the ETag of another body", serve(mux, query(other, "If-None-Match", tag)).Code, 200)
	check.True(t, serve(mux, query(other)).Header().Get("ETag") != tag, "got the same ETag for another body, want a different one")

	for name, c := range map[string]struct {
		request *http.Request
		status  int
		message string
	}{
		"no body":         {query(""), 400, "The body is empty."},
		"no content type": {query(document, "Content-Type", ""), 415, "The body must be application/json in UTF-8."},
		"a GraphQL text":  {query("{__typename}", "Content-Type", "application/graphql"), 415, "The body must be application/json in UTF-8."},
		"a subscription":  {query(`{"query":"subscription {catalogPublished {release}}"}`), 406, "Subscriptions"},
	} {
		got := serve(mux, c.request)
		check.Equal(t, got.Code, c.status, name)
		check.Contains(t, got.Body.String(), `"message":"`+c.message, name)
		expect(t, name, []string{got.Header().Get("Cache-Control"), got.Header().Get("Accept-Query")}, []string{"no-store", "application/json"})
	}
}

func TestAllowedMethods(t *testing.T) {
	h := demoHandler(t)
	for method, status := range map[string]int{http.MethodOptions: 204, http.MethodPut: 405, http.MethodDelete: 405, "query": 405} {
		got := serve(h, httptest.NewRequest(method, "/graphql", nil))
		expect(t, method, []any{got.Code, got.Header().Get("Allow")}, []any{status, "GET, HEAD, POST, QUERY, OPTIONS"})
	}
}
