package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
)

func TestLocalize(t *testing.T) {
	handler := Localize(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Seen", string(lang.Of(r.Context()))+" "+r.URL.RequestURI())
	}))
	for _, test := range []struct {
		method, target, accept string
		status                 int
		location, seen         string
	}{
		{"GET", "/fr/tools?q=a%20b", "", 200, "", "fr /tools?q=a%20b"},
		{"GET", "/en/tools/a%2Fb", "", 200, "", "en /tools/a%2Fb"},
		{"GET", "/fr/", "", 200, "", "fr /"},
		{"GET", "/fr/index.md", "", 200, "", "fr /index.md"},
		{"POST", "/fr/login", "", 200, "", "fr /login"},
		{"GET", "/fr", "", 301, "/fr/", ""},
		{"GET", "/", "", 302, "/en/", ""},
		{"GET", "/", "fr-CA,en;q=0.5", 302, "/fr/", ""},
		{"GET", "/", "de, en;q=0.3", 302, "/en/", ""},
		{"GET", "/?as_of=2", "fr", 302, "/fr/?as_of=2", ""},
		{"GET", "/", strings.Repeat("fr,", 400), 302, "/en/", ""},
		{"GET", "/tools?q=x", "fr", 301, "/en/tools?q=x", ""}, // the preference counts for the root only
		{"GET", "/tools/a%2Fb", "", 301, "/en/tools/a%2Fb", ""},
		{"GET", "/guides/agents.md", "", 301, "/en/guides/agents.md", ""},
		{"GET", "/en/graveyard/buvard?as_of=5", "", 200, "", "en /cimetiere/buvard?as_of=5"},
		{"GET", "/en/comparisons.md", "", 200, "", "en /comparatifs.md"},
		{"GET", "/en/comparisons/a%2Fb", "", 200, "", "en /comparatifs/a%2Fb"},
		{"GET", "/fr/cimetiere", "", 200, "", "fr /cimetiere"},
		{"GET", "/en/cimetiere/a%2Fb?as_of=5", "", 301, "/en/graveyard/a%2Fb?as_of=5", ""},
		{"GET", "/en/comparatifs.md", "", 301, "/en/comparisons.md", ""},
		{"GET", "/fr/graveyard", "", 301, "/fr/cimetiere", ""},
		{"GET", "/comparatifs/a-vs-b", "fr", 301, "/en/comparisons/a-vs-b", ""},
		{"GET", "/graveyard", "", 301, "/en/graveyard", ""},
		{"GET", "/en/c%69metiere", "", 200, "", "en /c%69metiere"}, // no redirect to itself
		{"GET", "/q", "", 301, "/en/q", ""},
		{"POST", "/login", "", 308, "/en/login", ""},
		{"GET", "/login/confirm?token=x", "", 301, "/en/login/confirm?token=x", ""},
		{"GET", "/q/palmares/growth", "", 200, "", "en /q/palmares/growth"},
		{"GET", "/fr/q/palmares/growth?from=2026-01-01", "", 200, "", "fr /q/palmares/growth?from=2026-01-01"},
		{"GET", "/fr/q/palmares/growth.csv", "", 200, "", "fr /fr/q/palmares/growth.csv"}, // data has no language
		{"GET", "/docs.md", "", 200, "", "en /docs.md"},
		{"GET", "/explorer/schema.graphql", "", 200, "", "en /explorer/schema.graphql"},
		{"GET", "/api/v1/tools", "", 200, "", "en /api/v1/tools"},
		{"GET", "/fr/api/v1/tools", "", 200, "", "fr /fr/api/v1/tools"}, // the API has no language
		{"GET", "/fr/graphql", "", 200, "", "fr /fr/graphql"},
		{"GET", "/france/tools", "", 200, "", "en /france/tools"},
		{"GET", "/en//evil.example/tools", "", 200, "", "en /en//evil.example/tools"}, // the mux cleans it and keeps the prefix
		{"GET", "/en/%2fevil.example/tools", "", 200, "", "en /en/%2fevil.example/tools"},
		{"GET", "/fr/tools/../login", "", 200, "", "fr /fr/tools/../login"},
		{"GET", "/fr%2ftools", "", 200, "", "fr /tools"},
		{"GET", "//evil.example/login", "", 200, "", "en //evil.example/login"},
	} {
		r := httptest.NewRequest(test.method, test.target, nil)
		if test.accept != "" {
			r.Header.Set("Accept-Language", test.accept)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status || w.Header().Get("Location") != test.location || w.Header().Get("Seen") != test.seen {
			t.Errorf("%s %s: got %d, location %q and a request for %q, want %d, %q and %q",
				test.method, test.target, w.Code, w.Header().Get("Location"), w.Header().Get("Seen"), test.status, test.location, test.seen)
		}
		if want := map[int]string{301: "public, max-age=86400"}[w.Code]; strings.HasPrefix(test.target, "/tools") && w.Header().Get("Cache-Control") != want {
			t.Errorf("%s: got Cache-Control %q, want %q", test.target, w.Header().Get("Cache-Control"), want)
		}
		if strings.HasPrefix(test.target, "/login") && w.Header().Get("Cache-Control") != "no-store" { // tokens
			t.Errorf("%s: got Cache-Control %q, want no-store", test.target, w.Header().Get("Cache-Control"))
		}
		if test.target == "/" && w.Header().Get("Vary") != "Accept-Language" {
			t.Errorf("/: got Vary %q, want Accept-Language", w.Header().Get("Vary"))
		}
	}
}

