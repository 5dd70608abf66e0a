package site_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestPages(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		says(t, handler, "/", 200, "<dd>48</dd>", "<dd>6.99</dd>", "Bosco &amp; Matelots", `curl -s "https://palmares.example/api/v1/tools`,
			"Updated on", "Source : palmares (https://palmares.example)", `<option value="code" lang="fr">Code (`, `New comparison: <a href="/comparatifs/`)
		says(t, handler, "/tools", 200, "1 to 48 of 48", "Écritoire &amp; Cie", "29 €/mois")
		says(t, handler, "/tools/plume", 200, "<h1>Plume</h1>", `<span class="score">7.0</span>`, "19,90 €/mois", "24,90 €/mois", `<path d="M0 `, "Écritoire &amp; Cie",
			`href="/api/v1/tools/plume"`, `href="/api/v1/pricing/plume"`, `href="/explorer?path=%2Fapi%2Fv1%2Ftools%2Fplume"`, `Alternatives in <span lang="fr">Rédaction</span>`)
		says(t, handler, "/comparatifs", 200, "1 to 13 of 13", "Plume ou Écritoire &amp; Cie ?")
		says(t, handler, "/comparatifs/plume-vs-ecritoire-cie", 200, "<strong>Écritoire &amp; Cie</strong> wins", `class="winner"`, `href="/tools/plume"`)
		says(t, handler, "/categories", 200, "Rédaction", `href="/tools?category=redaction"`)
		says(t, handler, "/cimetiere", 200, "1 to 10 of 10", "acquired")
	})
}

// The page's own query is one that the explorer can open and run.
func TestThePagesQueryIsTheirs(t *testing.T) {
	body := says(t, onSQLite(t), "/tools/plume", 200)
	_, rest, _ := strings.Cut(body, `href="/explorer?query=`)
	address, _, _ := strings.Cut(rest, `"`)
	values, err := url.ParseQuery("query=" + html.UnescapeString(address))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graph.NewOperation(values.Get("query")); err != nil {
		t.Errorf("%v in %s", err, values.Get("query"))
	}
	if got := values.Get("variables"); got != `{"slug":"plume"}` {
		t.Errorf("its variables are %s", got)
	}
}

func TestFiltersAndOrder(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		all := listed(says(t, handler, "/tools", 200))
		code := listed(says(t, handler, "/tools?category=code&q=&pricing=&icp=&score_min=&price_max=&sort=score_desc", 200,
			`<option value="code" selected lang="fr">`, `href="/api/v1/tools?category=code"`))
		if len(code) == 0 || len(code) >= len(all) {
			t.Errorf("%d of %d tools are in a category", len(code), len(all))
		}
		if found := listed(says(t, handler, "/tools?q=ECRITOIRE", 200, `value="ECRITOIRE"`)); !slices.Equal(found, []string{"ecritoire-cie"}) {
			t.Errorf("found %v", found)
		}
		if found := listed(says(t, handler, "/tools?pricing=gratuit", 200)); len(found) == 0 || len(found) >= len(all) {
			t.Errorf("%d are free", len(found))
		}
		if good := listed(says(t, handler, "/tools?score_min=8,5", 200)); len(good) == 0 || len(good) >= len(all) || !slices.Equal(good, all[:len(good)]) {
			t.Errorf("good ones: %v", good)
		}
		up, down := listed(says(t, handler, "/tools?sort=name_asc", 200)), listed(says(t, handler, "/tools?sort=name_desc", 200))
		slices.Reverse(down)
		if len(up) != len(all) || !slices.Equal(up, down) {
			t.Errorf("by name: %v and %v", up, down)
		}
		says(t, handler, "/tools?q=nobodyhasthis", 200, "No tool matches.", "Show all tools")
		says(t, handler, "/tools?page=9", 200, "There are no more", `href="/tools?page=1"`)
		says(t, handler, "/tools?category=nope", 200, `<option value="nope" selected>nope (unknown)</option>`, "No tool matches.")
		says(t, handler, "/cimetiere?category=nope", 200, "No retired tool matches.")
		says(t, handler, "/tools?sort=price_asc", 200, "Prices are compared by amount alone, whatever the period", "Lowest amount first</option>")
		says(t, handler, "/cimetiere?reason=mort", 200, "shut down")
		says(t, handler, "/comparatifs?category=code", 200, `<option value="code" selected lang="fr">`)
	})
}

func TestPaging(t *testing.T) {
	var records []any
	for i := range 120 {
		records = append(records, feedtest.Tool("tool-"+strings.Repeat("i", i/26+1)+string(rune('a'+i%26))))
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, feedtest.Catalog("2026-11-01", records...))
		handler := serving(t, s)
		first := says(t, handler, "/tools?sort=name_asc", 200, "1 to 50 of 120", "Page 1 of 3", `rel="next" href="/tools?page=2&amp;sort=name_asc"`)
		if strings.Contains(first, `rel="prev"`) {
			t.Error("something comes before the first page")
		}
		says(t, handler, "/tools?sort=name_asc&page=2", 200, "51 to 100 of 120", `rel="prev" href="/tools?page=1&amp;sort=name_asc"`)
		last := says(t, handler, "/tools?page=3", 200, "101 to 120 of 120")
		if strings.Contains(last, `rel="next"`) || len(listed(last)) != 20 {
			t.Error("the last page is not the last")
		}
		says(t, handler, "/tools?page=7", 200, `rel="prev" href="/tools?page=3"`)
	})
}

