package site_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/server/servertest"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// newSite returns a handler that serves the pages of a database. A path without a language
// is that of the English page.
func newSite(t testing.TB, s *store.Store) http.Handler {
	t.Helper()
	handler := newLocalized(t, s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/fr/") {
			r.URL.Path, r.URL.RawPath = page.LocalPath(lang.English, r.URL.Path), page.LocalPath(lang.English, r.URL.RawPath)
		}
		handler.ServeHTTP(w, r)
	})
}

// newLocalized returns a handler that serves the pages in all languages.
func newLocalized(t testing.TB, s *store.Store) http.Handler {
	t.Helper()
	return servertest.New(t, servertest.On(s)).Handler()
}

// onDemo runs a test with the demo catalog on each database.
func onDemo(t *testing.T, test func(t *testing.T, handler http.Handler)) {
	t.Helper()
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		test(t, newSite(t, s))
	})
}

// onSQLite returns the pages of the demo catalog on SQLite, for tests that do
// not depend on the database.
func onSQLite(t testing.TB) http.Handler {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
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
	check.Equal(t, got.Code, status, target)
	check.Equal(t, got.Header().Get("Content-Type"), "text/html; charset=utf-8", target)
	body := got.Body.String()
	for _, text := range texts {
		check.Contains(t, body, text, target)
	}
	return body
}

var toolLink = regexp.MustCompile(`<th scope="row">(?:<span class="place">\d+</span> )?<a href="/tools/([^"]+)">`)

// listed returns the slugs in a page's table of tools.
func listed(body string) (slugs []string) {
	for _, match := range toolLink.FindAllStringSubmatch(body, -1) {
		slugs = append(slugs, match[1])
	}
	return slugs
}
