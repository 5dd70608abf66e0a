package graph

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// matchingTools returns the active tools that match a filter.
func (r *reader) matchingTools(filter *model.ToolFilter) ([]*release.Tool, error) {
	conditions, err := r.toolFilter(filter)
	if err != nil {
		return nil, err
	}
	return r.release.Matching(release.ByScore, conditions), nil
}

func (queryResolver) ToolGroups(
	ctx context.Context, by model.ToolGroupKey, thenBy *model.ToolGroupKey, filter *model.ToolFilter,
) ([]*model.ToolGroup, error) {
	if thenBy != nil && *thenBy == by {
		return nil, problem.New(problem.BadInput, "by and thenBy must be different (got %s for both).", by)
	}
	tools, err := readerFrom(ctx).matchingTools(filter)
	if err != nil {
		return nil, err
	}
	keys := []func(*release.Tool) string{release.Key(string(by))}
	if thenBy != nil {
		keys = append(keys, release.Key(string(*thenBy)))
	}
	return mapSlice(release.GroupTools(tools, keys...), func(g release.Group) *model.ToolGroup {
		group := &model.ToolGroup{
			Key: g.Keys[0], Count: g.Count, Tested: g.Scores.Count,
			MinScore: g.Scores.Min(), AvgScore: g.Scores.Mean(),
			MedianScore: g.Scores.Median(), MaxScore: g.Scores.Max(),
			MinMonthlyPrice: g.Prices.Min(), AvgMonthlyPrice: g.Prices.Mean(),
			MedianMonthlyPrice: g.Prices.Median(), MaxMonthlyPrice: g.Prices.Max(),
		}
		if thenBy != nil {
			group.ThenKey = &g.Keys[1]
		}
		return group
	}), nil
}

func (queryResolver) ComparisonGroups(
	ctx context.Context, by model.ComparisonGroupKey,
	category, tool, winner, updatedSince, updatedBefore *string,
	sort model.ComparisonGroupSort, limit int,
) ([]*model.ComparisonGroup, error) {
	if err := params.CheckRange("limit", limit, 1, document.MaxPageSize); err != nil {
		return nil, err
	}
	found, err := readerFrom(ctx).findComparisons(release.ComparisonFilter{
		Category: category, Tool: tool, Winner: winner, UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
	})
	if err != nil {
		return nil, err
	}
	counts := release.CountByMonth
	if by != model.ComparisonGroupKeyMonth {
		key := release.Key("slug")
		if by == model.ComparisonGroupKeyCategory {
			key = release.Key("category")
		}
		counts = func(found []*release.Comparison) []release.Wins { return release.CountWins(found, key) }
	}
	groups := mapSlice(counts(found), func(w release.Wins) *model.ComparisonGroup {
		group := &model.ComparisonGroup{Key: w.Key, Count: w.Count}
		if by != model.ComparisonGroupKeyMonth {
			rate := w.Rate()
			group.Wins, group.WinRate = &w.Wins, &rate
		}
		return group
	})
	slices.SortStableFunc(groups, func(a, b *model.ComparisonGroup) int { // groups are ordered by key
		return -cmp.Compare(comparisonRanks[sort](a), comparisonRanks[sort](b))
	})
	return groups[:min(limit, len(groups))], nil
}

// comparisonRanks are the sort keys of groups of comparisons, highest first.
var comparisonRanks = map[model.ComparisonGroupSort]func(*model.ComparisonGroup) float64{
	model.ComparisonGroupSortKeyAsc:      func(*model.ComparisonGroup) float64 { return 0 },
	model.ComparisonGroupSortCountDesc:   func(g *model.ComparisonGroup) float64 { return float64(g.Count) },
	model.ComparisonGroupSortWinsDesc:    func(g *model.ComparisonGroup) float64 { return float64(orZero(g.Wins)) },
	model.ComparisonGroupSortWinRateDesc: func(g *model.ComparisonGroup) float64 { return orZero(g.WinRate) },
}

func (queryResolver) RetirementGroups(
	ctx context.Context, by []model.RetirementGroupKey, every *model.Period, retiredSince, retiredBefore *string,
) ([]*model.RetirementGroup, error) {
	if len(by) > 2 || len(by) == 2 && by[0] == by[1] {
		return nil, problem.New(problem.BadInput, "by must be reason, category or both, without duplicates (got %s).",
			strings.Join(mapSlice(by, model.RetirementGroupKey.String), ", "))
	}
	found := readerFrom(ctx).release.MatchingRetired(release.RetiredFilter{Since: retiredSince, Before: retiredBefore})
	groups := release.CountRetirements(found, func(t *release.Tool) (k release.RetirementKey) {
		if every != nil {
			k.Period = release.PeriodOf(t.RetiredAt, string(*every)).Name
		}
		if slices.Contains(by, model.RetirementGroupKeyReason) {
			k.Reason = t.Reason
		}
		if slices.Contains(by, model.RetirementGroupKeyCategory) {
			k.Category = t.Category
		}
		return k
	})
	return mapSlice(groups, func(g release.RetirementCount) *model.RetirementGroup {
		return &model.RetirementGroup{
			Reason: (*model.RetirementReason)(orNil(g.Reason)), Category: orNil(g.Category),
			Period: orNil(g.Period), Count: g.Count,
		}
	}), nil
}

func (queryResolver) ScoreHistogram(ctx context.Context, filter *model.ToolFilter) ([]*model.ScoreBin, error) {
	tools, err := readerFrom(ctx).matchingTools(filter)
	if err != nil {
		return nil, err
	}
	var histogram []*model.ScoreBin
	for i, count := range release.ScoreHistogram(tools) {
		histogram = append(histogram, &model.ScoreBin{From: float64(i), To: float64(i + 1), Count: count})
	}
	return histogram, nil
}

func (queryResolver) PriceChangeCounts(
	ctx context.Context, filter *model.ToolFilter, since *string, direction *model.PriceDirection,
) ([]*model.PriceChangeCount, error) {
	r := readerFrom(ctx)
	conditions, err := r.toolFilter(filter)
	if err != nil {
		return nil, err
	}
	counts := r.release.CountPriceChanges(conditions, func(c *release.PriceChange) bool {
		return (since == nil || c.ChangedAt >= *since) && (direction == nil || c.Direction == string(*direction))
	})
	return mapSlice(counts, func(c release.PriceChangeCount) *model.PriceChangeCount {
		return (*model.PriceChangeCount)(&c)
	}), nil
}
