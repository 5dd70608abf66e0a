package site

import (
	"context"
	"slices"
	"strings"

	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

// searchView has everything that matches a text.
type searchView struct {
	Tools        listOf[tool]
	RetiredTools listOf[tool]
	Categories   []category
	Matching     []category        `json:"-"`
	Comparisons  []comparison      `json:"-"` // of the tools that match
	Similar      []page.Suggestion `json:"-"` // if nothing matches
}

const maxFoundComparisons = 10

func (v *searchView) load(ctx context.Context, s *Site, r *request) error {
	words := text.Words(r.Param("q"))
	if len(words) == 0 {
		v.Tools, v.RetiredTools = listOf[tool]{}, listOf[tool]{}
		return nil
	}
	for _, c := range v.Categories {
		of := text.Words(c.Label)
		if !slices.ContainsFunc(words, func(word string) bool {
			return !slices.ContainsFunc(of, func(w string) bool { return strings.HasPrefix(w, word) })
		}) {
			v.Matching = append(v.Matching, c)
		}
	}
	for _, t := range slices.Concat(v.Tools.Items, v.RetiredTools.Items) {
		for _, c := range t.Comparisons {
			if len(v.Comparisons) < maxFoundComparisons && !slices.ContainsFunc(v.Comparisons, func(known comparison) bool { return known.Slug == c.Slug }) {
				v.Comparisons = append(v.Comparisons, c)
			}
		}
	}
	if v.Count() == 0 {
		v.Similar = s.similarTools(ctx, r.Param("q"))
	}
	return nil
}

// Count returns the number of results.
func (v *searchView) Count() int {
	return v.Tools.Meta.Total + v.RetiredTools.Meta.Total + len(v.Matching) + len(v.Comparisons)
}
