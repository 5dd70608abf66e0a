package graph

import (
	"cmp"
	"context"
	"math"
	"strings"

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
	return r.Matching(release.ByScore, conditions), nil
}

func (queryResolver) ToolGroups(
	ctx context.Context, by model.ToolGroupKey, thenBy *model.ToolGroupKey, filter *model.ToolFilter,
	orderBy model.ToolGroupOrder, minCount, limit *int,
) ([]*model.ToolGroup, error) {
	if thenBy != nil && *thenBy == by {
		return nil, problem.New(problem.BadInput, "by and thenBy must be different (got %s for both).", by)
	}
	r := readerFrom(ctx)
	tools, err := r.matchingTools(filter)
	if err != nil {
		return nil, err
	}
	keys := []func(*release.Tool) string{release.Key(string(by))}
	if thenBy != nil {
		keys = append(keys, release.Key(string(*thenBy)))
	}
	metrics, convert := model.ToolGroupMetrics(func(field string) bool { return selects(ctx, field) })
	selected, sign := len(metrics), 1.0
	order, descending := release.SplitOrder(string(orderBy))
	if metric, ok := release.MetricNamed(order); ok {
		metrics = append(metrics, metric)
	}
	if !descending {
		sign = -1
	}
	rank := func(g release.Group) float64 {
		switch {
		case len(metrics) == selected: // by key
			return 0
		case g.Values[selected] == nil:
			return math.NaN()
		}
		return sign * *g.Values[selected]
	}
	r.canChange(ctx, func(in *reader) (groupFigures, error) {
		found := tools
		if in != r {
			conditions, err := conditionsOverTime(filter, in.increased)
			if err != nil {
				return nil, err
			}
			found = in.Matching(release.ByScore, conditions)
		}
		figures := groupFigures{}
		for _, g := range in.GroupTools(found, comparedMetrics, keys...) {
			figures[model.GroupKey{g.Keys[0], g.Keys[1]}] = model.GroupChange{
				Count: g.Count, AvgScore: g.Values[0], AvgMonthlyPrice: g.Values[1],
			}
		}
		return figures, nil
	})
	groups, err := pick(r.GroupTools(tools, metrics, keys...), minCount, limit,
		func(g release.Group) int { return g.Count }, rank)
	return model.Map(groups, func(g release.Group) *model.ToolGroup {
		g.Values = g.Values[:selected]
		return convert(g)
	}), err
}

// comparedMetrics are those of tools that changes compare.
var comparedMetrics = func() (metrics []release.Metric) {
	for _, name := range []string{"avgScore", "avgMonthlyPrice"} {
		metric, _ := release.MetricNamed(name)
		metrics = append(metrics, metric)
	}
	return metrics
}()

// maxGroups is the maximum of limits on groups.
const maxGroups = 1_000

// pick returns the first groups of an order with at least so many items.
func pick[G any](groups []G, least, limit *int, count func(G) int, rank func(G) float64) ([]G, error) {
	groups = release.Pick(groups, orZero(least), count, rank)
	if limit == nil {
		return groups, nil
	}
	return groups[:max(0, min(*limit, len(groups)))], params.CheckRange("limit", *limit, 1, maxGroups)
}

// pickCounted is pick for groups whose only value is their count.
func pickCounted[G any](groups []G, order model.CountOrder, least, limit *int, count func(G) int) ([]G, error) {
	return pick(groups, least, limit, count, func(g G) float64 {
		if order == model.CountOrderCountDesc {
			return float64(count(g))
		}
		return 0
	})
}

func (queryResolver) ComparisonGroups(
	ctx context.Context, by model.ComparisonGroupKey,
	category, tool, winner, updatedSince, updatedBefore *string,
	sort model.ComparisonGroupSort, minCount *int, includeEmpty bool, page, limit int,
) ([]*model.ComparisonGroup, error) {
	if err := checkPage(page, limit); err != nil {
		return nil, err
	}
	byMonth := by == model.ComparisonGroupKeyMonth
	if includeEmpty && !byMonth {
		return nil, problem.New(problem.BadInput, "includeEmpty requires by: month (got %s).", by)
	}
	r := readerFrom(ctx)
	wanted := release.ComparisonFilter{
		Category: category, Tool: tool, Winner: winner, UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
	}
	found, err := r.findComparisons(wanted)
	months, tooMany := r.periods(includeEmpty, release.ComparisonUpdates, release.Month, updatedSince, updatedBefore)
	if err := cmp.Or(err, tooMany); err != nil {
		return nil, err
	}
	counts := release.GroupComparisons(found, string(by), string(sort), orZero(minCount), months)
	r.canChange(ctx, func(in *reader) (groupFigures, error) {
		figures := groupFigures{}
		for _, w := range release.GroupComparisons(in.MatchingComparisons(wanted), string(by), string(sort), 0, nil) {
			rate := w.Rate()
			figures[model.GroupKey{w.Key}] = model.GroupChange{Count: w.Count, WinRate: &rate}
		}
		return figures, nil
	})
	start := min((page-1)*limit, len(counts))
	groups := model.Map(counts[start:min(start+limit, len(counts))], func(w release.Wins) *model.ComparisonGroup {
		group := &model.ComparisonGroup{
			Key: w.Key, Count: w.Count, Start: model.OrNil(w.Period.Start), End: model.OrNil(w.Period.End),
		}
		if rate := w.Rate(); !byMonth {
			group.Wins, group.WinRate = &w.Wins, &rate
		}
		return group
	})
	if by == model.ComparisonGroupKeyTool {
		addTools(r, groups, func(g *model.ComparisonGroup) (string, *model.ComparedTool) { return g.Key, &g.Tool })
	}
	return groups, nil
}

