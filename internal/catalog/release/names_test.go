package release

import (
	"testing"

	"palmares/ent/schema"
	"palmares/internal/dev/check"
)

func TestCompletions(t *testing.T) {
	named := func(slug, name string) Named { return Named{Tool: &Tool{Slug: slug, Name: name}} }
	english := &Comparison{ComparisonText: &ComparisonText{Slug: "x", Title: "Plume ou Écritoire & Cie ?"}}
	english.Translations.En.Title = "Which pen?"
	c := newCompletions([]Named{
		named("porte-plume", "Porte-plume"), named("plumier", "Plumier"), named("ecritoire-cie", "Écritoire & Cie"), named("plume", "Plume"),
		{Category: &Category{Slug: "redaction", Label: "Rédaction", Translations: schema.CategoryTranslations{}}}, named("plumeau", "Plumeau"), {Comparison: english},
	})
	for typed, want := range map[string][]string{
		"PLUM":        {"plumier", "plume", "plumeau", "x", "porte-plume"},
		"plume":       {"plume", "plumeau", "x", "porte-plume"},
		"ecritoire c": {"ecritoire-cie", "x"},
		"cie":         {"ecritoire-cie", "x"},
		"rÉd":         {"redaction"},
		"pen":         {"x"},
		"p":           {"porte-plume", "plumier", "plume", "plumeau", "x"},
		"lume":        nil,
		" & ":         nil,
	} {
		var got []string
		for _, n := range c.find(typed, 8) {
			switch {
			case n.Tool != nil:
				got = append(got, n.Tool.Slug)
			case n.Category != nil:
				got = append(got, n.Category.Slug)
			default:
				got = append(got, n.Comparison.Slug)
			}
		}
		check.Slices(t, got, want, "%q", typed)
	}
	check.Equal(t, len(c.find("p", 2)), 2, "items up to a limit")
}
