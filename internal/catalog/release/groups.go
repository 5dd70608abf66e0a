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
	Keys [2]string // the second one is empty for groups by one field
	*Figures
}

// GroupTools groups tools by one or two fields, ordered by their keys.
func GroupTools(tools []*Tool, by ...func(*Tool) string) []Group {
	groups := map[[2]string]*Figures{}
	for _, t := range tools {
		var key [2]string
		for i, of := range by {
			key[i] = of(t)
		}
		if groups[key] == nil {
			groups[key] = newFigures()
		}
		groups[key].add(t, 1)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	ordered := make([]Group, len(keys))
	for i, key := range keys {
		ordered[i] = Group{key, groups[key]}
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
	Count, Wins int
}

// Rate returns the share of comparisons that were won.
func (w Wins) Rate() float64 { return math.Round(float64(w.Wins)/float64(w.Count)*1e4) / 1e4 }

// CountWins groups comparisons: each counts once for each different key of its tools,
// and as won for the key of the winner.
func CountWins(comparisons []*Comparison, key func(*Tool) string) []Wins {
	return countComparisons(comparisons, func(c *Comparison, count func(string, bool)) {
		a, b, winner := key(c.A), key(c.B), key(c.Best)
		if count(a, winner == a); b != a {
			count(b, winner == b)
		}
	})
}

// CountByMonth groups comparisons by the month of their last update.
func CountByMonth(comparisons []*Comparison) []Wins {
	return countComparisons(comparisons, func(c *Comparison, count func(string, bool)) {
		count(month(c.UpdatedAt), false)
	})
}

func countComparisons(comparisons []*Comparison, visit func(*Comparison, func(key string, won bool))) []Wins {
	counts := map[string]*Wins{}
	for _, c := range comparisons {
		visit(c, func(key string, won bool) {
			if counts[key] == nil {
				counts[key] = &Wins{Key: key}
			}
			if counts[key].Count++; won {
				counts[key].Wins++
			}
		})
	}
	groups := make([]Wins, 0, len(counts))
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		groups = append(groups, *counts[key])
	}
	return groups
}

// RetirementKey is what retired tools are grouped by. Fields that do not matter are
// empty.
type RetirementKey struct{ Period, Reason, Category string }

// RetirementCount is the number of tools with a key.
type RetirementCount struct {
	RetirementKey
	Count int
}

// CountRetirements groups retired tools, ordered by their keys.
func CountRetirements(tools []*Tool, key func(*Tool) RetirementKey) []RetirementCount {
	counts := map[RetirementKey]int{}
	for _, t := range tools {
		counts[key(t)]++
	}
	var groups []RetirementCount
	for k, n := range counts {
		groups = append(groups, RetirementCount{k, n})
	}
	slices.SortFunc(groups, func(a, b RetirementCount) int {
		return cmp.Or(strings.Compare(a.Period, b.Period), strings.Compare(a.Reason, b.Reason),
			strings.Compare(a.Category, b.Category))
	})
	return groups
}

// PriceChangeCount is the number of price changes in a month and a category.
type PriceChangeCount struct {
	Month, Category string
	Count           int
}

// CountPriceChanges counts the price changes that satisfy a condition, of the active
// tools that satisfy a filter. They are ordered by month, then by category.
func (r *Release) CountPriceChanges(tools Filter, changes func(*PriceChange) bool) []PriceChangeCount {
	counts := map[[2]string]int{}
	i := 0 // both are ordered by slug
	for _, v := range r.history.prices {
		for i < len(r.Tools) && r.Tools[i].Slug < v.value.Tool {
			i++
		}
		if i == len(r.Tools) {
			break
		}
		t := r.Tools[i]
		if v.has(r.Number()) && t.Slug == v.value.Tool && t.Active() && tools.Matches(t) && changes(v.value) {
			counts[[2]string{month(v.value.ChangedAt), t.Category}]++
		}
	}
	var groups []PriceChangeCount
	for key, n := range counts {
		groups = append(groups, PriceChangeCount{key[0], key[1], n})
	}
	slices.SortFunc(groups, func(a, b PriceChangeCount) int {
		return cmp.Or(strings.Compare(a.Month, b.Month), strings.Compare(a.Category, b.Category))
	})
	return groups
}

// month returns the month of a day.
func month(day string) string { return day[:len("2006-01")] }
