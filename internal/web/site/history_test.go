package site_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	escape "html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// changedCatalog publishes four releases with a change of each kind.
func changedCatalog(t testing.TB, s *store.Store) {
	t.Helper()
	price := func(slug, price string) any {
		return feedtest.Tool(slug, func(tool *record.Tool) { tool.Price, tool.UpdatedAt = price, "2026-10-20" })
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-09-01", feedtest.Tool("one"), feedtest.Tool("two"), feedtest.Tool("three")))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-01", price("one", "25 €/mois"), feedtest.Tool("two"), feedtest.Tool("three"), feedtest.Tool("four")))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-20", price("one", "25 €/mois"), price("two", "10 €/mois"), feedtest.Tool("four"),
		&record.Retired{Slug: "three", Name: "Outil three", Category: "code", Reason: "mort", RetiredAt: "2026-10-15", Note: "Fini."}))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", price("one", "25 €/mois"), price("two", "10 €/mois"),
		feedtest.Tool("four", func(tool *record.Tool) { score := 9.9; tool.Score = &score; tool.Sections[0].Text = "Mieux." }),
		&record.Category{Slug: "three", Label: "Trois"},
		&record.Retired{Slug: "three", Name: "Outil three", Category: "code", Reason: "mort", RetiredAt: "2026-10-15", Note: "Vendu."}))
}

func TestChangesPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		changedCatalog(t, s)
		handler := newLocalized(t, s)
		body := get(t, handler, "/en/changes", 200, `<a href="/en/editions/4">Edition 4</a>`, `<a href="/en/editions/1">Edition 1</a>`, `<h2 id="release-4">`, `<td class="number wide-only"><span class="aside">−1</span> 3</td>`,
			">Outil four gains the most: &#43;2.4.</p>", `<a class="button quiet" href="/en/editions/4">Read edition 4</a>`,
			"/feeds/changes.atom", "/en/guides/webhooks", `<meta name="description" content="Every edition`)
		if strings.Contains(body, `id="release-3"`) {
			t.Error("got the changes of another edition, want those of the newest")
		}
		get(t, handler, "/fr/changes", 200, "<h1>Changements du catalogue</h1>", `<a href="/fr/editions/4">Édition 4</a>`, ">Plus forte hausse de note\u00a0: Outil four, &#43;2,4.</p>")
		for filter, want := range map[string][2]string{
			"type=category_created":     {"Trois", "Outil three"},
			"type=retired_updated":      {"Outil three", ">Trois</a>"},
			"type=tool_retired":         {"Outil three", "Outil four"},
			"type=price_changed":        {"Outil two", "Outil three"},
			"type=tool_updated":         {"Review text", "Outil three"},
			"tool=four":                 {"Only changes to Outil four.", "Outil one"},
			"type=comparatif_published": {"No changes match your filters.", "Outil"},
			"category=voix":             {"No changes match your filters.", "Outil"},
			"as_of=2&category=code":     {`href="/en/tools/four?as_of=2"`, "Outil three"},
		} {
			body := get(t, handler, "/en/changes?"+filter, 200, want[0])
			_, list, _ := strings.Cut(body, "</form>")
			if strings.Contains(list, want[1]) || strings.Contains(list, "was published with") {
				t.Errorf("%s: got %q or the first release, want it left out", filter, want[1])
			}
		}
		get(t, handler, "/en/changes?type=x", 400)
		get(t, handler, "/en/changes?category=code&after=x", 400)
	})
}