func (queryResolver) RetirementGroups(
	ctx context.Context, by []model.RetirementGroupKey, every *model.Period, retiredSince, retiredBefore *string,
	includeEmpty bool, orderBy model.CountOrder, minCount, limit *int,
) ([]*model.RetirementGroup, error) {
	keys := model.Map(by, model.RetirementGroupKey.String)
	switch {
	case len(by) > 2 || len(by) == 2 && by[0] == by[1]:
		return nil, problem.New(problem.BadInput, "by must be reason, category or both, without duplicates (got %s).",
			strings.Join(keys, ", "))
	case includeEmpty && every == nil:
		return nil, problem.New(problem.BadInput, "includeEmpty requires every.")
	}
	r := readerFrom(ctx)
	periods, err := r.periods(includeEmpty, release.Retirements, string(orZero(every)), retiredSince, retiredBefore)
	if err != nil {
		return nil, err
	}
	count := func(in *reader, periods []release.Period) []release.RetirementCount {
		found := in.MatchingRetired(release.RetiredFilter{Since: retiredSince, Before: retiredBefore})
		return release.CountRetirements(found, string(orZero(every)), keys, periods)
	}
	r.canChange(ctx, func(in *reader) (groupFigures, error) {
		figures := groupFigures{}
		for _, g := range count(in, nil) {
			figures[model.GroupKey{g.Period.Name, g.Reason, g.Category}] = model.GroupChange{Count: g.Count}
		}
		return figures, nil
	})
	groups, err := pickCounted(count(r, periods),
		orderBy, minCount, limit, func(g release.RetirementCount) int { return g.Count })
	return model.Map(groups, func(g release.RetirementCount) *model.RetirementGroup {
		return &model.RetirementGroup{
			Reason: (*model.RetirementReason)(model.OrNil(g.Reason)), Category: model.OrNil(g.Category), Count: g.Count,
			Period: model.OrNil(g.Period.Name), Start: model.OrNil(g.Period.Start), End: model.OrNil(g.Period.End),
		}
	}), err
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
	includeEmpty, includeRetired bool, orderBy model.CountOrder, minCount, limit *int,
) ([]*model.PriceChangeCount, error) {
	r := readerFrom(ctx)
	if includeRetired && r.Partial() {
		return nil, release.ErrPartial
	}
	conditions, err := r.conditions(filter)
	months, tooMany := r.periods(includeEmpty, release.PriceChanges, release.Month, since, nil)
	if err := cmp.Or(err, tooMany); err != nil {
		return nil, err
	}
	count := func(in *reader, conditions release.Filter, months []release.Period) []release.PriceChangeCount {
		return in.CountPriceChanges(conditions, func(c *release.PriceChange) bool {
			return (since == nil || c.ChangedAt >= *since) && (direction == nil || c.Direction == string(*direction))
		}, months, includeRetired)
	}
	r.canChange(ctx, func(in *reader) (groupFigures, error) {
		conditions, err := conditionsOverTime(filter, in.increased)
		figures := groupFigures{}
		if err == nil {
			for _, c := range count(in, conditions, nil) {
				figures[model.GroupKey{c.Month.Name, c.Category}] = model.GroupChange{Count: c.Count}
			}
		}
		return figures, err
	})
	counts, err := pickCounted(count(r, conditions, months), orderBy, minCount, limit,
		func(c release.PriceChangeCount) int { return c.Count })
	return model.Map(counts, func(c release.PriceChangeCount) *model.PriceChangeCount {
		return &model.PriceChangeCount{
			Month: c.Month.Name, Start: c.Month.Start, End: c.Month.End, Category: c.Category, Count: c.Count,
		}
	}), err
}

// periods returns the periods of groups that include empty ones; none if they do not.
func (r *reader) periods(
	includeEmpty bool, of, every string, since, before *string,
) (periods []release.Period, err error) {
	if includeEmpty {
		periods, err = r.Periods(of, every, orZero(since), orZero(before))
	}
	if err != nil {
		return nil, problem.New(problem.BadInput,
			"includeEmpty would return more than %d periods. Use a longer period, or a later first day.", release.MaxPoints)
	}
	return periods, nil
}
