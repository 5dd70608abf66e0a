package site_test

import (
	"bytes"
	"cmp"
	escape "html"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// creditLine ends every page as Markdown, with the punctuation of its language.
var creditLine = regexp.MustCompile(`\nSource\x{a0}?: palmares \(https://palmares\.example\)\n$`)

// Names have typographic apostrophes, except in responses of the API.
func TestNamesAreTypeset(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, bytes.ReplaceAll(demo.Catalog(), []byte("Bosco & Matelots"), []byte("Bosco d'Or")))
	handler := newSite(t, s)
	get(t, handler, "/en/", 200, "Bosco d’Or</a>", `<i>&#34;name&#34;</i>: &#34;Bosco d&#39;Or&#34;,`)
	for _, path := range []string{"/tools/clap-aout", "/tools?q=clap", "/compare/clap-aout/plume"} {
		if body := get(t, handler, path, 200); !strings.Contains(body, "Clap d’Août") || strings.Contains(body, "Clap d&#39;Août") {
			t.Errorf("%s: got no name with a typographic apostrophe, want one", path)
		}
	}
}

func TestPages(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		get(t, handler, "/tools", 200, "1–48 of 48", "Écritoire &amp; Cie", "€29 per month")
		get(t, handler, "/tools/plume", 200, "<h1>Plume</h1>", `<span class="score good">7.0</span>`, "<dd>€19.90 per month</dd>", "€24.90/month", `<path class="s0" `, "Écritoire &amp; Cie",
			`href="/api/v1/tools/plume"`, `href="/api/v1/pricing/plume"`, `href="/explorer?path=%2Fapi%2Fv1%2Ftools%2Fplume"`, `Alternatives in <span >Writing</span>`,
			"<title>7\u00a0Apr\u00a02025 · €14.90</title>", ">€/month</text>", ">€19.90</text>", ">€0</text>", `href="/tools/plume?chart=history.svg"`, `href="/tools/plume?chart=history.png"`)
		get(t, handler, "/comparatifs", 200, "1–13 of 13", "Plume or Écritoire &amp; Cie?")
		get(t, handler, "/comparatifs/plume-vs-ecritoire-cie", 200, "<strong>Écritoire &amp; Cie</strong> wins", `class="winner"`, `href="/tools/plume"`)
		get(t, handler, "/categories", 200, "Writing", `href="/categories/redaction"`, `href="/categories/code" >Code</a>`)
		get(t, handler, "/cimetiere", 200, "1–10 of 10", "acquired")
	})
}

// Every page has a Markdown version, at the URL that it links to and by
// negotiation.
func TestMarkdownVersions(t *testing.T) {
	link := regexp.MustCompile(`<link rel="alternate" type="text/markdown" href="([^"]+)">`)
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"/":                                   "- tools: 48",
			"/tools?category=code&sort=name_asc":  "| Category |",
			"/tools/plume":                        "# Plume\n",
			"/comparatifs":                        "# Comparisons\n",
			"/comparatifs/plume-vs-ecritoire-cie": "wins",
			"/categories":                         "# Categories\n",
			"/cimetiere":                          "# ",
			"/cimetiere/buvard":                   "# Buvard\n",
			"/changes":                            "# Changes to the catalog\n",
			"/editions/1":                         "# Edition 1",
			"/tools/plume/follow":                 "# Follow Plume\n",
			"/tools/plume?as_of=1":                "as of edition 1",
		} {
			found := link.FindStringSubmatch(get(t, handler, target, 200))
			if found == nil {
				t.Errorf("%s: got no link to Markdown, want one", target)
				continue
			}
			byPath := visit(handler, http.MethodGet, escape.UnescapeString(found[1]))
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Header.Set("Accept", "text/markdown, text/html;q=0.9")
			negotiated := httptest.NewRecorder()
			handler.ServeHTTP(negotiated, r)
			for _, got := range []*httptest.ResponseRecorder{byPath, negotiated} {
				if body := got.Body.String(); got.Code != 200 || got.Header().Get("Content-Type") != page.MarkdownType || !strings.Contains(body, want) ||
					!creditLine.MatchString(body) || strings.Contains(body, "](/") || strings.Contains(body, "<p") {
					t.Errorf("%s: got %d, %s, want Markdown with %q:\n%s", target, got.Code, got.Header().Get("Content-Type"), want, body)
				}
			}
		}
		if got := visit(handler, http.MethodGet, "/tools/nobody.md"); got.Code != 404 || got.Header().Get("Content-Type") != page.MarkdownType || !strings.HasPrefix(got.Body.String(), "# Page not found\n") {
			t.Errorf("unknown tool: got %d %s, want 404 as Markdown", got.Code, got.Body)
		}
	})
}

