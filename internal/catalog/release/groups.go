package release

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Group is a group of tools.
type Group struct {
	Keys          [2]string // the second one is empty for groups by one field
	Count, Tested int
	Values        []*float64 // of the metrics
}

// GroupTools groups tools of the release by one or two fields, ordered by their keys.
func (r *Release) GroupTools(tools []*Tool, metrics []Metric, by ...func(*Tool) string) []Group {
	groups := map[[2]string]*figures{}
	for _, t := range tools {
		var key [2]string
		for i, of := range by {
			key[i] = of(t)
		}
		if groups[key] == nil {
			groups[key] = newFigures(metrics)
		}
		groups[key].add(t, 1)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	ordered := make([]Group, len(keys))
	for i, key := range keys {
		f := groups[key]
		ordered[i] = Group{key, f.count, f.tested, f.describe(metrics, r.Info.FeedDate)}
	}
	return ordered
}

// ScoreBins is the number of bins in a histogram of scores: 0 to 1, …, 9 to 10.
const ScoreBins = 10

// ScoreHistogram counts the tools in each bin.
func ScoreHistogram(tools []*Tool) (bins [ScoreBins]int) {
	for _, t := range tools {
		if !math.IsNaN(t.Score) {
			bins[min(int(t.Score), ScoreBins-1)]++
		}
	}
	return bins
}

// Wins counts comparisons and those won.
type Wins struct {
	Key         string
	Period      Period // empty unless comparisons are grouped by it
	Count, Wins int
}

// Rate returns the share of comparisons that were won, rounded to four decimals. It
// calculates with integers, so that halves are always rounded up.
func (w Wins) Rate() float64 {
	if w.Count == 0 {
		return 0
	}
	return float64((2*w.Wins*rateDecimals+w.Count)/(2*w.Count)) / rateDecimals
}

const rateDecimals = 1e4

// countWins groups comparisons, ordered by key: each counts once for each different key
// of its tools, and as won for the key of the winner.
func countWins(comparisons []*Comparison, key func(*Tool) string) []Wins {
	counts := map[string]*Wins{}
	count := func(key string, won bool) {
		if counts[key] == nil {
			counts[key] = &Wins{Key: key}
		}
		if counts[key].Count++; won {
			counts[key].Wins++
		}
	}
	for _, c := range comparisons {
		a, b, winner := key(c.A), key(c.B), key(c.Best)
		if count(a, winner == a); b != a {
			count(b, winner == b)
		}
	}
	groups := make([]Wins, 0, len(counts))
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		groups = append(groups, *counts[key])
	}
	return groups
}

// countByMonth groups comparisons by the month of their last update. There is also a
// group for each of the given months.
func countByMonth(comparisons []*Comparison, months []Period) []Wins {
	counts := map[string]int{}
	for _, m := range months {
		counts[m.Name] = 0
	}
	for _, c := range comparisons {
		counts[monthOf(c.UpdatedAt)]++
	}
	groups := make([]Wins, 0, len(counts))
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		groups = append(groups, Wins{Key: key, Period: monthNamed(key), Count: counts[key]})
	}
	return groups
}

// winRanks are the ranks of groups of comparisons, by the name of their order in the
// schema. The highest comes first.
var winRanks = map[string]func(Wins) float64{
	"key_asc":       func(Wins) float64 { return 0 },
	"count_desc":    func(w Wins) float64 { return float64(w.Count) },
	"wins_desc":     func(w Wins) float64 { return float64(w.Wins) },
	"win_rate_desc": Wins.Rate,
}

// GroupComparisons groups comparisons by tool, category or month, in an order of the
// schema and then by key, without groups of fewer comparisons than least. By month, there
// is also a group for each of the given months.
func GroupComparisons(comparisons []*Comparison, by, order string, least int, months []Period) (groups []Wins) {
	switch by {
	case Month:
		groups = countByMonth(comparisons, months)
	case "tool":
		groups = countWins(comparisons, Key("slug"))
	default:
		groups = countWins(comparisons, Key(by))
	}
	return Pick(groups, least, func(w Wins) int { return w.Count }, winRanks[order])
}