// The page of an edition has all of its changes, counts them by kind and by category, and
// an image for other sites.
func TestEditionPage(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	changedCatalog(t, s)
	handler := newLocalized(t, s)
	second := get(t, handler, "/en/editions/2", 200, "<title>Edition 2: 1 new tool · 1 price increase · palmares</title>", `<del>€20/month</del>`, `<ins>€25/month</ins>`, "&#43;25%", `href="/en/tools/four"`,
		`<link rel="canonical" href="https://palmares.example/en/editions/2">`, `<meta property="og:image" content="https://palmares.example/en/editions/2?chart=edition.png">`,
		`<td>1 new · 1 price</td>`, `rel="prev" href="/en/editions/1"`, `rel="next" href="/en/editions/3"`,
		`href="/en/tools?as_of=2"`, "/feeds/changes.atom")
	check.Equal(t, strings.Count(second, "€25/month"), 1, "price times")
	get(t, handler, "/en/editions/3", 200, "1 retired tool · 1 price decrease", "Largest price decrease: Outil two, −50%.", "shut down", "−50%", `<span class="part" lang="fr">Fini.</span>`)
	get(t, handler, "/fr/editions/4", 200, "<title>Édition 4\u00a0: 1 note en hausse · 2 autres changements · palmares</title>", "&#43;", "<h2>Changements de note</h2>", `<span class="mark">`)
	get(t, handler, "/en/editions/4", 200, "<h2>New categories</h2>", `<li><a href="/en/categories/three" lang="fr">Trois</a></li>`, "<h2>Updates to retired tools</h2>", `<svg class="bar-of-change better"`)
	first := get(t, handler, "/fr/editions/1", 200, "Le catalogue a été publié avec 3 outils.")
	if strings.Contains(first, `<ul class="events">`) {
		t.Error("got changes in the first edition, want none")
	}
	if got := visit(handler, http.MethodGet, "/en/editions/2?chart=edition.png"); got.Code != 200 || !strings.HasPrefix(got.Body.String(), "\x89PNG") {
		t.Errorf("got %d %s, want an image", got.Code, got.Header().Get("Content-Type"))
	}
	for path, status := range map[string]int{"/en/editions/5": 404, "/en/editions/0": 404, "/en/editions/02": 404, "/en/editions/x": 404} {
		get(t, handler, path, status)
	}
	for from, to := range map[string]string{
		"/en/releases": "/en/changes", "/fr/releases.md": "/fr/changes.md", "/en/editions": "/en/changes", "/en/changes?release=3": "/en/editions/3", "/en/releases?after=x": "/en/changes",
	} {
		if got := visit(handler, http.MethodGet, from); got.Header().Get("Location") != to || got.Code != 301 && from != "/en/changes?release=3" {
			t.Errorf("%s: got %d to %q, want 301 to %s", from, got.Code, got.Header().Get("Location"), to)
		}
	}
}

