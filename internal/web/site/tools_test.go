package site_test

import (
	"context"
	"encoding/json"
	escape "html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
	"palmares/internal/web/visitor"
)

var structuredData = regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`)

// structured returns the objects of a page's structured data by type.
func structured(t *testing.T, body string) map[string]map[string]any {
	t.Helper()
	match := structuredData.FindStringSubmatch(body)
	if match == nil {
		t.Fatal("got no structured data, want some")
	}
	var document struct {
		Graph []map[string]any `json:"@graph"`
	}
	if err := json.Unmarshal([]byte(match[1]), &document); err != nil {
		t.Fatalf("got %v in %s, want JSON", err, match[1])
	}
	found := map[string]map[string]any{}
	for _, object := range document.Graph {
		found[object["@type"].(string)] = object
	}
	return found
}

func TestToolPage(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, "/en/tools/plume", 200, "Our reviews are only published in French.", "quatre rédacteurs", "The review also covers: Price, Strengths, Limitations, Who it is for.", `href="/en/method"`, "8.1 out of 10", "<dt>rank among tested tools in its category", "<dd>2nd of 5</dd>",
		`<option value="ecritoire-cie">Écritoire &amp; Cie (8.7)</option>`, `<circle class="soft"`, `href="/en/compare?a=plume"`, `href="/en/account"`,
		`<meta name="description" content="Plume scores 8.1 out of 10. Price: €19.90/month.`, "<h2>History</h2>")
	get(t, handler, "/fr/tools/plume", 200, `<h2>Verdict</h2>`, "Limites", "8,1 sur 10", "<dd>2e sur 5</dd>", "19,90\u00a0€/mois", `<html lang="fr">`)
	if strings.Contains(body, "ne ment jamais") { // a section that requires a key
		t.Error("got the text of another section, want its title only")
	}
	application := structured(t, body)["SoftwareApplication"]
	review, _ := application["review"].(map[string]any)
	rating, _ := review["reviewRating"].(map[string]any)
	offer, _ := application["offers"].(map[string]any)
	if rating["ratingValue"] != 8.1 || rating["bestRating"] != 10.0 || offer["price"] != 19.9 || offer["priceCurrency"] != "EUR" {
		t.Errorf("got %v, want a rating of 8.1 of 10 and an offer of 19.90 EUR", application)
	}
	if crumbs, _ := structured(t, body)["BreadcrumbList"]["itemListElement"].([]any); len(crumbs) != 3 {
		t.Errorf("got %v, want three breadcrumbs", crumbs)
	}
}

// Visitors follow a tool and report an error with one click, also if it is retired.
func TestFollowAndReport(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newLocalized(t, s)
	get(t, handler, "/en/tools/plume", 200, ">Price over time</text>", ">Score over time</text>", "axis starts at 7.0</text>",
		"since <time datetime=\"2026-09-14\">14\u00a0Sep\u00a02026</time> <strong class=\"part better\"><span aria-hidden=\"true\">▼</span> −20.1%</strong>",
		`<a class="button" href="/en/tools/plume/follow">Follow</a>`, `This page is published by palmares. <a href="/en/about">`)
	get(t, handler, "/en/tools/plume/follow", 200, "<h1>Follow Plume</h1>", `<code id="feed">https://palmares.example/en/tools/plume/changes.atom</code>`,
		`href="https://feedly.com/i/subscription/feed/https%3A%2F%2Fpalmares.example%2Fen%2Ftools%2Fplume%2Fchanges.atom"`, `href="/en/account/webhooks?tools=plume"`, `href="/en/changes?tool=plume"`)
	get(t, handler, "/fr/tools/buvard/follow", 200, "<h1>Suivre Buvard</h1>", `<a href="/fr/cimetiere/buvard">Buvard</a>`)
	get(t, handler, "/en/tools/nobody/follow", 404, "There is no tool “nobody”.")
	if body := get(t, handler, "/en/tools/plume?as_of=5", 200); strings.Contains(body, "/follow") {
		t.Error("got a link to follow in an earlier edition, want none")
	}
	handler = servertest.New(t, servertest.On(s), func(c *server.Config) { c.Contact = "hello+x@palmares.example" }).Handler()
	body := escape.UnescapeString(get(t, handler, "/fr/tools/plume", 200))
	_, rest, _ := strings.Cut(body, `href="mailto:hello+x@palmares.example?`)
	query, _, _ := strings.Cut(rest, `"`)
	values, err := url.ParseQuery(query)
	check.OK(t, err)
	if values.Get("subject") != "Erreur sur la page de Plume" || !strings.HasPrefix(values.Get("body"), "Page\u00a0: https://palmares.example/fr/tools/plume\r\nÉdition\u00a0: 8\r\nChamp") {
		t.Errorf("got %v from %q, want the page and the edition", values, query)
	}
}

