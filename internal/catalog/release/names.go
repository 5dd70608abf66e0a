package release

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"palmares/internal/core/text"
)

// toolNames finds tools by slugs that are spelled in a similar way.
type toolNames struct {
	tools []*Tool // the highest scores first, then retired ones
	slugs *text.Index
}

// maxCompared is the number of names that are compared letter by letter. With more, it
// would take too long.
const maxCompared = 20_000

// SimilarTools returns active and retired tools whose slugs are similar to a text, the
// most similar first. In large catalogs, there are none.
func (r *Release) SimilarTools(wanted string, limit int) (similar []*Tool) {
	if len(r.Tools) > maxCompared {
		return nil
	}
	names := Derived(r, func(r *Release) toolNames {
		tools := slices.Concat(r.Sorted(ByScore), r.Sorted(ByRetirement))
		slugs := make([]string, len(tools))
		for i, t := range tools {
			slugs[i] = t.Slug
		}
		return toolNames{tools, text.NewIndex(slugs)}
	})
	for _, i := range names.slugs.Similar(wanted, limit) {
		similar = append(similar, names.tools[i])
	}
	return similar
}

// maxNearest is the number of similar tools among which the nearest active one is
// looked for.
const maxNearest = 10

// NearestTool returns the slug of the active tool whose slug is most similar to another,
// or "".
func (r *Release) NearestTool(slug string) string {
	for _, t := range r.SimilarTools(slug, maxNearest) {
		if t.Active() {
			return t.Slug
		}
	}
	return ""
}

// IsTool reports whether an active tool has a slug.
func (r *Release) IsTool(slug string) bool {
	t := r.Tool(slug)
	return t != nil && t.Active()
}

// IsComparison reports whether a published comparison has a slug.
func (r *Release) IsComparison(slug string) bool { return r.FindComparisons(slug) != nil }

// UnknownDomains returns the domains that no active tool has.
func (r *Release) UnknownDomains(domains []string) []string {
	known := map[string]bool{}
	for _, t := range r.Tools {
		if t.Active() {
			known[Domain(t.Domain)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(domains), func(domain string) bool { return known[Domain(domain)] })
}

// comparisonNames finds comparisons by slugs that are spelled in a similar way.
type comparisonNames struct{ slugs *text.Index }

// NearestComparison returns the slug of the comparison of the same tools in the other
// order, or else the one that is most similar to another slug, or "".
func (r *Release) NearestComparison(slug string) string {
	if len(r.Comparisons) > maxCompared {
		return ""
	}
	if a, b, ok := strings.Cut(slug, "-vs-"); ok {
		if found := r.FindComparisons(b + "-vs-" + a); found != nil {
			return found[0].Slug
		}
	}
	names := Derived(r, func(r *Release) comparisonNames {
		slugs := make([]string, len(r.Comparisons))
		for i, c := range r.Comparisons {
			slugs[i] = c.Slug
		}
		return comparisonNames{text.NewIndex(slugs)}
	})
	if similar := names.slugs.Similar(slug, 1); similar != nil {
		return r.Comparisons[similar[0]].Slug
	}
	return ""
}

// Derived returns a value that is derived from a release on first use, and lives as
// long as the release. There is one value of each type.
func Derived[V any](r *Release, derive func(*Release) V) V {
	once, known := r.derived.Load(reflect.TypeFor[V]())
	if !known {
		once, _ = r.derived.LoadOrStore(reflect.TypeFor[V](), sync.OnceValue(func() V { return derive(r) }))
	}
	return once.(func() V)()
}
