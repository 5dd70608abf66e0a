package site_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestUnknownPages(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		says(t, handler, "/tools/plmue", 404, "No tool is called “plmue”", `<a href="/tools/plume" lang="fr">Plume</a>`)
		says(t, handler, "/tools/ecritoire-ci", 404, `<a href="/tools/ecritoire-cie" lang="fr">`)
		says(t, handler, "/comparatifs/plume-vs-ecritoire", 404, `<a href="/comparatifs/plume-vs-ecritoire-cie" lang="fr">`)
		says(t, handler, "/cimetiere/plmue", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		says(t, handler, "/toosl", 404, `<a href="/tools">/tools</a>`)
		says(t, handler, "/explore", 404, `<a href="/explorer">/explorer</a>`)
		says(t, handler, "/tools/"+strings.Repeat("x", 300), 400)
		says(t, handler, "/tools/"+strings.Repeat("é", 150), 404)
		says(t, handler, "/tools/%00", 400)
		says(t, handler, "/tools/%ff", 400)
		says(t, handler, "/tools/a%2Fb", 404)
		says(t, handler, "/tools/PLUME", 404, `<a href="/tools/plume" lang="fr">`)
		says(t, handler, "/a/b/c", 404)
		// What the menu calls pages, and what lies above an address.
		says(t, handler, "/comparisons", 404, `<a href="/comparatifs">/comparatifs</a>`)
		says(t, handler, "/graveyard", 404, `<a href="/cimetiere">/cimetiere</a>`)
		says(t, handler, "/tools/plume/x", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		says(t, handler, "/tools/plmue/x/y", 404, `<a href="/tools/plume" lang="fr">Plume</a>`)
		says(t, handler, "/categories/x", 404, `<a href="/categories">/categories</a>`)
	})
}

func TestBadInput(t *testing.T) {
	handler := onSQLite(t)
	for target, said := range map[string]string{
		"/tools?sort=best":                             "sort: is one of score_desc, score_asc",
		"/tools?page=0":                                "page: is a number from 1 to 1000000.",
		"/tools?page=1e3":                              "page: is a number",
		"/tools?page=%2B1":                             "page: is a number",
		"/tools?score_min=0x1p3":                       "score_min: is a number.",
		"/tools?score_min=NaN":                         "score_min: is a number.",
		"/tools?pricing=cheap":                         "pricing: is one of gratuit, freemium, payant.",
		"/tools?q=" + strings.Repeat("x", 300):         "q: is no text of up to 200 characters.",
		"/tools?q=%ff":                                 "q: is no text",
		"/tools?q=%zz":                                 "broken escape",
		"/cimetiere?reason=" + url.QueryEscape("<b>x"): "reason: is one of mort",
	} {
		says(t, handler, target, 400, said)
	}
}

// Programs that ask for a path that nobody has are told in their own way.
func TestUnknownPathsForPrograms(t *testing.T) {
	w := httptest.NewRecorder()
	onSQLite(t).ServeHTTP(w, httptest.NewRequest("GET", "/nothing", nil))
	if w.Code != 404 || w.Body.String() != `{"error":"There is no page at this address."}`+"\n" && w.Body.String() != `{"error":"There is no page at this address."}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMethods(t *testing.T) {
	handler := onSQLite(t)
	got := visit(handler, http.MethodPost, "/tools")
	if got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %s", got.Code, got.Header().Get("Allow"))
	}
	if got := visit(handler, http.MethodHead, "/tools"); got.Code != 200 || got.Body.Len() != 0 || got.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d, %d bytes", got.Code, got.Body.Len())
	}
}

func TestHeaders(t *testing.T) {
	handler := onSQLite(t)
	for _, target := range []string{"/", "/tools/plume", "/nothing", "/tools?sort=x"} {
		header := visit(handler, http.MethodGet, target).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Strict-Transport-Security": "max-age=31536000",
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q", target, name, header.Get(name))
			}
		}
	}
	first := visit(handler, http.MethodGet, "/tools")
	if first.Header().Get("Cache-Control") != "public, max-age=0, s-maxage=60, stale-while-revalidate=3600" || first.Header().Get("Etag") == "" {
		t.Errorf("a page's headers: %v", first.Header())
	}
	again := httptest.NewRequest("GET", "/tools", nil)
	again.Header.Set("If-None-Match", first.Header().Get("Etag"))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, again)
	if w.Code != 304 {
		t.Errorf("who has it already gets %d", w.Code)
	}
	if got := visit(handler, http.MethodGet, "/nothing").Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("a missing page may be kept: %s", got)
	}
}

// Pages that were read go on without a database; the others say so.
func TestDatabaseIsAway(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, demo.Catalog)
		handler := serving(t, s)
		says(t, handler, "/tools/plume", 200)
		s.Close()
		says(t, handler, "/tools/plume", 200, "<h1>Plume</h1>")
		body := says(t, handler, "/tools/aiguillage", 503, "The catalog does not answer", "try this one again in a minute")
		for _, word := range []string{"sql", "closed", "database is"} {
			if strings.Contains(body, word) {
				t.Errorf("the page tells the database's words: %s", word)
			}
		}
		if got := visit(handler, http.MethodGet, "/tools/aiguillage").Header().Get("Retry-After"); got == "" {
			t.Error("it does not say when to come back")
		}
	})
}

// A slash behind a page's name is no reason to send anybody away.
func TestTrailingSlash(t *testing.T) {
	handler := onSQLite(t)
	for from, to := range map[string]string{"/tools/?q=x": "/tools?q=x", "/tools/plume/": "/tools/plume", "/categories/": "/categories"} {
		if got := visit(handler, http.MethodGet, from); got.Code != 301 || got.Header().Get("Location") != to {
			t.Errorf("%s: %d %s", from, got.Code, got.Header().Get("Location"))
		}
	}
	if got := visit(handler, http.MethodGet, "/nothing/"); got.Code != 404 {
		t.Errorf("an unknown page: %d", got.Code)
	}
}