func TestLinksHaveTheLanguage(t *testing.T) {
	const body = `<a href="/tools?a=1&amp;b=2">x</a><a class="y" href="/">home</a><a href="/en/tools">English</a><a href="/api/v1/tools">API</a>` +
		`<a href="/q/a/b">query</a><a href="/q/a/b.csv">data</a><a href="/q">queries</a><link rel="icon" href="/assets/icon.svg"><a href="https://example.com/tools">other</a>` +
		`<a href="//example.com/tools">other</a><form action="/logout"><p>href=&#34;/tools&#34;</p><a href="#main">main</a>`
	const want = `<a href="/fr/tools?a=1&amp;b=2">x</a><a class="y" href="/fr/">home</a><a href="/en/tools">English</a><a href="/api/v1/tools">API</a>` +
		`<a href="/fr/q/a/b">query</a><a href="/q/a/b.csv">data</a><a href="/fr/q">queries</a><link rel="icon" href="/assets/icon.svg"><a href="https://example.com/tools">other</a>` +
		`<a href="//example.com/tools">other</a><form action="/fr/logout"><p>href=&#34;/tools&#34;</p><a href="#main">main</a>`
	check.Equal(t, string(localizeLinks([]byte(body), lang.French)), want)
}

func TestSectionsAreNamedInTheLanguage(t *testing.T) {
	const body = `<a href="/comparatifs?as_of=5">x</a><a href="/cimetiere.md">y</a><a href="/api/v1/cimetiere">z</a><form action="/comparatifs/a"><a href="/fr/cimetiere" hreflang="fr">fr</a>`
	for l, want := range map[lang.Language]string{
		lang.English: `<a href="/en/comparisons?as_of=5">x</a><a href="/en/graveyard.md">y</a><a href="/api/v1/cimetiere">z</a><form action="/en/comparisons/a"><a href="/fr/cimetiere" hreflang="fr">fr</a>`,
		lang.French:  `<a href="/fr/comparatifs?as_of=5">x</a><a href="/fr/cimetiere.md">y</a><a href="/api/v1/cimetiere">z</a><form action="/fr/comparatifs/a"><a href="/fr/cimetiere" hreflang="fr">fr</a>`,
	} {
		check.Equal(t, string(localizeLinks([]byte(body), l)), want, l)
	}
	if l, rest, ok := SplitLanguage("/en/graveyard/buvard"); l != lang.English || rest != "/cimetiere/buvard" || !ok {
		t.Errorf("got %s, %s, %t, want the path that the handlers know", l, rest, ok)
	}
}

// Every page of the demo says that its catalog is fictional.
func TestLayoutNamesTheDemo(t *testing.T) {
	for _, isDemo := range []bool{true, false} {
		content := Service{Demo: isDemo}.Content(lang.French, "/tools", Head{}, ErrorPage{})
		body, err := NewTemplates(files, "templates", nil).Render("error", content)
		check.OK(t, err)
		check.Equal(t, strings.Contains(string(body), "Ceci est une démonstration\u00a0: "), isDemo, "says that it is a demo")
	}
}

func TestLayoutNamesTheOtherLanguage(t *testing.T) {
	service := Service{PublicURL: "https://palmares.example", ServiceName: "palmares"}
	templates := NewTemplates(files, "templates", nil)
	body, err := templates.Render("error", service.Content(lang.French, "/tools", Head{}, ErrorPage{Title: "Outils"}))
	check.OK(t, err)
	for _, want := range []string{
		`<html lang="fr">`, `<title>Outils · palmares</title>`, `<link rel="canonical" href="https://palmares.example/fr/tools">`,
		`hreflang="en" href="https://palmares.example/en/tools"`, `hreflang="fr" href="https://palmares.example/fr/tools"`,
		`hreflang="x-default" href="https://palmares.example/en/tools"`, `<meta property="og:locale" content="fr_FR">`,
		`<a href="/en/tools" hreflang="en" lang="en"><abbr title="English">en</abbr></a>`, `Aller au contenu`,
	} {
		check.Contains(t, string(body), want)
	}
}
