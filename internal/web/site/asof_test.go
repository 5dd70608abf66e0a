package site_test

import (
	"fmt"
	escape "html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// publishEditions publishes all editions of the demo catalog, as releases 1 to 8.
func publishEditions(t testing.TB, s *store.Store) {
	t.Helper()
	editions, err := demo.Editions()
	check.OK(t, err)
	for _, edition := range editions {
		feedtest.Publish(t, s, edition.Feed)
	}
}

var (
	pageLink = regexp.MustCompile(`<a [^>]*?href="(/[^"]*)"`)
	catalog  = regexp.MustCompile(`^/((api/v1/)?(tools|compare|comparatifs|categories|cimetiere)\b|api/v1/pricing|\?|$)`)
)

const (
	noIndex     = `<meta name="robots" content="noindex">`
	asOfRelease = `You are viewing the catalog as of edition 5, <time datetime="2026-07-07">7 July 2026</time>.`
)

// Pages do not search earlier releases, and do not offer it.
func TestPagesDoNotSearchAsOf(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		get(t, handler, "/tools?as_of=1&q=plume", 400, "Earlier editions cannot be searched here.")
		get(t, handler, "/search?as_of=1&q=plume", 200, `href="/tools/plume"`)
		if body := get(t, handler, "/tools?as_of=1", 200); strings.Contains(body, `<input id="q"`) {
			t.Error("got a search field, want none")
		}
		get(t, handler, "/tools", 200, `<input id="q"`)
	})
}

// Every page of the catalog shows an earlier release, and its links stay there.
func TestPagesAsOf(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishEditions(t, s)
		handler := newSite(t, s)
		for target, want := range map[string]struct {
			current string
			texts   []string
		}{
			"/?as_of=5":                                   {"/", []string{"<dd>43</dd>", "Updated on <time datetime=\"2026-07-07\">"}},
			"/tools?as_of=5":                              {"/tools", []string{"1–43 of 43", `<input type="hidden" name="as_of" value="5">`, `href="/api/v1/tools?as_of=5"`}},
			"/tools?as_of=5&category=code":                {"/tools?category=code", []string{`<option value="code" selected`, `<input type="hidden" name="as_of" value="5">`}},
			"/tools?as_of=5&score_min=10":                 {"/tools?score_min=10", []string{`No tools match your filters. <a href="/tools?as_of=5">`}},
			"/tools/plume?as_of=5":                        {"/tools/plume", []string{"<h1>Plume</h1>", "€24.90/month", `<span class="score good">7.8</span>`, `href="/api/v1/tools/plume?as_of=5"`}},
			"/comparatifs?as_of=5":                        {"/comparatifs", []string{"1–11 of 11", `<input type="hidden" name="as_of" value="5">`}},
			"/comparatifs/plume-vs-ecritoire-cie?as_of=5": {"/comparatifs/plume-vs-ecritoire-cie", []string{`href="/tools/plume?as_of=5"`}},
			"/categories?as_of=5":                         {"/categories", []string{`href="/categories/code?as_of=5"`}},
			"/cimetiere?as_of=5":                          {"/cimetiere", []string{"1–10 of 10", `<input type="hidden" name="as_of" value="5">`}},
			"/cimetiere/buvard?as_of=5":                   {"/cimetiere/buvard", []string{"What happened"}},
		} {
			body := get(t, handler, target, 200, append(want.texts, asOfRelease, noIndex,
				`<link rel="canonical" href="https://palmares.example`+want.current+`">`, `<a href="`+want.current+`">View the current catalog</a>`)...)
			for _, match := range pageLink.FindAllStringSubmatch(body, -1) {
				link := escape.UnescapeString(match[1])
				if catalog.MatchString(link) && link != want.current && !strings.Contains(link, "as_of=") {
					t.Errorf("%s: got a link to %s, want it as of the release", target, link)
				}
			}
			if current := get(t, handler, want.current, 200); strings.Contains(current, "You are viewing") || strings.Contains(current, "noindex") {
				t.Errorf("%s: got a page as of a release, want the current one", want.current)
			}
		}
	})
}