// The link to the explorer has a valid operation and its variables.
func TestExplorerLink(t *testing.T) {
	body := get(t, onSQLite(t), "/tools/plume", 200)
	_, rest, _ := strings.Cut(body, `href="/explorer?query=`)
	address, _, _ := strings.Cut(rest, `"`)
	values, err := url.ParseQuery("query=" + escape.UnescapeString(address))
	check.OK(t, err)
	if _, err := graph.NewOperation(values.Get("query")); err != nil {
		t.Errorf("got %v for %s, want a valid operation", err, values.Get("query"))
	}
	check.Equal(t, values.Get("variables"), `{"language":"en","slug":"plume"}`, "variables")
}

func TestFiltersAndOrder(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		all := listed(get(t, handler, "/tools", 200))
		code := listed(get(t, handler, "/tools?category=code&q=&pricing=&icp=&score_min=&price_max=&sort=score_desc", 200,
			`<option value="code" selected >`, `href="/api/v1/tools?category=code"`))
		if len(code) == 0 || len(code) >= len(all) {
			t.Errorf("category: got %d of %d tools, want some", len(code), len(all))
		}
		check.Slices(t, listed(get(t, handler, "/tools?q=ECRITOIRE", 200, `value="ECRITOIRE"`)), []string{"ecritoire-cie"}, "search: want ecritoire-cie")
		if found := listed(get(t, handler, "/tools?pricing=gratuit", 200)); len(found) == 0 || len(found) >= len(all) {
			t.Errorf("pricing: got %d of %d tools, want some", len(found), len(all))
		}
		if good := listed(get(t, handler, "/tools?score_min=8,5", 200)); len(good) == 0 || len(good) >= len(all) || !slices.Equal(good, all[:len(good)]) {
			t.Errorf("score_min: got %v, want the first of %v", good, all)
		}
		up, down := listed(get(t, handler, "/tools?sort=name_asc", 200)), listed(get(t, handler, "/tools?sort=name_desc", 200))
		slices.Reverse(down)
		check.Must(t, len(up), len(all), "sort: want the same")
		check.Slices(t, up, down, "sort: want the same")
		get(t, handler, "/tools?q=nobodyhasthis", 200, "No tools match your filters.", "Show all tools")
		get(t, handler, "/tools?page=9", 200, "past the end of the list", `href="/tools?page=1"`)
		get(t, handler, "/tools?category=nope", 200, `<option value="nope" selected>nope (unknown)</option>`, "There is no category “nope”.")
		get(t, handler, "/cimetiere?category=nope", 200, "No retired tools match your filters.")
		get(t, handler, "/tools?sort=monthly_price_asc", 200, "Prices are compared per month", `<option value="monthly_price_asc" selected>Lowest price first</option>`)
		get(t, handler, "/cimetiere?reason=mort", 200, "shut down")
		get(t, handler, "/comparatifs?category=code", 200, `<option value="code" selected >Code</option>`) // without a number of tools
		get(t, handler, "/comparatifs", 200, "Sténo Flash has been retired.", "Plume keeps the advantage of style and of a free tier.")
	})
}

func TestPaging(t *testing.T) {
	var records []any
	for i := range 120 {
		records = append(records, feedtest.Tool("tool-"+strings.Repeat("i", i/26+1)+string(rune('a'+i%26))))
	}
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", records...))
		handler := newSite(t, s)
		first := get(t, handler, "/tools?sort=name_asc", 200, "1–50 of 120", "Page 1 of 3", `rel="next" href="/tools?page=2&amp;sort=name_asc"`)
		if strings.Contains(first, `rel="prev"`) {
			t.Error("first page: got a link to a previous page, want none")
		}
		get(t, handler, "/tools?sort=name_asc&page=2", 200, "51–100 of 120", `rel="prev" href="/tools?page=1&amp;sort=name_asc"`)
		last := get(t, handler, "/tools?page=3", 200, "101–120 of 120")
		if strings.Contains(last, `rel="next"`) || len(listed(last)) != 20 {
			t.Errorf("got %d tools on the last page, want 20 and no next page", len(listed(last)))
		}
		get(t, handler, "/tools?page=7", 200, `rel="prev" href="/tools?page=3"`)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", records[:110]...))
		get(t, newSite(t, s), "/tools?sort=name_asc&as_of=1&page=2", 200, "51–100 of 120",
			`rel="prev" href="/tools?as_of=1&amp;page=1&amp;sort=name_asc"`, `rel="next" href="/tools?as_of=1&amp;page=3&amp;sort=name_asc"`)
	})
}

