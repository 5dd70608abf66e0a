package site_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestUnknownPages(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		get(t, handler, "/tools/plmue", 404, "There is no tool “plmue”", `<a href="/tools/plume" lang="fr">Plume</a>`)
		get(t, handler, "/tools/ecritoire-ci", 404, `<a href="/tools/ecritoire-cie" lang="fr">`)
		get(t, handler, "/comparatifs/plume-vs-ecritoire", 404, `<a href="/comparatifs/plume-vs-ecritoire-cie">Plume or Écritoire`)
		get(t, handler, "/cimetiere/plmue", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		get(t, handler, "/toosl", 404, `<a href="/tools">Tools</a>`)
		get(t, handler, "/chnages", 404, `<a href="/changes">Changes</a>`)
		get(t, handler, "/fr/outils", 404, `<a href="/fr/tools">Outils</a>`)
		get(t, handler, "/explore", 404, `<a href="/explorer">GraphQL explorer</a>`)
		get(t, handler, "/tools/"+strings.Repeat("x", 300), 400)
		get(t, handler, "/tools/"+strings.Repeat("é", 150), 404)
		get(t, handler, "/tools/%00", 400)
		get(t, handler, "/tools/%ff", 400)
		get(t, handler, "/tools/a%2Fb", 404)
		get(t, handler, "/tools/PLUME", 404, `<a href="/tools/plume" lang="fr">`)
		get(t, handler, "/a/b/c", 404)
		// Names from the menu, and pages above a path.
		get(t, handler, "/comparison", 404, `<a href="/comparatifs">Comparisons</a>`)
		get(t, handler, "/gravyard", 404, `<a href="/cimetiere">Graveyard</a>`)
		get(t, handler, "/tools/plume/x", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		get(t, handler, "/docs/x", 404, `<a href="/docs">/docs</a>`)
		get(t, handler, "/explorer/x/y", 404, `<a href="/explorer">/explorer</a>`)
		get(t, handler, "/tools/plmue/x/y", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		get(t, handler, "/categories/coed", 404, `<a href="/categories/code">Code</a>`)
		get(t, handler, "/categories/writing", 404, `<a href="/categories/redaction">Writing</a>`)
	})
}

// Suggestions look at a few levels of a path only.
func TestDeepPathsAreCheap(t *testing.T) {
	handler := onSQLite(t)
	allocations := func(path string) float64 {
		return testing.AllocsPerRun(5, func() { visit(handler, http.MethodGet, path) })
	}
	short, deep := allocations("/zz/a/a/a/a/a/a"), allocations("/zz"+strings.Repeat("/a", 15_000))
	if deep > 2*short {
		t.Errorf("got %.0f allocations for a deep path and %.0f for a short one, want at most twice as many", deep, short)
	}
}

func TestBadInput(t *testing.T) {
	handler := onSQLite(t)
	for target, want := range map[string]string{
		"/tools?sort=best":                             "“best” is not a valid option. Choose one from the list.",
		"/tools?page=0":                                "page must be an integer from 1 to 1,000,000 (got &#34;0&#34;).",
		"/tools?page=1e3":                              "page must be an integer",
		"/tools?page=%2B1":                             "page must be an integer",
		"/tools?score_min=0x1p3":                       "The minimum score must be a number from 0 to 10, such as 7.5 (got “0x1p3”).",
		"/tools?score_min=NaN":                         "The minimum score must be a number from 0 to 10",
		"/tools?pricing=cheap":                         "“cheap” is not a valid option.",
		"/tools?q=" + strings.Repeat("x", 300):         "Search for at most 16 words and 200 characters.",
		"/tools?q=%ff":                                 "invalid UTF-8",
		"/tools?q=%zz":                                 "invalid escape",
		"/cimetiere?reason=" + url.QueryEscape("<b>x"): "reason must be one of mort",
	} {
		get(t, handler, target, 400, want)
	}
}

// Clients that do not accept HTML receive JSON for unknown paths.
func TestUnknownPathsAsJSON(t *testing.T) {
	w := httptest.NewRecorder()
	onSQLite(t).ServeHTTP(w, httptest.NewRequest("GET", "/nothing", nil))
	if w.Code != 404 || w.Body.String() != `{"error":"There is no page at this address."}`+"\n" && w.Body.String() != `{"error":"There is no page at this address."}` {
		t.Errorf("got %d %s, want 404 and JSON", w.Code, w.Body)
	}
}

func TestMethods(t *testing.T) {
	handler := onSQLite(t)
	got := visit(handler, http.MethodPost, "/tools")
	check.Equal(t, got.Code, 405, "POST")
	check.Equal(t, got.Header().Get("Allow"), "GET, HEAD", "POST")
	if got := visit(handler, http.MethodHead, "/tools"); got.Code != 200 || got.Body.Len() != 0 || got.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: got %d with %d bytes, want 200 without a body", got.Code, got.Body.Len())
	}
}