func TestAsOfValues(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newSite(t, s)
	get(t, handler, "/tools?as_of=2026-07-07", 200, asOfRelease, "1–43 of 43", `<input type="hidden" name="as_of" value="2026-07-07">`)
	get(t, handler, "/tools?as_of=2026-09-07", 200, asOfRelease)
	get(t, handler, "/tools?as_of=2030-01-01", 200, "as of edition 8", "1–48 of 48")
	get(t, handler, "/tools?as_of=8", 200, "as of edition 8")
	if body := get(t, handler, "/tools?as_of=", 200); strings.Contains(body, "You are viewing") {
		t.Error("empty as_of: got an earlier release, want the current catalog")
	}
	for value, want := range map[string]string{
		"0": "as_of must be a release number (1 or higher) or a date in the form YYYY-MM-DD (got &#34;0&#34;).", "-1": "as_of must be",
		"1e9": "as_of must be", "2026-02-30": "as_of must be", "2026-07-07T00:00:00Z": "as_of must be",
		"05": "as_of must be", "%3Cb%3E": "as_of must be", "%ff": "invalid UTF-8",
	} {
		for _, path := range []string{"/", "/tools", "/tools/plume", "/cimetiere", "/comparatifs", "/categories"} {
			get(t, handler, path+"?as_of="+value, 400, "Invalid request", want)
		}
	}
	for _, value := range []string{"9", "2026-03-02"} {
		get(t, handler, "/tools/plume?as_of="+value, 404, "Edition not found", "Available releases: 1 (3\u00a0March\u00a02026) to 8 (10\u00a0November\u00a02026).", `<a class="button" href="/changes">View all editions</a>`)
	}
	get(t, handler, "/tools/plmue?as_of=5", 404, "There was no tool “plmue” in this edition.")
	get(t, handler, "/tools/plmue?as_of=2026-08-01", 404, "There was no tool “plmue” in this edition.")
	check.Equal(t, visit(handler, http.MethodGet, "/tools/?as_of=5").Header().Get("Location"), "/tools?as_of=5", "trailing slash: redirect to")

	empty := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	get(t, empty, "/tools?as_of=1", 404, "No release has been published yet.")
	get(t, empty, "/changes", 200, "Nothing has been published yet.")
}

// Tools that were retired or removed later still have a page as of an earlier
// release.
func TestFormerToolsAsOf(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one"), feedtest.Tool("two"), feedtest.Tool("removed")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("one"), feedtest.Tool("removed"),
			&record.Retired{Slug: "two", Name: "Outil two", Category: "code", Reason: "mort", RetiredAt: "2026-11-02", Note: "Fini."}))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", feedtest.Tool("one"), feedtest.Tool("new"),
			&record.Retired{Slug: "two", Name: "Outil two", Category: "code", Reason: "mort", RetiredAt: "2026-11-02", Note: "Fini."}))
		handler := newSite(t, s)
		get(t, handler, "/tools/two?as_of=1", 200, "<h1>Outil two</h1>", "as of edition 1")
		get(t, handler, "/cimetiere/two?as_of=2", 200, "Fini.")
		for from, to := range map[string]string{
			"/tools/two?as_of=2": "/cimetiere/two?as_of=2", "/tools/two": "/cimetiere/two",
			"/cimetiere/two?as_of=1": "/tools/two?as_of=1", "/tools/two?as_of=2026-11-02": "/cimetiere/two?as_of=2026-11-02",
		} {
			if got := visit(handler, http.MethodGet, from); got.Code != 302 || got.Header().Get("Location") != to {
				t.Errorf("%s: got %d to %q, want 302 to %q", from, got.Code, got.Header().Get("Location"), to)
			}
		}
		get(t, handler, "/tools/removed?as_of=2", 200, "<h1>Outil removed</h1>")
		for _, target := range []string{"/tools/removed", "/cimetiere/removed", "/tools/removed?as_of=3"} {
			get(t, handler, target, 404, "It has been removed from the catalog.", `<a class="button" href="/tools/removed?as_of=2">View it as of edition 2</a>`)
		}
		if body := get(t, handler, "/tools/new?as_of=1", 404, "There was no tool “new” in this edition.", `<a href="/tools/new"`); strings.Contains(body, "removed") {
			t.Error("tool added later: got it shown as removed, want it only suggested")
		}
	})
}

