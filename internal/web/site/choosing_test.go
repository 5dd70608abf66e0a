package site_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// Pages show texts in their language, and mark those that exist only in French.
func TestTranslations(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	category := &record.Category{Slug: "redaction", Label: "Rédaction"}
	category.Translations.En.Label = "Writing"
	duel := &record.Comparison{Slug: "one-vs-two", Title: "Un ou Deux ?", ToolA: "one", ToolB: "two", Winner: "one", WinnerNote: "Plus net.", Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/duel"}
	duel.Translations.En.Title = "One or Two?"
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", category, duel,
		feedtest.Tool("one", func(tool *record.Tool) {
			tool.Category, tool.Tagline, tool.Translations.En.Tagline = "redaction", "Écrit.", "Writes."
			tool.Sections = []record.Section{{Section: "verdict", Text: "Très bien."}}
		}),
		feedtest.Tool("two", func(tool *record.Tool) { tool.Category, tool.Tagline = "voix", "Parle." }),
		&record.Retired{Slug: "gone", Name: "Gone", Category: "voix", Reason: "mort", RetiredAt: "2026-03-14", Note: "Fermé."},
	))
	handler := newSite(t, s)
	const mark = `<span class="in-french">in French</span>`
	for target, texts := range map[string][]string{
		"/en/":                       {`<span >Writes.</span></p>`, `<span lang="fr">Parle.</span> ` + mark, `>Writing</a>`, `lang="fr">Voix</a>`},
		"/en/tools":                  {`<span >Writes.</span></p>`, `<span lang="fr">Parle.</span> ` + mark, `>Writing (1)</option>`, `lang="fr">Voix (1)</option>`},
		"/en/tools?category=voix":    {`<span lang="fr">Voix</span>`},
		"/en/tools/one":              {`<span >Writes.</span></p>`, `Our reviews are only published in French.`, `<p class="text" lang="fr">Très bien.</p>`, `"description":"Writes."`, `"applicationCategory":"Writing"`},
		"/en/tools/two":              {`<span lang="fr">Parle.</span> ` + mark},
		"/en/categories":             {`>Writing</a>`},
		"/en/categories/redaction":   {`<span >Writing</span></h1>`, "<title>Writing: the best AI tools"},
		"/en/comparisons":            {`>One or Two?</a>`},
		"/en/comparisons/one-vs-two": {`<h1 >One or Two?</h1>`, `<span lang="fr">Plus net.</span> ` + mark},
		"/en/compare/one/two":        {`>One or Two?</a>`, `<span lang="fr">Plus net.</span>`},
		"/en/graveyard":              {"Notes by our editors are in French.", `<p lang="fr">Fermé.</p>`},
		"/en/graveyard/gone":         {`<span lang="fr">Fermé.</span> ` + mark},
		"/en/search?q=writ":          {`>Writing</a>`},
		"/fr/search?q=redac":         {`>Rédaction</a>`},
		"/fr/":                       {`<span >Écrit.</span></p>`, `<span >Parle.</span></p>`},
		"/fr/tools/one":              {"Écrit.", "<h2>Verdict</h2>", `"description":"Écrit."`},
		"/fr/comparatifs/one-vs-two": {"<h1 >Un ou Deux\u00a0?</h1>"},
	} {
		if body := get(t, handler, target, 200, texts...); strings.HasPrefix(target, "/fr/") && (strings.Contains(body, "in-french") || strings.Contains(body, ` lang="fr">Voix`)) {
			t.Errorf("%s: got a mark of French texts, want none on French pages", target)
		}
	}
	if got := visit(handler, "GET", "/en/comparisons/one-vs-two.md").Body.String(); !strings.HasPrefix(got, "[Comparisons](https://palmares.example/en/comparisons)\n\n# One or Two?\n") {
		t.Errorf("got Markdown %s, want the English title and URL", got)
	}
}

// A list whose descriptions are all in French says so once.
func TestListInFrench(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("one"), feedtest.Tool("two")))
	handler := newSite(t, s)
	for _, target := range []string{"/en/", "/en/tools"} {
		if body := get(t, handler, target, 200, "Descriptions are in French."); strings.Contains(body, "in-french") {
			t.Errorf("%s: got a mark for each tool, want one sentence", target)
		}
	}
}

