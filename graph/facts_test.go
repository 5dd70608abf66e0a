package graph_test

import (
	"strings"
	"testing"

	"palmares/auth"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Texts are in French unless another language is selected and has a translation, and
// tools have their sources. Earlier releases keep theirs.
func TestTranslationsAndSources(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		category, duel := &record.Category{Slug: "code", Label: "Code source"}, &record.Comparison{
			Slug: "duel", Title: "A ou B ?", ToolA: "a", ToolB: "b", Winner: "a", WinnerNote: "Plus net.",
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/duel",
		}
		tool := feedtest.Tool("a")
		catalog := func(date string) []byte { return feedtest.Of(date, category, tool, feedtest.Tool("b"), duel) }
		feedtest.Publish(t, s, catalog("2026-11-01"))
		category.Translations.En.Label, duel.Translations.En.Title = "Source code", `"A" or <B>?`
		tool.Translations.En.Tagline = "A tool.\n"
		tool.Sources = []record.Source{
			{Field: "price", URL: "https://a.example/?x=<1>&y", CheckedAt: "2026-11-02"}, {Field: "score", URL: "https://b.example/", CheckedAt: "2026-10-02"},
		}
		feedtest.Publish(t, s, catalog("2026-11-02"))
		duel.Translations.En.Title, duel.Translations.En.WinnerNote = "", "Sharper."
		tool.Translations.En.Tagline, tool.Sources = "", tool.Sources[:1]
		feedtest.Publish(t, s, catalog("2026-11-03"))

		e := newExecutor(s)
		for query, want := range map[string]string{
			`query %s {tool(slug: "a") {tagline fr: tagline(language: fr) en: tagline(language: en)}}`: `1 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"Un outil."}}
				2 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"A tool.\n"}}
				3 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"Un outil."}}`,
			`query %s {tools(sort: name_asc) {items {tagline(language: en) sources {field url checkedAt}}}}`: `1 {"tools":{"items":[{"tagline":"Un outil.","sources":[]},{"tagline":"Un outil.","sources":[]}]}}
				2 {"tools":{"items":[{"tagline":"A tool.\n","sources":[{"field":"price","url":"https://a.example/?x=<1>&y","checkedAt":"2026-11-02"},{"field":"score","url":"https://b.example/","checkedAt":"2026-10-02"}]},{"tagline":"Un outil.","sources":[]}]}}
				3 {"tools":{"items":[{"tagline":"Un outil.","sources":[{"field":"price","url":"https://a.example/?x=<1>&y","checkedAt":"2026-11-02"}]},{"tagline":"Un outil.","sources":[]}]}}`,
			`query %s {categories {label en: label(language: en)} tool(slug: "b") {category {label(language: en)}}}`: `1 {"categories":[{"label":"Code source","en":"Code source"}],"tool":{"category":{"label":"Code source"}}}
				2 {"categories":[{"label":"Code source","en":"Source code"}],"tool":{"category":{"label":"Source code"}}}
				3 {"categories":[{"label":"Code source","en":"Source code"}],"tool":{"category":{"label":"Source code"}}}`,
			`query %s {comparison(slug: "duel") {title winnerNote en: title(language: en) note: winnerNote(language: en)}}`: `1 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"A ou B ?","note":"Plus net."}}
				2 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"\"A\" or <B>?","note":"Plus net."}}
				3 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"A ou B ?","note":"Sharper."}}`,
		} {
			for line := range strings.SplitSeq(want, "\n\t") {
				release, want, _ := strings.Cut(strings.TrimSpace(line), " ")
				asOf := "@asOf(release: " + release + ")"
				expect(t, asOf+query, mustExecute(t, e, strings.Replace(query, "%s", asOf, 1)), want)
				if release == "3" {
					expect(t, query, mustExecute(t, e, strings.Replace(query, "%s", "", 1)), want)
				}
			}
		}

		const byVariable = `query($language: Language! = en) @asOf(release: 2) {tool(slug: "a") {tagline(language: $language)}}`
		expect(t, "default of a variable", mustExecute(t, e, byVariable), `{"tool":{"tagline":"A tool.\n"}}`)
		expect(t, "variable", mustExecute(t, e, byVariable, map[string]any{"language": "fr"}), `{"tool":{"tagline":"Un outil."}}`)
		const optional = `query($language: Language) @asOf(release: 2) {tool(slug: "a") {tagline(language: $language)}}`
		expect(t, "no variable", mustExecute(t, e, optional), `{"tool":{"tagline":"Un outil."}}`)
		for _, query := range []string{optional, byVariable} {
			for _, language := range []any{nil, "de", "EN", 1} {
				got := execute(t, e, auth.Developer, query, map[string]any{"language": language})
				check.True(t, len(got.Errors) != 0, "%s with %v: got %s, want an error", query, language, got.Data)
			}
		}
	})
}