func TestHeaders(t *testing.T) {
	handler := onSQLite(t)
	for _, target := range []string{"/", "/tools/plume", "/nothing", "/tools?sort=x"} {
		header := visit(handler, http.MethodGet, target).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; manifest-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Strict-Transport-Security": "max-age=31536000",
		} {
			check.Equal(t, header.Get(name), want, "%s: %s", target, name)
		}
	}
	first := visit(handler, http.MethodGet, "/tools")
	if first.Header().Get("Cache-Control") != "public, max-age=0, s-maxage=60, stale-while-revalidate=3600" || first.Header().Get("Etag") == "" {
		t.Errorf("got %v, want a cacheable page with an ETag", first.Header())
	}
	again := httptest.NewRequest("GET", "/tools", nil)
	again.Header.Set("If-None-Match", first.Header().Get("Etag"))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, again)
	check.Equal(t, w.Code, 304, "If-None-Match")
	check.Equal(t, visit(handler, http.MethodGet, "/nothing").Header().Get("Cache-Control"), "no-store", "not found: Cache-Control")
}

// Cached pages work without a database; others show an error page.
func TestDatabaseUnavailable(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		handler := newSite(t, s)
		get(t, handler, "/tools/plume", 200)
		s.Close()
		get(t, handler, "/tools/plume", 200, "<h1>Plume</h1>")
		body := get(t, handler, "/tools/aiguillage?as_of=8", 503, "The catalog is unavailable", "try this one again in a minute", `href="/tools/aiguillage?as_of=8">Try again<`)
		for _, word := range []string{"sql", "closed", "database is"} {
			if strings.Contains(body, word) {
				t.Errorf("got %q from the database's error, want only the public message", word)
			}
		}
		if got := visit(handler, http.MethodGet, "/tools/aiguillage").Header().Get("Retry-After"); got == "" {
			t.Error("got no Retry-After, want one")
		}
	})
}

func TestTrailingSlash(t *testing.T) {
	handler := onSQLite(t)
	for from, to := range map[string]string{"/tools/?q=x": "/tools?q=x", "/tools/plume/": "/tools/plume", "/categories/": "/categories"} {
		if got := visit(handler, http.MethodGet, from); got.Code != 301 || got.Header().Get("Location") != to {
			t.Errorf("%s: got %d to %q, want 301 to %q", from, got.Code, got.Header().Get("Location"), to)
		}
	}
	check.Equal(t, visit(handler, http.MethodGet, "/nothing/").Code, 404, "unknown page")
}

// Suggestions include items from anywhere in the lists of a large catalog.
func TestSuggestionsInLargeCatalog(t *testing.T) {
	const many = 450
	tool := func(i int) string {
		return fmt.Sprintf("%s-%s-%d", []string{"galet", "plume", "voix"}[i%3], []string{"pro", "nova"}[i%2], i)
	}
	var records []any
	for i := range many {
		records = append(records, feedtest.Tool(tool(i)),
			&record.Retired{Slug: "ancien-" + tool(i), Name: "Ancien", Category: "code", Reason: "mort", RetiredAt: "2026-03-14", Note: "Fini."},
			&record.Comparison{Slug: fmt.Sprintf("duel-%d", i), Title: "Duel ?", ToolA: tool(i), ToolB: tool((i + 1) % many), Winner: tool(i), WinnerNote: "Bien.",
				Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/duel"})
	}
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", records...))
		handler := newSite(t, s)
		for i := 0; i < many; i += 37 {
			get(t, handler, "/tools/"+tool(i)[:2]+tool(i)[3:], 404, `<a href="/tools/`+tool(i)+`"`)
			get(t, handler, "/cimetiere/ancein-"+tool(i), 404, `<a href="/cimetiere/ancien-`+tool(i)+`"`)
			get(t, handler, fmt.Sprintf("/comparatifs/duel%d", i), 404, fmt.Sprintf(`<a href="/comparatifs/duel-%d"`, i))
		}
		// New items are suggested after a release.
		get(t, handler, "/", 200)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", append(records, feedtest.Tool("nouveau-venu"))...))
		wait.Until(t, "the new tool is suggested", func() bool {
			visit(handler, "GET", "/tools?q=nouveau") // not cached, so it notices the release
			return strings.Contains(visit(handler, "GET", "/tools/nouveu-venu").Body.String(), `href="/tools/nouveau-venu"`)
		})
	})
}
