package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/core/lang"
)

// FuzzLocalize checks that the language is removed from the path of a page and can be added
// again, and that no path is redirected to another site.
func FuzzLocalize(f *testing.F) {
	for _, path := range []string{"/", "/en", "/fr/tools", "/tools/plume", "/fr//evil.example", "//evil.example", "/en/tools/%2f", "/account/../tools", "/fr/tools.md", "/q/a"} {
		f.Add(path, "fr;q=0.9", "a=b")
	}
	f.Fuzz(func(t *testing.T, path, accept, query string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" || u.Scheme != "" {
			return
		}
		u.RawQuery = query
		r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept-Language": {accept}}}
		w := httptest.NewRecorder()
		served := false
		Localize(http.HandlerFunc(func(_ http.ResponseWriter, inner *http.Request) {
			served = true
			if l := lang.Of(inner.Context()); inner.URL.Path != u.Path && LocalPath(l, inner.URL.Path) != u.Path {
				t.Errorf("%q: got %q in %s, which is %q, want the same page", u.Path, inner.URL.Path, l, LocalPath(l, inner.URL.Path))
			}
		})).ServeHTTP(w, r.WithContext(t.Context()))
		location := w.Header().Get("Location")
		if served == (location != "") {
			t.Errorf("%q: got served: %t and %q, want one of them", path, served, location)
		}
		if location != "" && (!strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") || strings.HasPrefix(location, "/\\")) {
			t.Errorf("%q: got a redirect to %q, want this site", path, location)
		}
	})
}