// Equivalent URLs share a cached page.
func TestEquivalentURLs(t *testing.T) {
	handler := onSQLite(t)
	for _, same := range [][]string{
		{"/tools", "/tools?page=1", "/tools?page=01", "/tools?sort=score_desc&q=", "/tools?nothing=known"},
		{"/tools?q=plume", "/tools?q=%20plume%20"},
		{"/tools?score_min=8.5", "/tools?score_min=8,5", "/tools?score_min=08.50", "/tools?sort=score_desc&score_min=8.5"},
	} {
		first := visit(handler, http.MethodGet, same[0])
		for _, target := range same[1:] {
			if got := visit(handler, http.MethodGet, target); got.Code != 200 || got.Header().Get("Etag") != first.Header().Get("Etag") {
				t.Errorf("%s: got %d with another ETag, want the page of %s", target, got.Code, same[0])
			}
		}
	}
}

// A page links to REST only if there is an equivalent request.
func TestRESTLink(t *testing.T) {
	handler := onSQLite(t)
	for target, rest := range map[string]string{
		"/tools?score_min=8,5":                             "/api/v1/tools?score_min=8.5",
		"/tools?category=code&sort=name_asc":               "/api/v1/tools?category=code&amp;sort=name_asc",
		"/cimetiere?reason=mort":                           "/api/v1/cimetiere?reason=mort",
		"/tools?pricing=gratuit":                           "/api/v1/tools?pricing=gratuit",
		"/tools?q=x":                                       "/api/v1/tools?search=x",
		"/tools?sort=price_asc":                            "",
		"/tools?price_max=10&icp=vibe_coder&sort=name_asc": "/api/v1/tools?icp=vibe-coder&amp;price_max=10&amp;sort=name_asc",
	} {
		body := get(t, handler, target, 200, "This page’s query")
		if rest != "" && !strings.Contains(body, `<a href="`+rest+`">JSON</a>`) || rest == "" && strings.Contains(body, ">JSON</a>") {
			t.Errorf("%s: got another link to REST, want %q", target, rest)
		}
	}
}

// Prices for different billing periods are not drawn in one chart.
func TestPricesOfSeveralPeriods(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one")))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("one", func(tool *record.Tool) { tool.Price, tool.UpdatedAt = "240 €/an", "2026-11-02" })))
	body := get(t, newSite(t, s), "/tools/one", 200, "There are no price or score changes to chart.", "€20/month", "€240/year")
	if strings.Contains(body, "price has not changed") {
		t.Error(`got "has not changed", want the change listed`)
	}
}

func TestCatalogTextIsEscaped(t *testing.T) {
	const evil = `</script><script>alert("1")</script>`
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-01", feedtest.Tool("evil"), feedtest.Tool("worse")))
	hostile := func(slug string) *record.Tool {
		return feedtest.Tool(slug, func(tool *record.Tool) {
			tool.Name, tool.Tagline, tool.Domain, tool.Category = evil, evil, `x" onmouseover="alert(1)`, "evil"
			tool.Price, tool.UpdatedAt = "1 €/"+evil, "2026-11-01"
			tool.PriceHistory = []record.PriceChange{{ChangedAt: "2026-05-01", Pricing: "payant", Price: "1 €/" + evil, PreviousPricing: "payant", PreviousPrice: "2 €/" + evil}}
			tool.Sections = []record.Section{{Section: "verdict", Text: evil}, {Section: evil, Text: evil}}
		})
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01",
		&record.Category{Slug: "evil", Label: evil}, hostile("evil"), hostile("worse"),
		&record.Retired{Slug: "gone", Name: evil, Category: "evil", Reason: "mort", RetiredAt: "2026-03-14", Note: evil},
		&record.Comparison{Slug: "evil-vs-gone", Title: evil, ToolA: "evil", ToolB: "gone", Winner: "evil", WinnerNote: evil,
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/evil-vs-gone"},
	))
	handler := newSite(t, s)
	for _, target := range []string{
		"/", "/tools", "/tools/evil", "/fr/tools/evil", "/tools?q=" + url.QueryEscape(evil), "/tools/" + url.PathEscape(evil), "/tools/evill", "/tools?category=evil",
		"/comparatifs", "/comparatifs/evil-vs-gone", "/comparatifs/evil-vs-gnoe", "/compare", "/compare/evil/worse", "/cimetiere", "/cimetiere/gone",
		"/categories", "/categories/evil", "/search?q=script", "/changes", "/changes?tool=evil", "/changes?tool=" + url.QueryEscape(evil), "/prices", "/trends",
	} {
		body := visit(handler, http.MethodGet, target).Body.String()
		if strings.Contains(body, "<script>alert") || strings.Contains(body, `onmouseover="alert`) {
			t.Errorf("%s: got unescaped text, want it escaped", target)
		}
		check.Contains(t, body, "&lt;script&gt;alert(&#34;1&#34;)", "%s: text from the catalog", target)
	}
	check.Lacks(t, visit(handler, http.MethodGet, "/search/suggestions?q=script").Body.String(), "<script>")
}

