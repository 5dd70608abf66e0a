package graphql_test

import (
	"crypto/sha256"
	"fmt"
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
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

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
			if wanted := strings.Contains(query, "meta") == strings.Contains(got, "meta"); !wanted && !strings.Contains(got, "token limit") {
				t.Fatalf("%s: got %s, want its own response", query, got)
			}
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