// The changes of each edition explain its totals, and those of a category are all counted above.
func TestEditionsReconcile(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newLocalized(t, s)
	sum := regexp.MustCompile(`(\d+)((?: [+−] \d+ [a-z ]+)+) = (\d+) ([a-z ]+?)s?\b`)
	var before map[string]string
	for number := 1; number <= 8; number++ {
		body := escape.UnescapeString(get(t, handler, fmt.Sprintf("/en/editions/%d", number), 200))
		_, lead, _ := strings.Cut(body, "Data as of ")
		lead, _, _ = strings.Cut(lead, "</p>")
		totals := map[string]string{}
		for _, m := range regexp.MustCompile(`(\d+) (tool|comparison|retired)`).FindAllStringSubmatch(lead, -1) {
			totals[m[2]] = m[1]
		}
		explained := map[string]bool{}
		for _, m := range sum.FindAllStringSubmatch(body, -1) {
			what, total := m[4], 0
			fmt.Sscan(m[1], &total)
			for _, part := range regexp.MustCompile(`([+−]) (\d+)`).FindAllStringSubmatch(m[2], -1) {
				count := 0
				fmt.Sscan(part[2], &count)
				total += map[string]int{"+": 1, "−": -1}[part[1]] * count
			}
			if m[1] != before[what] || m[3] != totals[what] || m[3] != strconv.Itoa(total) {
				t.Errorf("edition %d: got %q, want %s to %s", number, m[0], before[what], totals[what])
			}
			explained[what] = true
		}
		for what, total := range totals {
			check.True(t, number == 1 || explained[what] || total == before[what], "edition %d: got %s %s after %s without a reason", number, total, what, before[what])
		}
		figures := map[string]int{}
		for _, m := range regexp.MustCompile(`<dt>([^<]+)</dt><dd>(\d+)</dd>`).FindAllStringSubmatch(body, -1) {
			for column, names := range map[string]string{"new": "new tool", "retired": "retired tool", "scores": "score", "prices": "price"} {
				if strings.Contains(m[1], names) || column == "new" && strings.Contains(m[1], "active again") {
					count, _ := strconv.Atoi(m[2])
					figures[column] += count
				}
			}
		}
		for _, cell := range regexp.MustCompile(`<td>([^<]+)</td></tr>`).FindAllStringSubmatch(body, -1) {
			for _, m := range regexp.MustCompile(`(\d+) (new|active|closed|score|price)`).FindAllStringSubmatch(cell[1], -1) {
				count, _ := strconv.Atoi(m[1])
				figures[map[string]string{"new": "new", "active": "new", "closed": "retired", "score": "scores", "price": "prices"}[m[2]]] -= count
			}
		}
		for column, left := range figures {
			check.Equal(t, left, 0, "edition %d: %s that no category has", number, column)
		}
		before = totals
	}
	get(t, handler, "/en/editions/4", 200, "<dt>new tool</dt><dd>1</dd>", "<dt>tool active again</dt><dd>1</dd>", `<span class="in-french">`, "French name")
	get(t, handler, "/en/editions/8", 200, "Rushes Propres is now first in Video.", `<a href="/en/tools/bosco-et-matelots">Bosco &amp; Matelots</a> <span class="score excellent">9.4</span>`, "44 &#43; 4 new = 48 tools · 11 − 1 removed = 10 retired tools · 13 &#43; 2 new − 2 removed = 13 comparisons",
		`<ins>7.7</ins></span> <strong class="part worse"><span aria-hidden="true">▼</span> −0.4</strong></span><span class="mark">closes on 31`, "Clap d’Août loses the most: −0.4. Clap d’Août closes on 31\u00a0March\u00a02027.", `<h2>Removed from the graveyard</h2>`, `<a href="/en/graveyard/tandem-code?as_of=7">`, "<dt>tool removed from the graveyard</dt>")
}

// A page with all kinds shortens long groups, and links to all of their changes. The
// kinds are in order, and a price is one line.
func TestChangesAreGrouped(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-01", feedtest.Tool("zero"), feedtest.Tool("gone"), feedtest.Tool("price"), feedtest.Tool("tagline")))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-02", feedtest.Tool("zero"), feedtest.Tool("price"), feedtest.Tool("tagline"),
		&record.Retired{Slug: "gone", Name: "Parti", Category: "code", Reason: "mort", RetiredAt: "2026-10-01", Note: "Fini."}))
	tools := []any{feedtest.Tool("gone", func(tool *record.Tool) { tool.Name = "Parti" })}
	for i := range 25 {
		tools = append(tools, feedtest.Tool(fmt.Sprintf("tool-%02d", i)))
	}
	score := func(tool *record.Tool) { value := 9.5; tool.Score, tool.Tagline = &value, "Autre." }
	tools = append(tools, feedtest.Tool("zero", score), feedtest.Tool("price", func(tool *record.Tool) { tool.Price = "25 €/mois" }), feedtest.Tool("tagline", func(tool *record.Tool) { tool.Tagline = "Mieux." }))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-03", tools...))
	handler := newLocalized(t, s)
	body := get(t, handler, "/en/editions/3", 200, `href="/en/changes?release=3&amp;type=tool_created" rel="nofollow">Show all`,
		`Parti</a> <span class="what"><span class="part" lang="fr">Code</span>`, `<span class="part">changed: tagline</span>`, `>Outil price</a> <span class="what"><span class="part" lang="fr">Code</span><span class="part"><span class="visually-hidden">from </span><del>€20/month</del>`)
	var order []int
	for _, kind := range []string{"Price changes", "Score changes", "New tools", "Back in the catalog", "Other updates"} {
		order = append(order, strings.Index(body, "<h2>"+kind))
	}
	if !slices.IsSorted(order) || order[0] < 0 {
		t.Errorf("got groups at %v, want all of them in order", order)
	}
	check.Equal(t, strings.Count(body, `<li><a href="/en/tools/tool-`), 10, "new tools")
	check.Equal(t, strings.Count(body, `href="/en/tools/price"`), 1, "lines about the tool with a new price")
	all := get(t, handler, "/en/changes?release=3&type=tool_created", 200, "Only changes in edition 3.")
	if got := strings.Count(all, `<li><a href="/en/tools/tool-`); got != 25 || strings.Contains(all, `id="release-2"`) {
		t.Errorf("got %d new tools, want 25 and no other release", got)
	}
}