// The page says when a tool ends, if that is announced.
func TestAnnouncedEnd(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a"), feedtest.Tool("ends", func(t *record.Tool) { t.EndsAt = new("2026-12-31") })))
	handler := newSite(t, s)
	get(t, handler, "/en/tools/ends", 200, `<span class="mark">closes on `+lang.English.DayOf("2026-12-31")+"</span></h1>")
	get(t, handler, "/fr/tools", 200, `<span class="mark">ferme le `+lang.French.DayOf("2026-12-31")+"</span><p>")
	get(t, handler, "/en/tools/a", 200, "<h1>Outil a</h1>")
}

// The page says where and when facts were checked, and which of them changed.
func TestSources(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a")))
	plain := newSite(t, s)
	if body := get(t, plain, "/en/tools/a", 200); strings.Contains(body, "checked on") {
		t.Error("got a source, want none")
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a", func(t *record.Tool) {
		t.Translations.En.Tagline = "A tool."
		t.Sources = []record.Source{
			{Field: "price", URL: `https://a.example/prix?x="><script>&y`, CheckedAt: "2026-11-02"}, {Field: "score", URL: "https://b.example", CheckedAt: "2026-10-01"},
		}
	})))
	handler := newSite(t, s)
	const link = `<a href="https://a.example/prix?x=%22%3e%3cscript%3e&amp;y" rel="nofollow noopener">source<span class="visually-hidden"> (a.example)</span></a></li>`
	get(t, handler, "/en/tools/a", 200, "<li>Price checked on "+lang.English.DayOf("2026-11-02")+", "+link,
		"<li>Score checked on "+lang.English.DayOf("2026-10-01")+`, <a href="https://b.example" rel="nofollow noopener">`, "Translations", "Sources", "changed")
	get(t, handler, "/fr/tools/a", 200, "<li>Prix\u00a0: vérification du 2 novembre 2026, "+link, "Traductions")
	get(t, handler, "/en/editions/2", 200, "changed: sources", "<dt>other change</dt><dd>1</dd>")
}