// Prices are comparable: free is a word, and a price per year has that per month.
func TestPriceInWords(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	price := func(slug, price, pricing string) *record.Tool {
		return feedtest.Tool(slug, func(tool *record.Tool) { tool.Price, tool.Pricing = price, pricing })
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", price("yearly", "240 €/an", "payant"), price("free", "0 €/mois", "gratuit"), price("hourly", "0,5 €/heure", "payant"), price("seat", "8 €/poste/mois", "payant"), price("odd", "3 €/lune", "payant")))
	handler := newSite(t, s)
	get(t, handler, "/en/tools", 200, `<td class="price wide-only">€240 per year (€20 per month)<p>paid</p></td>`, `<td class="price wide-only">Free</td>`, "€0.50 per hour", "€8 per seat per month", `<span lang="fr">3 €/lune</span>`)
	get(t, handler, "/fr/tools", 200, "240\u00a0€ par an (20\u00a0€ par mois)", `<td class="price wide-only">Gratuit</td>`, "0,50\u00a0€ par heure", "8\u00a0€ par poste par mois")
	if body := get(t, handler, "/en/tools?price_max=20", 200, "€240 per year (€20 per month)"); strings.Contains(body, "per hour") {
		t.Error("got a price per hour, want only those per month")
	}
	get(t, handler, "/en/tools/yearly", 200, "<dd>€240 per year (€20 per month)</dd>")
}

// Results of a corrected search say what they are for.
func TestCorrectedSearch(t *testing.T) {
	handler := onSQLite(t)
	for _, path := range []string{"/search", "/tools"} {
		get(t, handler, "/en"+path+"?q=plumme", 200, "Showing results for <strong>“Plume”</strong>. Nothing matches “plumme”.", `href="/en/tools/plume"`)
		get(t, handler, "/fr"+path+"?q=ecritorie", 200, "Résultats pour <strong>«\u00a0Écritoire\u00a0»</strong>.")
		if body := get(t, handler, "/en"+path+"?q=plum", 200); strings.Contains(body, "Showing results for") {
			t.Errorf("%s: got a correction, want none for the start of a word", path)
		}
	}
}

// Lists link to the same list as files, and say what they need.
func TestDownloadLinks(t *testing.T) {
	handler := onSQLite(t)
	for target, file := range map[string]string{
		"/en/tools": "tools", "/en/tools?q=code&icp=vibe_coder&price_max=20&sort=updated_desc": "tools?icp=vibe-coder&price_max=20&search=code", "/en/categories/code?sort=name_asc": "tools?category=code",
		"/en/categories": "categories", "/en/comparisons?category=code": "comparatifs?category=code", "/en/graveyard?reason=mort": "cimetiere?reason=mort", "/fr/tools?as_of=1": "tools?as_of=1",
	} {
		name, query, _ := strings.Cut(file, "?")
		query = strings.ReplaceAll(query, "&", "&amp;")
		link := func(file, query string) string {
			return `href="` + target[:3] + "/account/downloads/" + page.WithQuery(file, strings.Trim(query, "&")) + `" rel="nofollow"`
		}
		get(t, handler, target, 200, link(name+".csv", query)+">CSV</a>", link(name+".ndjson", query)+">NDJSON</a>", "dialect=excel")
	}
	get(t, handler, "/en/tools", 200, "with a free account", `/account/downloads/tools.csv?dialect=excel"`)
	get(t, handler, "/fr/tools", 200, "avec un compte gratuit", `/account/downloads/tools.csv?dialect=excel-fr"`)

	var data struct {
		Graph []struct {
			IsAccessibleForFree bool
			Distribution        []struct{ EncodingFormat, ConditionsOfAccess string }
		} `json:"@graph"`
	}
	check.OK(t, json.Unmarshal([]byte(jsonLD.FindStringSubmatch(get(t, handler, "/en/", 200))[1]), &data))
	files := data.Graph[2].Distribution
	if !data.Graph[2].IsAccessibleForFree || files[0].ConditionsOfAccess != "" || files[1].EncodingFormat != "text/csv" || files[1].ConditionsOfAccess != "Requires a free API key." {
		t.Errorf("got %+v, want that JSON is open, and CSV requires a free key", data.Graph[2])
	}
}