// Changes to removed items have the name they had, and link to a release that has
// them; the date of a release is that of its feed.
func TestChangesOfRemovedItems(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newLocalized(t, s)
	get(t, handler, "/en/prices", 200, `<a href="/en/tools/aquatinte-3?as_of=3">Aquatinte 3</a>`, `<a href="/en/tools/tandem-code?as_of=2">Tandem Code</a>`, `<time datetime="2026-05-05">`, `<a href="/en/tools/plume">Plume</a>`, `since <time datetime="2026-09-14">`)
	get(t, handler, "/en/compare/plume/ecritoire-cie", 200, `<a href="/en/comparisons" aria-current="page">`, `role="rowheader"`)
	get(t, handler, "/fr/changes?category=image", 200, `<a href="/fr/cimetiere/aquatinte-3?as_of=6">Aquatinte 3</a>`)
	get(t, handler, "/fr/changes?type=comparatif_removed", 200, `href="/fr/comparatifs/lanterne-sourde-vs-glaneuse-aout?as_of=`)
	get(t, handler, "/fr/changes", 200, `<h2 id="release-8"><a href="/fr/editions/8">Édition 8</a> <span class="aside"><time datetime="2026-11-10">`, "publiée le ")
	get(t, handler, "/en/prices", 200, `Tandem Code</a> <span class="aside">(removed)</span>`)
	get(t, handler, "/en/changes?tool=aquatinte-3", 200, "Only changes to Aquatinte 3.", `href="/en/tools/aquatinte-3/changes.atom"`)
	get(t, handler, "/en/comparisons/enclume-8-vs-tandem-code?as_of=4", 200, `<a href="/en/comparisons">View the current catalog</a>`)
	get(t, handler, "/en/tools/plume", 200, `<link rel="alternate" type="application/atom+xml" title="Changes to Plume" href="/en/tools/plume/changes.atom">`, `href="/en/tools/plume/follow"`)
	get(t, handler, "/fr/cimetiere/buvard", 200, `href="/fr/tools/buvard/follow"`)
	get(t, handler, "/fr/categories/code", 200, `href="/fr/categories/code/changes.atom"`, `href="/fr/changes?category=code"`)
	// Titles are in the language of the page.
	get(t, handler, "/en/editions/8", 200, "Clap d’Août or Bobine &amp; Fils?")
	get(t, handler, "/fr/editions/8", 200, "Clap d’Août ou Bobine &amp; Fils\u00a0?")
}