// The page of a retired tool redirects to the graveyard, and the other way round.
func TestRetiredToolsRedirect(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, "/cimetiere", 200)
	_, rest, _ := strings.Cut(body, `<li><a href="/cimetiere/`)
	slug, _, _ := strings.Cut(rest, `"`)
	get(t, handler, "/cimetiere/"+slug, 200, "What happened", "Alternatives")
	for from, to := range map[string]string{"/tools/" + slug: "/cimetiere/" + slug, "/cimetiere/plume": "/tools/plume"} {
		if got := visit(handler, http.MethodGet, from); got.Code != 302 || got.Header().Get("Location") != to {
			t.Errorf("%s: got %d to %q, want 302 to %q", from, got.Code, got.Header().Get("Location"), to)
		}
	}
}

func TestEmptyCatalog(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler := newSite(t, s)
		get(t, handler, "/", 200, "Nothing has been published yet")
		check.Equal(t, visit(handler, http.MethodGet, "/").Header().Get("Cache-Control"), "no-store", "Cache-Control")
		for _, path := range []string{"/tools", "/comparatifs", "/cimetiere", "/categories"} {
			get(t, handler, path, 200)
		}
		feedtest.Publish(t, s, demo.Catalog())
		get(t, handler, "/", 200, "<dd>48</dd>") // the empty page was not cached
	})
}

var (
	histogramRow = regexp.MustCompile(`<tr><th scope="row">(\d+) to (?:under )?(\d+)</th><td class="number">([\d,]+)</td></tr>`)
	histogramBar = regexp.MustCompile(`<rect class="(?:excellent|good|fair|poor)" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)" rx="1.5"><title>[^<]* · ([1-9]\d*)</title>`)
	categoryRow  = regexp.MustCompile(`(?s)<tr>\s*<th scope="row">\S.*?<a href="/categories/([a-z]+)".*?<span class="score [a-z]+">([\d.]+)</span>.*?<rect width="([\d.]+)" height="6"/>`)
)

// The bars of the histogram match its table.
func TestHistogram(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		body := get(t, handler, "/", 200)
		var counts, sum, most int
		var shown []string
		for _, row := range histogramRow.FindAllStringSubmatch(body, -1) {
			n, _ := strconv.Atoi(row[3])
			counts, sum, most = counts+1, sum+n, max(most, n)
			if n > 0 {
				shown = append(shown, row[3])
			}
		}
		check.Equal(t, counts, 10)
		check.Equal(t, sum, 42)
		bars := histogramBar.FindAllStringSubmatch(body, -1)
		check.Must(t, len(bars), 2*len(shown), "bars of two drawings")
		bars = bars[:len(shown)]
		for i, bar := range bars {
			n, _ := strconv.Atoi(bar[3])
			top, _ := strconv.ParseFloat(bar[1], 64)
			height, _ := strconv.ParseFloat(bar[2], 64)
			if bar[3] != shown[i] || math.Abs(height-151.2*float64(n)/float64(most)) > 0.1 || math.Abs(top+height-205) > 0.1 {
				t.Errorf("got a bar for %s at %v with height %v, want one for %s in proportion", bar[3], top, height, shown[i])
			}
		}
	})
}

