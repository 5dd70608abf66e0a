package site

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

// searchView has everything that matches a text.
type searchView struct {
	Tools        listOf[tool]
	RetiredTools listOf[tool]
	Categories   categoryList
	Matching     []category        `json:"-"`
	Comparisons  []comparison      `json:"-"` // of the tools that match
	Similar      []page.Suggestion `json:"-"` // if nothing matches
	Corrected    string            `json:"-"` // the text without its typos, or ""
}

const maxFoundComparisons = 10

func (v *searchView) prepare(ctx context.Context, s *Site, r *request) error {
	v.Categories.countTested(r.shown)
	words := text.Words(r.Param("q"))
	if len(words) == 0 {
		v.Tools, v.RetiredTools = listOf[tool]{}, listOf[tool]{}
		return nil
	}
	for _, c := range v.Categories {
		of := text.Words(c.Label + " " + c.FrenchLabel)
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
	if newest, err := s.Executor.Newest(ctx); err == nil && v.Count() == 0 {
		v.Similar = similarTools(r.lang, newest, r.Param("q"))
	}
	v.Corrected = s.correct(ctx, r, v.Tools.Items)
	return nil
}

// correct returns the search text without its typos, if only that found the tools, or
// "".
func (s *Site) correct(ctx context.Context, r *request, found []tool) string {
	if len(found) == 0 || r.Param("q") == "" {
		return ""
	}
	newest, err := s.Executor.Newest(ctx)
	if err != nil {
		return "" // the results are useful without it
	}
	words := strings.Fields(newest.Correct(r.Param("q")))
	for i, word := range words {
		words[i] = spelling(word, found)
	}
	return strings.Join(words, " ")
}

// spelling returns a folded word as the tools spell it.
func spelling(word string, tools []tool) string {
	for _, t := range tools {
		for spelled := range strings.FieldsFuncSeq(t.Name+" "+t.Category.Label+" "+t.FrenchTagline, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if text.Fold(spelled) == word {
				return spelled
			}
		}
	}
	return word
}

// Count returns the number of results.
func (v *searchView) Count() int {
	return v.Tools.Meta.Total + v.RetiredTools.Meta.Total + len(v.Matching) + len(v.Comparisons)
}