func TestCompare(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, "/en/compare/plume/ecritoire-cie", 200, "<h1>Plume vs Écritoire &amp; Cie</h1>", `href="/en/comparisons/plume-vs-ecritoire-cie"`, "<strong>Écritoire &amp; Cie</strong> wins.",
		"quatre rédacteurs", `<span class="mark">highest</span>`, `<span class="mark">lowest</span>`, `<span class="mark">cheapest</span>`, `<span class="aside">same</span>`, `<form class="filter compare" action="/en/compare/plume/ecritoire-cie">`,
		`<link rel="canonical" href="https://palmares.example/en/compare/ecritoire-cie/plume">`)
	if got := strings.Count(body, ` best-of-row"`); got != 4 { // score, verifiability, obsolescence and price
		t.Errorf("got %d best values, want 4", got)
	}
	if !strings.Contains(get(t, handler, "/en/compare/ecritoire-cie/plume", 200), `<link rel="canonical" href="https://palmares.example/en/compare/ecritoire-cie/plume">`) {
		t.Error("other order: got another canonical URL, want the same")
	}
	get(t, handler, "/fr/compare/plume/ecritoire-cie/relire-svp", 200, "la plus haute", "le plus bas", `href="/fr/compare/plume/relire-svp">Retirer</a>`, `name="d"`)
	get(t, handler, "/fr/compare/plume/ecritoire-cie/relire-svp/brouillon-zero", 200, "<h1>Plume ou Écritoire")
	get(t, handler, "/en/compare/plume/buvard", 200, `<span class="mark">retired</span>`, `href="/en/graveyard/buvard"`)
	get(t, handler, "/en/compare/plume/ecritoireci", 404, "There is no tool “ecritoireci”. Did you mean:", `href="/en/compare?a=plume&amp;b=ecritoire-cie"`, `name="a" list="tools" maxlength="100" value="plume"`)
	// A form with a mistake keeps what was entered.
	get(t, handler, "/fr/compare?a=plmue&b=Relire+SVP&c=nobodyhasthis&d=buvard", 404, `value="plmue"`, `value="Relire SVP"`, `value="nobodyhasthis"`, `value="buvard"`,
		"Il n’y a pas d’outil «\u00a0plmue\u00a0». Vouliez-vous dire", `href="/fr/compare?a=plume&amp;b=Relire&#43;SVP&amp;c=nobodyhasthis&amp;d=buvard"`, `aria-invalid="true" aria-describedby="wrong-a"`, `id="wrong-c"`, `<meta name="robots" content="noindex">`)
	get(t, handler, "/en/compare/plume/ecritoire-cie/Relire", 404, `value="ecritoire-cie"`, `value="Relire"`)
	get(t, handler, "/en/compare?a=plume&b=Plume", 422, "You have chosen this tool already.", `value="Plume"`)
	get(t, handler, "/en/compare/plume", 404)
	get(t, handler, "/en/compare", 200, `<option value="plume">Plume</option>`, `name="a"`)
	get(t, handler, "/fr/compare?a=plume", 200, `value="plume" required`)
	for from, to := range map[string]string{
		"/en/compare/plume/plume":                         "/en/tools/plume",
		"/en/compare/plume/buvard/plume":                  "/en/compare/plume/buvard",
		"/fr/compare/plume/ecritoire-cie?c=Relire+SVP":    "/fr/compare/plume/ecritoire-cie/relire-svp",
		"/fr/compare?a=plume&b=%C3%89critoire+%26+Cie&c=": "/fr/compare/plume/ecritoire-cie",
		"/en/compare?a=plume&b=plume&d=L%27Enclume+8":     "/en/compare/plume/enclume-8",
	} {
		if got := visit(handler, http.MethodGet, from); got.Code != 302 || got.Header().Get("Location") != to {
			t.Errorf("%s: got %d to %q, want 302 to %q", from, got.Code, got.Header().Get("Location"), to)
		}
	}
}

func TestCategoryPage(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, "/en/categories/redaction", 200, `<svg class="icon"`, "<dd>6</dd>", "€9.90 to €49", "average score of 5 tested", `<svg class="chart wide-only"`, `href="/api/v1/tools?category=redaction"`,
		`aria-sort="descending"><a class="sort" href="/en/categories/redaction?sort=score_asc"`, `href="/en/tools?category=redaction"`)
	if list, _ := structured(t, body)["ItemList"]["itemListElement"].([]any); len(list) != 6 {
		t.Errorf("got %d items, want 6", len(list))
	}
	get(t, handler, "/fr/categories/redaction?sort=name_asc", 200, "de 9,90\u00a0€ à 49\u00a0€", `aria-sort="ascending"`)
	get(t, handler, "/en/categories/redactoin", 404, `<a href="/en/categories/redaction">Writing</a>`)
}

