package graph

import (
	"cmp"
	"slices"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// Unknown is a value of an argument that matches nothing. Operations note such values,
// because an empty list does not say why it is empty.
type Unknown struct {
	Argument, Value string

	nearest func(string) string
}

// Nearest returns the value that is probably meant, or "" if none is similar.
func (u Unknown) Nearest() string { return u.nearest(u.Value) }

// maxUnknown limits how many values an operation notes.
const maxUnknown = 5

// note notes values of an argument that are not known, each once, even if several fields
// have it. Nothing is unknown before the first release.
func (r *reader) note(argument string, values []string, isKnown func(string) bool, nearest func(string) string) {
	if r.Info == nil {
		return
	}
	for _, value := range values {
		isNoted := func(u Unknown) bool { return u.Argument == argument && u.Value == value }
		if len(r.unknown) < maxUnknown && !isKnown(value) && !slices.ContainsFunc(r.unknown, isNoted) {
			r.unknown = append(r.unknown, Unknown{argument, value, nearest})
		}
	}
}

// noteCategory notes the category of a list that is empty, if there is none with the slug.
// Retired tools and events may be about a category that no longer exists.
func (r *reader) noteCategory(slug *string, isEmpty bool) {
	if slug != nil && isEmpty {
		r.note("category", []string{*slug}, r.isCategory, r.NearestCategory)
	}
}

func (r *reader) isCategory(slug string) bool { return r.Category(slug) != nil }

// noteTools notes what a filter names and no active tool or category has.
func (r *reader) noteTools(f *model.ToolFilter) {
	if f == nil {
		return
	}
	r.note("categories", f.Categories, r.isCategory, r.NearestCategory)
	r.note("slugs", f.Slugs, r.IsTool, r.NearestTool)
	r.noteDomains(f.Domains)
}

func (r *reader) noteDomains(domains []string) {
	r.note("domains", domains, r.IsDomain, func(string) string { return "" })
}

// noteComparisons notes what a filter names and no tool or comparison has.
func (r *reader) noteComparisons(f release.ComparisonFilter, isEmpty bool) {
	r.noteCategory(f.Category, isEmpty)
	r.note("slugs", f.Slugs, r.IsComparison, r.NearestComparison)
	r.noteDomains(f.Domains)
	for _, named := range []struct {
		argument string
		slug     *string
	}{{"tool", f.Tool}, {"otherTool", f.OtherTool}, {"winner", f.Winner}} {
		if named.slug != nil && isEmpty {
			r.note(named.argument, []string{*named.slug}, func(slug string) bool { return r.Tool(slug) != nil }, r.NearestTool)
		}
	}
}

// nearestSlug returns the slug of a tool or comparison that is similar to another.
func (r *reader) nearestSlug(slug string) string {
	return cmp.Or(r.NearestTool(slug), r.NearestComparison(slug))
}
