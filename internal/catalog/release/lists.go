package release

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/search"
)

// Relevance has the tools that a search found, with their ranks. It orders them by
// rank, then by score.
type Relevance map[*Tool]int

// fewMatches is the share of tools up to which sorting the matches of a search is faster
// than finding them among all tools, which are sorted already.
const fewMatches = 1.0 / 16

// ByRelevance returns the active tools that a search found and that satisfy a filter, in
// the order of their relevance.
func (r *Release) ByRelevance(ranks Relevance, filter Filter) []*Tool {
	if float64(len(ranks)) < fewMatches*float64(len(r.Tools)) {
		found := slices.DeleteFunc(slices.Collect(maps.Keys(ranks)), func(t *Tool) bool { return !filter.Matches(t) })
		compare := ByScore.Comparer()
		slices.SortFunc(found, func(a, b *Tool) int { return cmp.Or(ranks[a]-ranks[b], compare(a, b)) })
		return found
	}
	var byRank [search.RankOtherLanguage + 1][]*Tool
	for _, t := range r.Matching(ByScore, filter) {
		if rank, ok := ranks[t]; ok {
			byRank[rank] = append(byRank[rank], t)
		}
	}
	return slices.Concat(byRank[:]...)
}

// Places returns the places of tools in the order.
func (r Relevance) Places() Places[*Tool] {
	score := fields[ByScore.field]
	return Places[*Tool]{func(t *Tool) Place {
		place := score.of(t)
		place.Rank = r[t]
		return place
	}, ByScore.descending}
}

// PriceRose returns the condition that the price of a tool rose at least a number of
// times since a day, which may be empty.
func (r *Release) PriceRose(times int, since string) Condition {
	rises := map[string]int{}
	for _, v := range r.history.prices {
		if v.has(r.Number()) && v.value.Direction == pricing.Up && v.value.ChangedAt >= since {
			rises[v.value.Tool]++
		}
	}
	return Where(func(t *Tool) bool { return rises[t.Slug] >= times })
}

// InCategories returns the first active tools of each category that satisfy a filter, in an
// order, by the category's slug.
func (r *Release) InCategories(o Order, filter Filter, categories []*Category, limit int) map[string][]*Tool {
	of, missing := make(map[string][]*Tool, len(categories)), 0
	for _, c := range categories {
		n := min(limit, c.ToolCount)
		if of[c.Slug] == nil {
			missing += n
		}
		of[c.Slug] = make([]*Tool, 0, n)
	}
	for _, t := range r.Matching(o, filter) {
		if missing == 0 {
			break
		}
		if tools := of[t.Category]; len(tools) < cap(tools) {
			of[t.Category] = append(tools, t)
			missing--
		}
	}
	return of
}

// ComparisonFilter has conditions on comparisons; nil for none.
type ComparisonFilter struct {
	Slugs, Domains                                                 []string
	Category, Tool, OtherTool, Winner, UpdatedSince, UpdatedBefore *string
}

// MatchingComparisons returns the comparisons that satisfy a filter, in order.
func (r *Release) MatchingComparisons(f ComparisonFilter) (found []*Comparison) {
	ofDomain := Filter{OneOf("domain", f.Domains)}
	for _, c := range r.Comparisons {
		if (f.Slugs == nil || slices.Contains(f.Slugs, c.Slug)) &&
			(f.Domains == nil || ofDomain.Matches(c.A) || ofDomain.Matches(c.B)) &&
			(f.Category == nil || c.A.Category == *f.Category || c.B.Category == *f.Category) &&
			(f.Tool == nil || c.ToolA == *f.Tool || c.ToolB == *f.Tool) &&
			(f.OtherTool == nil || c.ToolA == *f.OtherTool || c.ToolB == *f.OtherTool) &&
			(f.Winner == nil || c.Winner == *f.Winner) &&
			(f.UpdatedSince == nil || c.UpdatedAt >= *f.UpdatedSince) &&
			(f.UpdatedBefore == nil || c.UpdatedAt < *f.UpdatedBefore) {
			found = append(found, c)
		}
	}
	return found
}

// ByUpdate are the places of comparisons: the most recently updated first.
var ByUpdate = Places[*Comparison]{func(c *Comparison) Place { return Place{Text: c.UpdatedAt, Slug: c.Slug} }, true}

// RetiredFilter has conditions on retired tools; nil for none.
type RetiredFilter struct{ Reason, Category, Since, Before *string }

// MatchingRetired returns the retired tools that satisfy a filter, the most recently
// retired first.
func (r *Release) MatchingRetired(f RetiredFilter) []*Tool {
	return r.Matching(ByRetirement, Filter{Where(func(t *Tool) bool {
		return (f.Reason == nil || t.Reason == *f.Reason) && (f.Category == nil || t.Category == *f.Category) &&
			(f.Since == nil || t.RetiredAt >= *f.Since) && (f.Before == nil || t.RetiredAt < *f.Before)
	})})
}

// ByNumber are the places of releases: the newest first.
var ByNumber = Places[*ent.Release]{func(release *ent.Release) Place { return Place{Number: float64(release.ID)} }, true}

// PublishedBetween returns the numbers of the first and the last release that were
// published from one day on and before another, up to this one; nil for no limit. If
// there is none, the first is greater than the last.
func (r *Release) PublishedBetween(since, before *string) (first, last int) {
	// earlier returns the position of the newest release before a day.
	earlier := func(day string) int {
		return sort.Search(len(r.All), func(i int) bool { // newest first
			return r.All[i].ImportedAt.UTC().Format(time.DateOnly) < day
		})
	}
	first, last = 1, r.Number()
	if since != nil {
		first = r.Number() + 1
		if n := earlier(*since); n > 0 {
			first = r.All[n-1].ID
		}
	}
	if before != nil {
		last = 0
		if n := earlier(*before); n < len(r.All) {
			last = r.All[n].ID
		}
	}
	return first, last
}