// Pick returns the groups of at least so many items, those of the highest rank first. Groups
// of the same rank keep their order; those without one, which is NaN, are the last.
func Pick[G any](groups []G, least int, count func(G) int, rank func(G) float64) []G {
	groups = slices.DeleteFunc(groups, func(g G) bool { return count(g) < least })
	slices.SortStableFunc(groups, func(a, b G) int { return cmp.Compare(rank(b), rank(a)) })
	return groups
}

// RetirementCount is the number of retired tools in a group. What they are not grouped by
// is empty.
type RetirementCount struct {
	Period           Period
	Reason, Category string
	Count            int
}

// CountRetirements groups retired tools by period, unless the interval is empty, and by
// other fields: reason, category or both. They are ordered by period, reason and category.
// Each reason and category also has a group for each of the given periods.
func CountRetirements(tools []*Tool, interval string, by []string, periods []Period) []RetirementCount {
	counts := map[RetirementCount]int{} // by group, without its count
	for _, t := range tools {
		var key RetirementCount
		if interval != "" {
			key.Period = PeriodOf(t.RetiredAt, interval)
		}
		if slices.Contains(by, "reason") {
			key.Reason = t.Reason
		}
		if slices.Contains(by, "category") {
			key.Category = t.Category
		}
		counts[key]++
	}
	for key := range maps.Clone(counts) {
		for _, p := range periods {
			key.Period = p
			counts[key] += 0
		}
	}
	var groups []RetirementCount
	for group, n := range counts {
		group.Count = n
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b RetirementCount) int {
		return cmp.Or(strings.Compare(a.Period.Start, b.Period.Start), strings.Compare(a.Reason, b.Reason),
			strings.Compare(a.Category, b.Category))
	})
	return groups
}

// PriceChangeCount is the number of price changes in a month and a category.
type PriceChangeCount struct {
	Month    Period
	Category string
	Count    int
}

// CountPriceChanges counts the price changes that satisfy a condition, of the active tools
// that satisfy a filter and, if included, of those that left, as they were when they were
// last active. They are ordered by month, then by category. Each category also has a count
// for each of the given months.
func (r *Release) CountPriceChanges(
	filter Filter, changes func(*PriceChange) bool, months []Period, includeLeft bool,
) []PriceChangeCount {
	type key struct{ month, category string }
	counts, counted := map[key]int{}, map[PriceChange]bool{}
	tools := r.Tools
	if includeLeft {
		tools = r.lastActive()
	}
	i := 0 // both are ordered by slug
	for _, v := range r.history.prices {
		for i < len(tools) && tools[i].Slug < v.value.Tool {
			i++
		}
		if i == len(tools) {
			break
		}
		t := tools[i]
		if v.since > r.Number() || v.until <= r.Number() && !includeLeft || t.Slug != v.value.Tool ||
			!t.Active() || !filter.Matches(t) || !changes(v.value) {
			continue
		}
		if includeLeft { // the changes of a tool that came back are stored again
			once := *v.value
			once.id = 0
			if counted[once] {
				continue
			}
			counted[once] = true
		}
		counts[key{monthOf(v.value.ChangedAt), t.Category}]++
	}
	for k := range maps.Clone(counts) {
		for _, m := range months {
			counts[key{m.Name, k.category}] += 0
		}
	}
	var groups []PriceChangeCount
	for k, n := range counts {
		groups = append(groups, PriceChangeCount{monthNamed(k.month), k.category, n})
	}
	slices.SortFunc(groups, func(a, b PriceChangeCount) int {
		return cmp.Or(strings.Compare(a.Month.Start, b.Month.Start), strings.Compare(a.Category, b.Category))
	})
	return groups
}

// monthOf returns the name of the month of a day.
func monthOf(day string) string { return day[:len("2006-01")] }

// monthNamed returns the month with a name.
func monthNamed(name string) Period { return PeriodOf(name+"-01", Month) }