func TestSortableHeaders(t *testing.T) {
	handler := onSQLite(t)
	for target, want := range map[string]string{
		"/tools":                             `aria-sort="descending"><a class="sort" href="/tools?sort=score_asc"`,
		"/tools?sort=score_asc":              `aria-sort="ascending"><a class="sort" href="/tools" `,
		"/tools?category=code&sort=name_asc": `aria-sort="ascending"><a class="sort" href="/tools?category=code&amp;sort=name_desc"`,
		"/tools?q=a":                         `<th scope="col"><a class="sort" href="/tools?q=a&amp;sort=name_asc"`,
		"/tools?sort=updated_desc":           `aria-sort="descending"><a class="sort" href="/tools?sort=updated_asc"`,
	} {
		get(t, handler, target, 200, want)
	}
}

// Each active filter has a link that removes only it.
func TestFilterChips(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, "/fr/tools?q=texte&category=redaction&score_min=7,5&price_max=20&pricing=freemium&page=2&icp=mixte", 200,
		`Note d’au moins 7,5`, "Jusqu’à 20\u00a0€ par mois", "Retirer tous les filtres", "«\u00a0texte\u00a0»")
	var links []string
	for _, match := range regexp.MustCompile(`<a class="chip" href="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		links = append(links, escape.UnescapeString(match[1]))
	}
	for i, name := range []string{"q", "category", "pricing", "icp", "score_min", "price_max"} {
		query := url.Values{"q": {"texte"}, "category": {"redaction"}, "score_min": {"7.5"}, "price_max": {"20"}, "pricing": {"freemium"}, "icp": {"mixte"}}
		query.Del(name)
		if want := "/fr/tools?" + query.Encode(); len(links) != 6 || links[i] != want {
			t.Errorf("got chips %v, want %s at %d", links, want, i)
		}
	}
	get(t, handler, "/en/tools?category=code", 200, `href="/en/tools?category=code&amp;price_max=0">Free</a>`, `href="/en/tools?category=code&amp;price_max=10">Up to €10</a>`)
	get(t, handler, "/en/tools?price_max=10", 200, `aria-current="true">Up to €10</a>`, "Up to €10 per month")
}

// An invalid value stays in the form, with an error beside its field.
func TestInvalidFilterKeepsForm(t *testing.T) {
	handler := onSQLite(t)
	body := get(t, handler, `/en/tools?score_min="><b>abc&q=plume&category=code`, 400, `value="&#34;&gt;&lt;b&gt;abc" aria-invalid="true"`, `value="plume"`, `<option value="code" selected`,
		`id="wrong-score_min" role="alert">The minimum score must be a number from 0 to 10, such as 7.5 (got “&#34;&gt;&lt;b&gt;abc”).`, noIndex)
	if strings.Contains(body, "<b>") || strings.Contains(body, `<table class="list">`) {
		t.Error("got unescaped text or a list, want only the form")
	}
	get(t, handler, "/fr/tools?price_max=cher&score_min=8&as_of=1", 400, "Le prix maximal doit être", `value="8"`, `<input type="hidden" name="as_of" value="1">`)
	get(t, handler, "/en/tools?sort=best", 400, "“best” is not a valid option.", `<form class="filter" action="/en/tools"`)
	for _, text := range []string{strings.Repeat("x", 300), "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q"} {
		get(t, handler, "/en/tools?q="+text, 400, "Search for at most 16 words and 200 characters.")
	}
	check.Equal(t, visit(handler, http.MethodGet, "/en/tools?score_min=abc").Header().Get("Cache-Control"), "no-store", "Cache-Control")
}