// Each release has its own cached pages, and a page as of a day changes when a
// new release of that day is published.
func TestCachingAsOf(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		price := func(price string) []byte {
			return feedtest.Catalog("2026-11-01", feedtest.Tool("one", func(tool *record.Tool) { tool.Price = price }))
		}
		feedtest.Publish(t, s, price("20 €/mois"))
		feedtest.Publish(t, s, price("30 €/mois"))
		handler := newSite(t, s)
		check := func(target, price string) {
			t.Helper()
			for range 2 { // the second from the cache
				check.Contains(t, get(t, handler, target, 200), "<dd>€"+price+" per month</dd>", "%s: another price", target)
			}
		}
		check("/tools/one", "30")
		check("/tools/one?as_of=1", "20")
		check("/tools/one?as_of=2", "30")
		check("/tools/one?as_of=2026-11-01", "30")
		feedtest.Publish(t, s, price("40 €/mois"))
		get(t, handler, "/tools?sort=name_asc&as_of=1", 200) // not cached, so it notices the release
		check("/tools/one", "40")
		check("/tools/one?as_of=1", "20")
		check("/tools/one?as_of=2", "30")
		check("/tools/one?as_of=2026-11-01", "40")
		if got := visit(handler, http.MethodGet, "/tools/one?as_of=1").Header(); got.Get("Cache-Control") != "public, max-age=0, s-maxage=60, stale-while-revalidate=3600" || got.Get("Etag") == "" {
			t.Errorf("got %v, want the caching headers of other pages", got)
		}
	})
}

