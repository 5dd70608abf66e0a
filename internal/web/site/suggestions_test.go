package site

import (
	"fmt"
	"testing"

	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/web/page"
)

func TestCompletions(t *testing.T) {
	named := func(path, name string, score float64) namedPage {
		return namedPage{Suggestion: page.Suggestion{Path: path, Name: name}, category: &catalog.Category{Label: "Rédaction"}, score: score}
	}
	c := newCompletions(
		[]namedPage{named("/tools/plume", "Plume", 8.1), named("/tools/ecritoire-cie", "Écritoire & Cie", 8.7), named("/tools/plumier", "Plumier", 9), named("/tools/porte-plume", "Porte-plume", 9.5)},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/categories/redaction", Name: "Rédaction"}}},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/cimetiere/plumeau", Name: "Plumeau"}}},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/comparatifs/x", Name: "Plume ou Écritoire & Cie ?"}}},
	)
	for typed, want := range map[string][]string{
		"PLUM":        {"/tools/plumier", "/tools/plume", "/cimetiere/plumeau", "/comparatifs/x", "/tools/porte-plume"},
		"plume":       {"/tools/plume", "/cimetiere/plumeau", "/comparatifs/x", "/tools/porte-plume"},
		"ecritoire c": {"/tools/ecritoire-cie", "/comparatifs/x"},
		"cie":         {"/tools/ecritoire-cie", "/comparatifs/x"},
		"rÉd":         {"/categories/redaction"},
		"lume":        nil,
		" & ":         nil,
	} {
		var got []string
		for _, p := range c.complete(typed) {
			got = append(got, p.Path)
		}
		check.Slices(t, got, want, "%q", typed)
	}
	var many []namedPage
	for i := range 5_000 {
		many = append(many, named(fmt.Sprintf("/tools/t-%d", i), fmt.Sprintf("Outil %d", i), 5))
	}
	check.Equal(t, len(newCompletions(many).complete("outil")), maxCompletions, "completions")
}

// In a large catalog, nothing is compared with all names: the tools here are nil.
func TestNoTypoCorrectionInLargeCatalogs(t *testing.T) {
	n := &names{release: &catalog.Release{Tools: make([]*catalog.Tool, maxNamesWithTypos+1)}}
	n.completions.pages = []namedPage{newNamedPage("/comparatifs/plume-vs-nova", "Plume vs Nova", "")}
	for _, list := range []string{"/tools", "/comparatifs"} {
		if got := n.similar(lang.French, list, "plume-vs-nove"); got != nil {
			t.Errorf("%s: got %v, want nothing", list, got)
		}
	}
	if got := n.similarTools("plume", 5); got != nil {
		t.Errorf("search: got %v, want nothing", got)
	}
}