func TestSearchPage(t *testing.T) {
	handler := onSQLite(t)
	get(t, handler, "/en/search?q=plume", 200, `value="plume"`, `href="/en/tools/plume"`, `href="/en/comparisons/plume-vs-ecritoire-cie"`, `results for “plume”`, noIndex)
	get(t, handler, "/fr/search?q=REDACTION", 200, `href="/fr/categories/redaction"`)
	get(t, handler, "/en/search?q=buvard", 200, `href="/en/graveyard/buvard"`)
	get(t, handler, "/fr/search?q=plmu", 200, "Rien ne correspond à «\u00a0plmu\u00a0»", "Parcourir par catégorie", `href="/fr/categories/code"`)
	get(t, handler, "/en/search?q=%3Cb%3Ex", 200, "Nothing matches “&lt;b&gt;x”")
	get(t, handler, "/en/search", 200, `placeholder="Name of a tool, or a word from its review"`, "Browse by category")
}

func TestSuggestions(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler, caching := newSite(t, s), "public, max-age=60"
	type suggestion struct{ Name, Path, Note string }
	getSuggestions := func(target string, status int) (list []suggestion) {
		t.Helper()
		got := visit(handler, http.MethodGet, target)
		check.Equal(t, got.Code, status, target)
		check.Equal(t, got.Header().Get("Content-Type"), "application/json", target)
		if status == 200 {
			if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || list == nil || got.Header().Get("Cache-Control") != caching {
				t.Errorf("%s: got %s, %q, %v, want a list with Cache-Control %q", target, got.Body, got.Header().Get("Cache-Control"), err, caching)
			}
		}
		return list
	}
	if got := getSuggestions("/search/suggestions?q=PLÛ&lang=fr", 200); len(got) == 0 || got[0] != (suggestion{"Plume", "/fr/tools/plume", "Rédaction · 8,1"}) {
		t.Errorf("got %v, want Plume first", got)
	}
	if got := getSuggestions("/search/suggestions?q=plmue", 200); len(got) != 1 || got[0].Path != "/en/tools/plume" || got[0].Note != "Writing · 8.1" {
		t.Errorf("typo: got %v, want Plume", got)
	}
	if got := getSuggestions("/search/suggestions?q=buvard&lang=fr", 200); !slices.Contains(got, suggestion{"Buvard", "/fr/cimetiere/buvard", "Rédaction · disparu"}) {
		t.Errorf("got %v, want the retired tool", got)
	}
	if got := getSuggestions("/search/suggestions?q=e", 200); len(got) > 8 {
		t.Errorf("got %d suggestions, want at most 8", len(got))
	}
	for _, empty := range []string{"", "?q=", "?q=%20", "?q=zzzz", "?lang=fr"} {
		check.Equal(t, len(getSuggestions("/search/suggestions"+empty, 200)), 0, "%q", empty)
	}
	getSuggestions("/search/suggestions?q="+strings.Repeat("x", 101), 400)
	getSuggestions("/search/suggestions?q=%ff", 400)

	// Lists that lack suggestions only now, or only for this visitor, are not cached.
	visitors := visitor.NewLimiter(nil)
	handler = servertest.New(t, servertest.On(s), func(c *server.Config) { c.Visitors = visitors }).Handler()
	impatient, leave := context.WithCancel(t.Context())
	defer leave()
	request := httptest.NewRequest(http.MethodGet, "/search/suggestions?q=plmue", nil).WithContext(impatient)
	for _, want := range []string{`"name":"Plume" public, max-age=60`, `[] no-store`} {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, request)
		body, caching, _ := strings.Cut(want, " ")
		check.Contains(t, got.Body.String(), body)
		check.Equal(t, got.Header().Get("Cache-Control"), caching)
		if impatient.Err() == nil {
			for range 2 { // all that one visitor may load at the same time
				_, err := visitors.Start(visitors.Identify(request))
				check.OK(t, err)
			}
			leave() // do not wait for them
		}
	}
	caching = "no-store"
	closed := testkit.Open(t, testkit.SQLite(t))
	handler = newSite(t, closed)
	closed.Close()
	check.Equal(t, len(getSuggestions("/search/suggestions?q=plume", 200)), 0, "without a catalog")
}