// The pages of the timeline together have every change once.
func TestChangesAreCompleteOverPages(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-01", feedtest.Tool("zero")))
	tools := []any{feedtest.Tool("zero")}
	for i := range 230 {
		tools = append(tools, feedtest.Tool(fmt.Sprintf("tool-%d", i)))
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-10-02", tools...))
	handler := newLocalized(t, s)
	seen := map[string]int{}
	pages := 0
	for target := "/en/changes?type=tool_created"; target != ""; pages++ {
		body := get(t, handler, target, 200)
		for _, match := range regexp.MustCompile(`<li><a href="/en/tools/(tool-\d+)"`).FindAllStringSubmatch(body, -1) {
			seen[match[1]]++
		}
		_, rest, found := strings.Cut(body, `rel="next" href="`)
		target, _, _ = strings.Cut(escape.UnescapeString(rest), `"`)
		if !found {
			target = ""
		}
	}
	for slug, times := range seen {
		check.Equal(t, times, 1, "%s: it times", slug)
	}
	check.Equal(t, len(seen), 230)
	check.Equal(t, pages, 3)
}

func TestPricesPage(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		changedCatalog(t, s)
		handler := newLocalized(t, s)
		body := get(t, handler, "/en/prices", 200, "<del>€20/month</del>", "<ins>€25/month</ins>", "&#43;25%", "<ins>€10/month</ins>", "−50%", "Last 30 days", "Last 90 days", "/feeds/prices.atom")
		if figures := regexp.MustCompile(`<dd>(\d+)</dd>`).FindAllStringSubmatch(body, -1); len(figures) != 4 || figures[0][1] != "1" || figures[1][1] != "1" {
			t.Errorf("got figures %v, want one increase and one decrease", figures)
		}
		get(t, handler, "/fr/prices", 200, "<h1>Changements de prix</h1>", "<del>20\u00a0€/mois</del>", "&#43;25\u00a0%", "−50\u00a0%", "30 derniers jours", "<dt>hausse</dt>")
		if up := get(t, handler, "/en/prices?direction=up", 200, "&#43;25%", `<option value="up" selected>`); strings.Contains(up, "−50%") {
			t.Error("got a decrease, want increases only")
		}
		if down := get(t, handler, "/en/prices?direction=down", 200, "−50%"); strings.Contains(down, "&#43;25%") {
			t.Error("got an increase, want decreases only")
		}
		if earlier := get(t, handler, "/en/prices?as_of=2", 200, "&#43;25%"); strings.Contains(earlier, "−50%") {
			t.Error("got a later change, want those up to release 2")
		}
		get(t, handler, "/en/prices?category=voix", 200, "No price changes match your filters.")
		get(t, handler, "/en/prices?direction=x", 400)
	})
}

// A direction is found behind many changes in the other one.
func TestRarePriceDirection(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	catalog := func(date string, price func(i int) string) []byte {
		var tools []any
		for i := range 120 {
			tools = append(tools, feedtest.Tool(fmt.Sprintf("tool-%03d", i), func(tool *record.Tool) { tool.Price, tool.UpdatedAt = price(i), date }))
		}
		return feedtest.Catalog(date, tools...)
	}
	feedtest.Publish(t, s, catalog("2026-10-01", func(int) string { return "20 €/mois" }))
	feedtest.Publish(t, s, catalog("2026-10-02", func(i int) string {
		if i == 0 {
			return "10 €/mois"
		}
		return "30 €/mois"
	}))
	get(t, newLocalized(t, s), "/en/prices?direction=down", 200, "Outil tool-000", "−50%")
}