// The width of a bar is the average score in percent.
func TestCategoriesAreInOrder(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newLocalized(t, s)
	links, columns := `<a href="/../(?:categories/|changes\?category=)[a-z]+(?:&amp;release=2)?"[^>]*>([^<]+)</`, `<th scope="col" class="number">([^<]+)</th>`
	for _, page := range [][3]string{
		{"/en/", links, "Agents Chat Code Images Research Video Voice Writing"}, {"/en/categories", links, "Agents Chat Code Images Research Video Voice Writing"},
		{"/fr/categories", links, "Agents Chat Code Image Recherche Rédaction Vidéo Voix"}, {"/en/editions/2", links, "Agents Images Voice Code Research Video Writing Chat"},
		{"/en/trends", columns, "Agents Automation (removed) Chat Code Images Research Video Voice Writing"},
	} {
		var labels []string
		_, main, _ := strings.Cut(get(t, handler, page[0], 200), "<main")
		if page[1] == columns {
			_, main, _ = strings.Cut(main, "<h2>Categories</h2>")
		}
		for _, m := range regexp.MustCompile(page[1]).FindAllStringSubmatch(main, -1) {
			if !slices.Contains(labels, m[1]) {
				labels = append(labels, m[1])
			}
		}
		check.Equal(t, strings.Join(labels, " "), page[2], "%s", page[0])
	}
	get(t, handler, "/en/tools", 200, `>Research (6)</option>
<option value="video" >Video (6)</option>
<option value="voix" >Voice (6)</option>
<option value="redaction" >Writing (6)</option>`)
}

func TestCategoryBars(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		body := get(t, handler, "/categories", 200)
		rows := categoryRow.FindAllStringSubmatch(body, -1)
		check.Must(t, len(rows), 8, "categories with a bar")
		for _, row := range rows {
			average, _ := strconv.ParseFloat(row[2], 64)
			width, _ := strconv.ParseFloat(row[3], 64)
			if len(row[2]) != len("7.64") || math.Abs(width-10*average) > 0.05 || width < 10 {
				t.Errorf("%s: got a bar %s wide for an average of %s, want ten times the average", row[1], row[3], row[2])
			}
		}
	})
}

// written is a text in the catalog that no page contains by itself.
const written = "Écrit"

// Text from the catalog is marked as French, and nothing else is.
func TestLanguages(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	tool := func(slug, before string) *record.Tool {
		return feedtest.Tool(slug, func(tool *record.Tool) {
			tool.Category, tool.Tagline, tool.Price = "ecrit", written, "20 €/"+written
			tool.PriceHistory = []record.PriceChange{{ChangedAt: "2026-05-01", Pricing: "payant", Price: tool.Price, PreviousPricing: "payant", PreviousPrice: before}}
		})
	}
	catalog := func(date, price string) []byte {
		one := tool("one", "10 €/"+written)
		one.Price = price
		return feedtest.Catalog(date, &record.Category{Slug: "ecrit", Label: written}, one, tool("two", "10 €/"+written),
			&record.Retired{Slug: "gone", Name: "Gone", Category: "ecrit", Reason: "mort", RetiredAt: "2026-03-14", Note: written},
			&record.Comparison{Slug: "one-vs-gone", Title: written, ToolA: "one", ToolB: "gone", Winner: "one", WinnerNote: written,
				Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/one-vs-gone"})
	}
	feedtest.Publish(t, s, catalog("2026-11-01", "20 €/"+written))
	feedtest.Publish(t, s, catalog("2026-11-02", "30 €/"+written)) // shown on the home page
	handler := newSite(t, s)
	for _, target := range []string{"/", "/tools", "/tools/one", "/comparatifs", "/comparatifs/one-vs-gone", "/comparatifs/one-vs-gnoe", "/cimetiere", "/cimetiere/gone", "/categories"} {
		document, err := html.Parse(visit(handler, http.MethodGet, target).Body)
		check.OK(t, err)
		found := map[string]int{}
		eachText(document, "", func(text, language string) {
			if strings.Contains(text, written) {
				found[language]++
			}
			if language == "fr" && strings.Contains(text, "ools") {
				t.Errorf("%s: got English text %q marked as French, want only text from the catalog", target, text)
			}
		})
		if found["fr"] == 0 || len(found) != 1 {
			t.Errorf("%s: got languages %v for text from the catalog, want fr only", target, found)
		}
	}
}

// eachText calls do for each text of a page with its language.
func eachText(node *html.Node, language string, do func(text, language string)) {
	if node.Data == "head" && node.Type == html.ElementNode {
		return
	}
	for _, attribute := range node.Attr {
		if attribute.Key == "lang" {
			language = cmp.Or(attribute.Val, language)
		}
	}
	if node.Type == html.TextNode {
		do(node.Data, language)
	}
	for child := range node.ChildNodes() {
		eachText(child, language, do)
	}
}