// On a page as of a release, the links to the API read that release.
func TestAPILinksAsOf(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newSite(t, s)
	for target, directive := range map[string]string{
		"/?as_of=5": "@asOf(release: 5)", "/tools?as_of=2026-08-01&category=code": `@asOf(date: "2026-08-01")`, "/tools/plume?as_of=5": "@asOf(release: 5)",
		"/comparatifs/plume-vs-ecritoire-cie?as_of=5": "@asOf(release: 5)", "/categories?as_of=5": "@asOf(release: 5)", "/comparatifs?as_of=5": "@asOf(release: 5)", "/cimetiere/buvard?as_of=5": "@asOf(release: 5)", "/editions/8": "",
	} {
		body := get(t, handler, target, 200)
		if hasREST := !strings.HasPrefix(target, "/?") && !strings.HasPrefix(target, "/cimetiere/") && target != "/editions/8"; strings.Contains(body, ">JSON</a>") != hasREST {
			t.Errorf("%s: got a link to REST: %t, want %t", target, !hasREST, hasREST)
		}
		if strings.Contains(body, `href="/explorer?path=`) {
			t.Errorf("%s: got a link to the operation of a REST path, want none, as it has no release", target)
		}
		_, rest, _ := strings.Cut(body, `href="/explorer?query=`)
		address, _, _ := strings.Cut(rest, `"`)
		values, err := url.ParseQuery("query=" + escape.UnescapeString(address))
		check.OK(t, err)
		if _, err := graph.NewOperation(values.Get("query")); err != nil || !strings.Contains(values.Get("query"), directive+" {") {
			t.Errorf("%s: got %v for %s, want a valid operation with %s", target, err, values.Get("query"), directive)
		}
		if strings.Contains(values.Get("variables"), "as_of") {
			t.Errorf("%s: got variables %s, want no as_of", target, values.Get("variables"))
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// versions returns the text of each entry in a page's version history.
func versions(body string) (entries []string) {
	_, rest, _ := strings.Cut(body, "<h2>History</h2>")
	rest, _, _ = strings.Cut(rest, "All versions as JSON")
	for _, entry := range strings.Split(rest, "<li>")[1:] {
		entry, _, _ = strings.Cut(entry, "</li>")
		entry = strings.ReplaceAll(entry, "</dt>", ": ")
		entries = append(entries, strings.Join(strings.Fields(escape.UnescapeString(tags.ReplaceAllString(strings.ReplaceAll(entry, "</dd>", ";"), ""))), " "))
	}
	return entries
}

func TestVersionHistory(t *testing.T) {
	long := strings.Repeat("Une phrase assez longue. ", 10)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		one := func(date string, change func(*record.Tool)) []byte {
			tool := feedtest.Tool("one")
			change(tool)
			return feedtest.Catalog(date, tool)
		}
		score := 8.0
		feedtest.Publish(t, s, one("2026-11-01", func(tool *record.Tool) { tool.Score = nil }))
		feedtest.Publish(t, s, one("2026-11-02", func(tool *record.Tool) { tool.Score, tool.Price = &score, "30 €/mois" }))
		feedtest.Publish(t, s, one("2026-11-03", func(tool *record.Tool) {
			tool.Score, tool.Price, tool.Name, tool.Category, tool.ICP, tool.Pricing, tool.Tagline = &score, "30 €/mois", "<b>One", "voix", "vibe-coder", "freemium", long+"Fin."
		}))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-04", &record.Retired{Slug: "one", Name: "<b>One", Category: "voix", Reason: "mort", RetiredAt: "2026-11-04", Note: "Fini."}))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-05", &record.Retired{Slug: "one", Name: "<b>One", Category: "voix", Reason: "acquis", RetiredAt: "2026-11-04", Note: "Vendu."}))
		feedtest.Publish(t, s, one("2026-11-06", func(tool *record.Tool) { tool.Score, tool.Tagline = &score, long+"Fin." }))
		feedtest.Publish(t, s, one("2026-11-07", func(tool *record.Tool) { tool.Score, tool.Tagline = &score, long+"Suite." }))
		handler := newLocalized(t, s)
		want := []string{
			"Updated · edition 7, 7 Nov 2026 Tagline: from …assez longue. Une phrase assez longue. Fin. →to …assez longue. Une phrase assez longue. Suite.;",
			"Added again · edition 6, 6 Nov 2026 Pricing: paid; Price: €20/month; Score: 8.0;",
			"Updated · edition 5, 5 Nov 2026 Reason: from shut down →to acquired; Note: from Fini. →to Vendu.;",
			"Retired · edition 4, 4 Nov 2026 Reason: shut down; Retired: 4 Nov 2026; Note: Fini.;",
			"Updated · edition 3, 3 Nov 2026 Name: from Outil one →to <b>One; Category: from Code →to Voix; Made for: from vibe coders and agentic engineers →to vibe coders; " +
				"Pricing: from paid →to freemium; Tagline: from Un outil. →to " + strings.Repeat("Une phrase assez longue. ", 5) + "Une phrase…;",
			"Updated · edition 2, 2 Nov 2026 Price: from €20/month →to €30/month ▲ +50%; Score: from not tested →to 8.0;",
			"Added · edition 1, 1 Nov 2026 Pricing: paid; Price: €20/month; Score: not tested;",
		}
		body := get(t, handler, "/en/tools/one", 200, `<a href="/en/tools/one?as_of=7" rel="nofollow">edition 7</a>`, `<a href="/en/graveyard/one?as_of=4" rel="nofollow">edition 4</a>`,
			`<del>€20/month</del>`, `<ins lang="fr">Voix</ins>`, "Show 2 older versions", `href="/api/v1/tools/one/versions"`)
		if got := versions(body); !slices.Equal(got, want) {
			t.Errorf("got versions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// As of a release, the history ends with that release.
		for target, from := range map[string]int{"/en/graveyard/one?as_of=5": 2, "/en/tools/one?as_of=3": 4, "/en/tools/one?as_of=1": 6} {
			if target == "/en/tools/one?as_of=3" { // its history of prices has the one of edition 2
				want[5] = strings.Replace(want[5], "+50%", "+50% since 2 Nov 2026", 1)
			}
			if got := versions(get(t, handler, target, 200)); !slices.Equal(got, want[from:]) {
				t.Errorf("%s: got versions\n%s\nwant\n%s", target, strings.Join(got, "\n"), strings.Join(want[from:], "\n"))
			}
			want[5] = strings.Replace(want[5], " since 2 Nov 2026", "", 1)
		}
		for _, match := range regexp.MustCompile(`<a href="(/[^"]*)" rel="nofollow">edition`).FindAllStringSubmatch(body, -1) {
			get(t, handler, match[1], 200)
		}
	})
}

// A long history ends with a link to the API.
func TestLongVersionHistory(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	for i := range 60 {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one", func(tool *record.Tool) { tool.Price = fmt.Sprintf("%d €/mois", i) })))
	}
	handler := newLocalized(t, s)
	body := get(t, handler, "/en/tools/one", 200, "Show 45 older versions", "Older versions are not shown here.", `href="/api/v1/tools/one/versions"`)
	if got := versions(body); len(got) != 50 || !strings.HasSuffix(got[49], "from €9/month →to €10/month ▲ +11.1%;") {
		t.Errorf("got %d versions, the last of them %s, want 50 down to €10/month", len(got), got[len(got)-1])
	}

	// The list of releases is paginated.
	first := get(t, handler, "/en/changes", 200, "60 editions", `<th scope="row"><a href="/en/editions/60">`, `<th scope="row"><a href="/en/editions/49">`)
	if strings.Contains(first, `<th scope="row"><a href="/en/editions/48">`) || strings.Contains(first, ">Newest</a>") {
		t.Error("got more than a page of editions, want 12")
	}
	_, rest, _ := strings.Cut(first, `rel="next" href="`)
	older, _, _ := strings.Cut(rest, `"`)
	get(t, handler, escape.UnescapeString(older), 200, `<th scope="row"><a href="/en/editions/48">`, `<th scope="row"><a href="/en/editions/37">`, `<a class="button quiet" href="/en/changes">Newest</a>`)
	get(t, handler, "/en/changes?before=x", 400, "after must be a cursor")
}

func TestReleases(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		publishEditions(t, s)
		body := get(t, newLocalized(t, s), "/en/changes", 200, "8 editions", "<p>Café Perroquet gains the most: &#43;0.5. Mirage à l’Huile loses the most: −0.8. Largest price decrease: Greffier 8, −37.5%.", `<time datetime="2026-07-07">7 July 2026</time>`, `<td class="number wide-only"><span class="aside">&#43;1</span> 43</td>`,
			`<a href="/en/tools?as_of=1" rel="nofollow">Catalog<span class="visually-hidden"> as of edition 1</span></a>`, `max="2026-11-10"`)
		if strings.Contains(body, "as_of=8") || strings.Contains(body, "not retained") {
			t.Error("got a link to release 8 or a pruned release, want links to seven earlier releases")
		}
		get(t, newSite(t, s), "/", 200, `<a href="/editions/8">edition 8</a>`, `<li><a href="/changes">Changes</a></li>`)

		if _, err := publish.Prune(t.Context(), s, 4); err != nil {
			t.Fatal(err)
		}
		handler := newLocalized(t, s)
		body = get(t, handler, "/en/changes", 200, `<a href="/en/tools?as_of=4"`, "not retained", `<th scope="row"><a href="/en/editions/1">`)
		if strings.Contains(body, "as_of=3") {
			t.Error("got a link to a pruned release, want none")
		}
		get(t, handler, "/en/tools?as_of=3", 404, "Edition not found", "Available releases: 4 (9\u00a0June\u00a02026) to 8 (10\u00a0November\u00a02026).")
		get(t, handler, "/fr/tools?as_of=3", 404, "L’édition 3 n’est pas disponible. Éditions disponibles\u00a0: 4 (9\u00a0juin\u00a02026) à 8 (10\u00a0novembre\u00a02026).")
		get(t, handler, "/fr/tools?as_of=2020-01-01", 404, "Aucune édition du 1er\u00a0janvier\u00a02020 ou antérieure n’est disponible")
		// Versions from pruned releases are still listed, without a link.
		body = get(t, handler, "/en/tools/plume", 200, `<a href="/en/tools/plume?as_of=4" rel="nofollow">edition 4</a>`, "<strong>Added</strong> · edition 1, <time datetime=\"2026-03-03\">",
			"</strong> since <time datetime=\"2026-09-14\">", "▼</span> −20.1%", "· 7.9 · ed. 7</title>", "8.1 · ed. 8</text>", "<strong>Before edition 1</strong> · since <time datetime=\"2026-02-02\">")
		if strings.Contains(body, "as_of=1") {
			t.Error("got a link to a pruned release, want none")
		}
	})
}