func TestTrendsPage(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		publishEditions(t, s)
		handler := newLocalized(t, s)
		body := get(t, handler, "/en/trends", 200, "Active tools", "at each edition, whenever they closed", "Average score by category", "Largest gains", `<p class="headline">Café Perroquet gains the most: &#43;0.5. Mirage à l’Huile loses the most: −0.8.</p>`, `<h3 id="tools">Active tools <span class="aside">48 · &#43;4 since 13`, `href="/en/tools/plume"`, `<path class="s0" stroke-width="2" d="M`, "<td class=\"number\">48</td>")
		get(t, handler, "/en/", 200, `<li data-rank="1"><div><a href="/en/tools/bosco-et-matelots">`, `<li data-rank="1"><div><a href="/en/tools/pigment-braise">`, `<li data-rank="3"><div>`) // equal scores share a rank
		first := regexp.MustCompile(`<path class="s0" stroke-width="2" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)L`).FindStringSubmatch(body)
		check.Must(t, len(first), 3, "heights of the first line")
		check.Equal(t, first[1], first[2], "a number lasts until the next edition")
		if charts, tables := strings.Count(body, `<figure class="figure">`), strings.Count(body, "<summary>Table and files"); charts != 6 || tables != 6 {
			t.Errorf("got %d charts and %d tables, want 6 of each", charts, tables)
		}
		if strings.Contains(body, " style=") || strings.Contains(body, "NaN") {
			t.Error("got an inline style or NaN, want none")
		}
		for target, want := range map[string]string{
			"/en/trends?chart=retired.svg": "image/svg+xml <svg xmlns", "/fr/trends?as_of=5&chart=category-prices.svg": "image/svg+xml <svg xmlns", "/en/trends?chart=tools.png": "image/png \x89PNG",
		} {
			if got := visit(handler, http.MethodGet, target); got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type")+" "+got.Body.String(), want) {
				t.Errorf("%s: got %d, %s, want %s", target, got.Code, got.Header().Get("Content-Type"), want)
			}
		}
		get(t, handler, "/en/trends?chart=nothing.svg", 404, "no such chart")
		get(t, handler, "/en/trends?chart=tools.exe", 404, "no such chart")
		get(t, handler, "/fr/trends", 200, "<h1>Tendances</h1>", "Outils actifs", "Prix mensuel moyen par catégorie", "novembre\u00a02026", "6,99")
		if earlier := get(t, handler, "/en/trends?as_of=5", 200, `<td class="number">43</td>`); strings.Contains(earlier, `<td class="number">48</td>`) {
			t.Error("got later figures, want those up to release 5")
		}
		found := regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`).FindStringSubmatch(body)
		var dataset struct {
			Type, License, TemporalCoverage string
			Distribution                    []struct{ ContentURL string }
		}
		if found == nil || json.Unmarshal([]byte(strings.ReplaceAll(found[1], "@type", "type")), &dataset) != nil || dataset.Type != "Dataset" ||
			dataset.License != "https://palmares.example/en/licence" || dataset.TemporalCoverage != "2026-03-03/2026-11-10" || len(dataset.Distribution) != 3 {
			t.Errorf("got %+v from %v, want a Dataset", dataset, found)
		}
	})
}

func TestGraveyardTimeline(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		publishEditions(t, s)
		handler := newLocalized(t, s)
		body := get(t, handler, "/en/graveyard", 200, `<h2 id="year-2026">2026</h2>`, `<h2 id="year-2024">2024</h2>`, `<time class="aside" datetime="2026-08-`, "Retirements by month", `<rect class="`, "by closing date, including before the first edition", `· <span >Code</span>`, `>Code</option>`)
		check.Equal(t, strings.Count(body, `<tr><th scope="row">`), 27, "months in the table")
		get(t, handler, "/fr/cimetiere", 200, "<h1>Cimetière</h1>", "Disparitions par mois")
		acquired := get(t, handler, "/en/graveyard?reason=acquis", 200, `<time class="aside" datetime="2025-06-`)
		check.Equal(t, strings.Count(acquired, `<tr><th scope="row">June`), 2, "want what the filter selects")
		check.Equal(t, strings.Count(acquired, `<td class="number">0</td>`), 17, "want what the filter selects")
	})
	s := testkit.Open(t, testkit.SQLite(t))
	changedCatalog(t, s)
	handler := newLocalized(t, s)
	get(t, handler, "/en/graveyard/three", 200, "In the catalog as an active tool", "<dd>1 month<", `<time datetime="2026-09-01">1`)
	get(t, handler, "/fr/cimetiere/three", 200, "Actif au catalogue pendant", "15\u00a0octobre\u00a02026", "1er\u00a0sept.\u00a02026")
}

