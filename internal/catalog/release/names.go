package release

import (
	"cmp"
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
func (r *Release) IsComparison(slug string) bool {
	return Derived(r, func(r *Release) comparisonSlugs {
		slugs := comparisonSlugs{}
		for _, c := range r.Comparisons {
			slugs[c.Slug] = true
		}
		return slugs
	})[slug]
}

// comparisonSlugs is the slugs of all comparisons: a page asks about each of its events.
type comparisonSlugs map[string]bool

// domainSet is the domains of active tools.
type domainSet map[string]bool

// IsDomain reports whether an active tool has a domain.
func (r *Release) IsDomain(domain string) bool {
	domains := Derived(r, func(r *Release) domainSet {
		domains := domainSet{}
		for _, t := range r.Tools {
			if t.Active() {
				domains[Domain(t.Domain)] = true
			}
		}
		return domains
	})
	return domains[Domain(domain)]
}

// NearestCategory returns the slug of the category whose slug, or else label, is most
// similar to a text, or "".
func (r *Release) NearestCategory(wanted string) string {
	var slugs, labels []string
	for _, c := range r.Categories {
		slugs, labels = append(slugs, c.Slug), append(labels, c.Label)
	}
	if nearest := text.Nearest(wanted, slugs); nearest != "" {
		return nearest
	}
	if label := text.Nearest(wanted, labels); label != "" {
		return slugs[slices.Index(labels, label)]
	}
	return ""
}

// comparisonNames finds comparisons by slugs that are spelled in a similar way.
type comparisonNames struct{ slugs *text.Index }

// SimilarComparisons returns comparisons whose slugs are similar to a text, the most similar
// first. In large catalogs, there are none.
func (r *Release) SimilarComparisons(wanted string, limit int) (similar []*Comparison) {
	if len(r.Comparisons) > maxCompared {
		return nil
	}
	names := Derived(r, func(r *Release) comparisonNames {
		slugs := make([]string, len(r.Comparisons))
		for i, c := range r.Comparisons {
			slugs[i] = c.Slug
		}
		return comparisonNames{text.NewIndex(slugs)}
	})
	for _, i := range names.slugs.Similar(wanted, limit) {
		similar = append(similar, r.Comparisons[i])
	}
	return similar
}

// NearestComparison returns the slug of the comparison of the same tools in the other
// order, or else the one that is most similar to another slug, or "".
func (r *Release) NearestComparison(slug string) string {
	found := r.SimilarComparisons(slug, 1)
	if a, b, ok := strings.Cut(slug, "-vs-"); ok && len(r.Comparisons) <= maxCompared {
		found = slices.Concat(r.FindComparisons(b+"-vs-"+a), found)
	}
	if found == nil {
		return ""
	}
	return found[0].Slug
}

// Named is an item of the catalog with a name. One of its fields is set.
type Named struct {
	Tool       *Tool
	Category   *Category
	Comparison *Comparison
}

// Names returns the name of an item in both languages. English is "" without a translation.
func (n Named) Names() (french, english string) {
	switch {
	case n.Tool != nil:
		return n.Tool.Name, ""
	case n.Category != nil:
		return n.Category.Label, n.Category.Translations.En.Label
	}
	return n.Comparison.Title, n.Comparison.Translations.En.Title
}

// completions finds items by the start of any word of their names. Entries are sorted by
// their key: the rest of a name from a word on.
type completions struct {
	items   []Named
	entries []completion
}

type completion struct {
	key   string
	item  int32 // position
	start bool  // the key is the whole name
}

// maxCompletionScan is how many entries with the same start are looked at.
const maxCompletionScan = 1_000

// newCompletions indexes items, the most important ones first.
func newCompletions(items []Named) (c completions) {
	c.items = items
	for i, item := range items {
		french, english := item.Names()
		for _, name := range slices.Compact([]string{french, english}) {
			rest := strings.Join(text.Words(name), " ")
			for start := true; rest != ""; start = false {
				c.entries = append(c.entries, completion{rest, int32(i), start}) //nolint:gosec // the catalog fits into memory
				_, rest, _ = strings.Cut(rest, " ")
			}
		}
	}
	slices.SortFunc(c.entries, func(a, b completion) int { return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.item, b.item)) })
	return c
}

func (c completions) find(typed string, limit int) (found []Named) {
	prefix := strings.Join(text.Words(typed), " ")
	if prefix == "" {
		return nil
	}
	first, _ := slices.BinarySearchFunc(c.entries, prefix, func(e completion, prefix string) int { return strings.Compare(e.key, prefix) })
	matches := slices.Clone(c.entries[first:min(len(c.entries), first+maxCompletionScan)])
	if end := slices.IndexFunc(matches, func(e completion) bool { return !strings.HasPrefix(e.key, prefix) }); end >= 0 {
		matches = matches[:end]
	}
	slices.SortStableFunc(matches, func(a, b completion) int {
		switch {
		case a.start == b.start:
			return cmp.Compare(a.item, b.item)
		case a.start:
			return -1
		}
		return 1
	})
	for _, m := range matches {
		if item := c.items[m.item]; len(found) < limit && !slices.Contains(found, item) {
			found = append(found, item)
		}
	}
	return found
}

// Complete returns items whose names have a word that starts with a text: those whose names
// start with it first, then active tools by score, categories, retired tools and comparisons.
func (r *Release) Complete(typed string, limit int) []Named {
	return Derived(r, func(r *Release) completions {
		var items []Named
		for _, t := range r.Sorted(ByScore) {
			items = append(items, Named{Tool: t})
		}
		for _, c := range r.Categories {
			items = append(items, Named{Category: c})
		}
		for _, t := range r.Sorted(ByRetirement) {
			items = append(items, Named{Tool: t})
		}
		for _, c := range r.Comparisons {
			items = append(items, Named{Comparison: c})
		}
		return newCompletions(items)
	}).find(typed, limit)
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
