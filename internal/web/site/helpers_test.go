package site_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
	"palmares/internal/web/site"
	"palmares/internal/web/visitor"
)

// newSite returns a handler that serves the pages.
func newSite(t testing.TB, s *store.Store) http.Handler {
	t.Helper()
	return newLimitedSite(t, s, nil)
}

func newLimitedSite(t testing.TB, s *store.Store, visitors *visitor.Limiter) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	pages, err := site.New(site.Config{
		Service:  page.Service{PublicURL: "https://palmares.example", ServiceName: "palmares", Credit: "Source : palmares (https://palmares.example)"},
		Executor: graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: log}),
		Cache:    cache.New(1<<20, nil, log), Log: log, Suggested: []string{"/docs", "/explorer"}, Visitors: visitors,
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func publish(t testing.TB, s *store.Store, catalog []byte) {
	t.Helper()
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(catalog), feed.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
}

// onDemo runs a test with the demo catalog on each database.
func onDemo(t *testing.T, test func(t *testing.T, handler http.Handler)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, demo.Catalog())
		test(t, newSite(t, s))
	})
}

// onSQLite returns the pages of the demo catalog on SQLite, for tests that do
// not depend on the database.
func onSQLite(t testing.TB) http.Handler {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog())
	return newSite(t, s)
}

// handlerPaths replaces the URLs of English pages by the paths that the handlers know.
var handlerPaths = strings.NewReplacer(
	`"/en/comparisons`, `"/comparatifs`, `"/en/graveyard`, `"/cimetiere`, `"/en/`, `"/`,
	"https://palmares.example/en/comparisons", "https://palmares.example/comparatifs", "https://palmares.example/en/graveyard", "https://palmares.example/cimetiere",
	"https://palmares.example/en/", "https://palmares.example/",
)

// visit sends a request as a browser does. If the path has no language, links of
// the page are returned as the handlers know them, too.
func visit(handler http.Handler, method, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if strings.HasPrefix(target, "/en/") || strings.HasPrefix(target, "/fr/") || strings.HasPrefix(target, "/sitemap") || strings.HasPrefix(target, "/search/suggestions") {
		return w
	}
	w.Body = bytes.NewBufferString(handlerPaths.Replace(w.Body.String()))
	if to := w.Header().Get("Location"); to != "" {
		w.Header().Set("Location", strings.TrimPrefix(handlerPaths.Replace(`"`+to), `"`))
	}
	return w
}

// get returns a page, and checks its status and that it contains the texts.
func get(t *testing.T, handler http.Handler, target string, status int, texts ...string) string {
	t.Helper()
	got := visit(handler, http.MethodGet, target)
	if got.Code != status || got.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%s: got %d, %s, want %d and HTML", target, got.Code, got.Header().Get("Content-Type"), status)
	}
	body := got.Body.String()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s: got no %q, want it on the page", target, text)
		}
	}
	return body
}

var toolLink = regexp.MustCompile(`<th scope="row"><a href="/tools/([^"]+)">`)

// listed returns the slugs in a page's table of tools.
func listed(body string) (slugs []string) {
	for _, match := range toolLink.FindAllStringSubmatch(body, -1) {
		slugs = append(slugs, match[1])
	}
	return slugs
}