// However it is written, the same is asked, and kept once.
func TestOneSpelling(t *testing.T) {
	handler := onSQLite(t)
	for _, same := range [][]string{
		{"/tools", "/tools?page=1", "/tools?page=01", "/tools?sort=score_desc&q=", "/tools?nothing=known"},
		{"/tools?q=plume", "/tools?q=%20plume%20"},
		{"/tools?score_min=8.5", "/tools?score_min=8,5", "/tools?score_min=08.50", "/tools?sort=score_desc&score_min=8.5"},
	} {
		first := visit(handler, http.MethodGet, same[0])
		for _, target := range same[1:] {
			if got := visit(handler, http.MethodGet, target); got.Code != 200 || got.Header().Get("Etag") != first.Header().Get("Etag") {
				t.Errorf("%s is not %s: %d", target, same[0], got.Code)
			}
		}
	}
}

// A page leads to REST only where that tells the same.
func TestTheSameFromREST(t *testing.T) {
	handler := onSQLite(t)
	for target, rest := range map[string]string{
		"/tools?score_min=8,5":                        "/api/v1/tools?score_min=8.5",
		"/tools?category=code&sort=name_asc":          "/api/v1/tools?category=code&amp;sort=name_asc",
		"/cimetiere?reason=mort":                      "/api/v1/cimetiere?reason=mort",
		"/tools?pricing=gratuit":                      "",
		"/tools?q=x":                                  "",
		"/tools?sort=price_asc":                       "",
		"/tools?price_max=10&icp=mixte&sort=name_asc": "",
	} {
		body := says(t, handler, target, 200, "this page’s query")
		if rest != "" && !strings.Contains(body, `<a href="`+rest+`">JSON</a>`) || rest == "" && strings.Contains(body, ">JSON</a>") {
			t.Errorf("%s does not lead to %q", target, rest)
		}
	}
}

// A price of another period is a change, but nothing to draw.
func TestPricesOfSeveralPeriods(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one")))
	publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("one", func(tool *feed.Tool) { tool.Price, tool.UpdatedAt = "240 €/an", "2026-11-02" })))
	body := says(t, serving(t, s), "/tools/one", 200, "cannot be drawn beside each other", "20 €/mois", "240 €/an")
	if strings.Contains(body, "has not changed") {
		t.Error("the page says that it has not changed")
	}
}

// What editors write is shown, not run.
func TestHTMLInTheCatalog(t *testing.T) {
	const evil = `<script>alert("1")</script>`
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, feedtest.Catalog("2026-11-01",
		&feed.Category{Slug: "evil", Label: evil},
		feedtest.Tool("evil", func(tool *feed.Tool) {
			tool.Name, tool.Tagline, tool.Domain, tool.Category = evil, evil, `x" onmouseover="alert(1)`, "evil"
			tool.Price, tool.UpdatedAt = "1 €/"+evil, "2026-11-01"
			tool.PriceHistory = []feed.PriceChange{{ChangedAt: "2026-05-01", Pricing: "payant", Price: "1 €/" + evil, PreviousPricing: "payant", PreviousPrice: "2 €/" + evil}}
		}),
		&feed.Retired{Slug: "gone", Name: evil, Category: "evil", Reason: "mort", RetiredAt: "2026-03-14", Note: evil},
		&feed.Comparison{Slug: "evil-vs-gone", Title: evil, ToolA: "evil", ToolB: "gone", Winner: "evil", WinnerNote: evil,
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/evil-vs-gone"},
	))
	handler := serving(t, s)
	for _, target := range []string{
		"/", "/tools", "/tools/evil", "/tools?q=" + url.QueryEscape(evil), "/tools/" + url.PathEscape(evil), "/tools/evli",
		"/comparatifs", "/comparatifs/evil-vs-gone", "/comparatifs/evil-vs-gnoe", "/cimetiere", "/cimetiere/gone", "/categories",
	} {
		body := visit(handler, http.MethodGet, target).Body.String()
		if strings.Contains(body, "<script>alert") || strings.Contains(body, `onmouseover="alert`) {
			t.Errorf("%s runs what the catalog says", target)
		}
		if !strings.Contains(body, "&lt;script&gt;alert") {
			t.Errorf("%s does not show what the catalog says", target)
		}
	}
}

// A tool that is retired, or back, is found at its other address.
func TestRetiredToolsAreElsewhere(t *testing.T) {
	handler := onSQLite(t)
	body := says(t, handler, "/cimetiere", 200)
	_, rest, _ := strings.Cut(body, `<li><a href="/cimetiere/`)
	slug, _, _ := strings.Cut(rest, `"`)
	says(t, handler, "/cimetiere/"+slug, 200, "What happened", "What to use instead")
	for from, to := range map[string]string{"/tools/" + slug: "/cimetiere/" + slug, "/cimetiere/plume": "/tools/plume"} {
		if got := visit(handler, http.MethodGet, from); got.Code != 302 || got.Header().Get("Location") != to {
			t.Errorf("%s: %d %s", from, got.Code, got.Header().Get("Location"))
		}
	}
}

func TestEmptyCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := serving(t, s)
		says(t, handler, "/", 200, "Nothing is published yet")
		if got := visit(handler, http.MethodGet, "/").Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("what will not last may be kept: %s", got)
		}
		for _, path := range []string{"/tools", "/comparatifs", "/cimetiere", "/categories"} {
			says(t, handler, path, 200)
		}
		publish(t, s, demo.Catalog)
		says(t, handler, "/", 200, "<dd>48</dd>") // what was empty is not kept
	})
}
