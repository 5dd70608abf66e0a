package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/text"
)

func (queryResolver) Movers(ctx context.Context, metric model.MoverMetric, from string, to *string, direction *model.MoverDirection, filter *model.ToolFilter, first int) ([]*model.Mover, error) {
	if err := cmp.Or(params.CheckRange("first", first, 1, maxPageSize), checkDays(from, orZero(to))); err != nil {
		return nil, err
	}
	condition, err := conditionOverTime(filter)
	if err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	start, end := between(r.readable(), from, to)
	if start >= end {
		return nil, nil
	}
	line, err := r.timeline(ctx)
	if err != nil {
		return nil, err
	}
	value := func(t *indexedTool) float64 { return t.score }
	if metric == model.MoverMetricPrice {
		value = func(t *indexedTool) float64 { return t.monthlyPrice }
	}
	var movers []*model.Mover
	line.tools(func(versions []toolVersion) {
		then, wasActive := at(versions, start)
		now, isActive := at(versions, end)
		if !wasActive || !isActive || !condition(now.indexedTool) {
			return
		}
		before, after := value(then.indexedTool), value(now.indexedTool)
		change := text.Round(after - before) // NaN unless both are known
		if math.IsNaN(change) || before == after ||
			direction != nil && (*direction == model.MoverDirectionUp) != (after > before) {
			return
		}
		movers = append(movers, &model.Mover{Slug: now.slug, Before: before, After: after, Change: change, Percent: percent(before, after)})
	})
	slices.SortFunc(movers, func(a, b *model.Mover) int {
		return cmp.Or(cmp.Compare(math.Abs(b.After-b.Before), math.Abs(a.After-a.Before)), strings.Compare(a.Slug, b.Slug))
	})
	movers = movers[:min(first, len(movers))]
	return movers, r.fillMovers(ctx, movers, selected(ctx))
}

// between returns the numbers of the releases to compare, or 0 if there are none.
// The releases are newest first.
func between(releases []*ent.Release, from string, to *string) (start, end int) {
	if len(releases) == 0 {
		return 0, 0
	}
	start, end = releases[len(releases)-1].ID, releases[0].ID
	if release := lastDated(releases, from); release != nil {
		start = release.ID
	}
	if to != nil {
		end = 0
		if release := lastDated(releases, *to); release != nil {
			end = release.ID
		}
	}
	return start, end
}

// fillMovers reads the selected tools.
func (r *reader) fillMovers(ctx context.Context, movers []*model.Mover, s selection) error {
	if !s.has("tool") {
		return nil
	}
	var positions []int
	for _, m := range movers {
		if i, ok := r.index.find(m.Slug); ok {
			positions = append(positions, i)
		}
	}
	tools, err := r.comparedTools(ctx, distinct(positions), s.of("tool"))
	if err != nil {
		return err
	}
	for _, m := range movers {
		if i, ok := r.index.find(m.Slug); ok {
			m.Tool = tools[i]
		}
	}
	return nil
}