func TestHistoryOfEmptyCatalog(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	handler := newLocalized(t, s)
	for _, path := range []string{"/changes", "/prices", "/trends", "/cimetiere"} {
		get(t, handler, page.LocalPath(lang.English, path), 200, "Nothing has been published yet.")
		get(t, handler, page.LocalPath(lang.French, path), 200)
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one")))
	get(t, handler, "/en/changes", 200, `<a href="/en/editions/1">`)
	get(t, handler, "/fr/editions/1", 200, "Le catalogue a été publié avec 1 outil.")
	get(t, handler, "/en/prices", 200, "No price has changed since the first edition.")
	get(t, handler, "/en/trends", 200, "Trends appear once a second edition is published.")
}

type sitemapURL struct {
	Loc     string `xml:"loc"`
	LastMod string `xml:"lastmod"`
	Links   []struct {
		Language string `xml:"hreflang,attr"`
		Address  string `xml:"href,attr"`
	} `xml:"http://www.w3.org/1999/xhtml link"`
}

func TestSitemap(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		publishEditions(t, s)
		handler := newLocalized(t, s)
		read := func(target string, into any) {
			t.Helper()
			got := visit(handler, http.MethodGet, target)
			if got.Code != 200 || got.Header().Get("Content-Type") != "application/xml; charset=utf-8" || xml.Unmarshal(got.Body.Bytes(), into) != nil {
				t.Fatalf("%s: got %d, %s, want XML", target, got.Code, got.Header().Get("Content-Type"))
			}
		}
		var index struct {
			XMLName  xml.Name     `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 sitemapindex"`
			Sitemaps []sitemapURL `xml:"sitemap"`
		}
		read("/sitemap.xml", &index)
		check.Must(t, len(index.Sitemaps), 5, "sitemaps")
		days := map[string]string{}
		for _, part := range index.Sitemaps {
			check.Equal(t, part.LastMod, "2026-11-10", "%s: lastmod", part.Loc)
			var urls struct {
				XMLName xml.Name     `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
				URLs    []sitemapURL `xml:"url"`
			}
			read(strings.TrimPrefix(part.Loc, "https://palmares.example"), &urls)
			for _, u := range urls.URLs {
				path := strings.TrimPrefix(u.Loc, "https://palmares.example")
				days[path] = u.LastMod
				get(t, handler, path, 200, `<link rel="canonical" href="`+escape.EscapeString(u.Loc)+`">`)
				if len(u.Links) != 3 || u.Links[0].Language != "en" || u.Links[1].Language != "fr" || u.Links[2].Language != "x-default" || u.Links[0].Address != u.Loc && u.Links[1].Address != u.Loc {
					t.Errorf("%s: got links %v, want both languages and x-default", u.Loc, u.Links)
				}
			}
		}
		// 48 tools, 13 comparisons, 10 retired tools in two languages, and the rest.
		if len(days) < 2*(48+13+10+10) || days["/fr/tools/plume"] == "" || days["/fr/tools/plume"] == days["/fr/tools"] || days["/en/graveyard/buvard"] == "" {
			t.Errorf("got %d URLs, Plume of %q, want all pages with the day of the tool", len(days), days["/fr/tools/plume"])
		}
		for _, name := range []string{"tools-2.xml", "tools-0.xml", "tools-01.xml", "tools-x.xml", "x.xml", "tools-1"} {
			check.Equal(t, visit(handler, http.MethodGet, "/sitemaps/"+name).Code, 404, name)
		}
		robots := visit(handler, http.MethodGet, "/robots.txt").Body.String()
		for _, line := range []string{"Sitemap: https://palmares.example/sitemap.xml\n", "Disallow: /*/account\n", "Disallow: /*/login\n"} {
			check.Contains(t, robots, line, "robots.txt")
		}
	})
}

// A list that does not fit into one sitemap is split, without gaps.
func TestSitemapParts(t *testing.T) {
	const count = 5_003
	s := testkit.Open(t, testkit.SQLite(t))
	var tools []any
	for i := range count {
		tools = append(tools, feedtest.Tool(fmt.Sprintf("tool-%d", i)))
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tools...))
	handler := newLocalized(t, s)
	seen := map[string]bool{}
	for part, want := range []int{10_000, 6} {
		body := visit(handler, http.MethodGet, fmt.Sprintf("/sitemaps/tools-%d.xml", part+1)).Body.String()
		found := regexp.MustCompile(`<loc>([^<]+)</loc>`).FindAllStringSubmatch(body, -1)
		for _, match := range found {
			seen[match[1]] = true
		}
		check.Equal(t, len(found), want, "part %d: URLs", part+1)
	}
	check.Equal(t, len(seen), 2*count, "different URLs")
}
