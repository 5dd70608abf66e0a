package graph

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"unsafe"

	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

var groupKeys = map[model.ToolGroupKey]func(*indexedTool) string{
	model.ToolGroupKeyCategory: func(t *indexedTool) string { return t.category },
	model.ToolGroupKeyPricing:  func(t *indexedTool) string { return string(t.pricing) },
	model.ToolGroupKeyIcp:      func(t *indexedTool) string { return t.icp },
	model.ToolGroupKeyTier:     func(t *indexedTool) string { return t.tier },
}

// matchingTools returns the active tools that match a filter, by slug.
func (r *reader) matchingTools(ctx context.Context, filter *model.ToolFilter) (tools []*indexedTool, err error) {
	matches, err := r.toolFilter(ctx, filter)
	for i := range r.index.tools {
		if t := r.index.tools[i]; err == nil && t.active() && (matches == nil || matches(i)) {
			tools = append(tools, t)
		}
	}
	return tools, err
}

func (queryResolver) ToolGroups(ctx context.Context, by model.ToolGroupKey, thenBy *model.ToolGroupKey, filter *model.ToolFilter) ([]*model.ToolGroup, error) {
	if thenBy != nil && *thenBy == by {
		return nil, problem.New(problem.BadInput, "by and thenBy must be different (got %s for both).", by)
	}
	tools, err := readerFrom(ctx).matchingTools(ctx, filter)
	if err != nil {
		return nil, err
	}
	groups := map[[2]string]*figures{}
	for _, t := range tools {
		key := [2]string{groupKeys[by](t)}
		if thenBy != nil {
			key[1] = groupKeys[*thenBy](t)
		}
		if groups[key] == nil {
			groups[key] = newFigures()
		}
		groups[key].add(t, 1)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	return mapSlice(keys, func(key [2]string) *model.ToolGroup {
		f := groups[key]
		group := &model.ToolGroup{
			Key: key[0], Count: f.count, Tested: f.scores.count,
			MinScore: f.scores.min(), AvgScore: f.scores.mean(), MedianScore: f.scores.median(), MaxScore: f.scores.max(),
			MinMonthlyPrice: f.prices.min(), AvgMonthlyPrice: f.prices.mean(), MedianMonthlyPrice: f.prices.median(), MaxMonthlyPrice: f.prices.max(),
		}
		if thenBy != nil {
			group.ThenKey = &key[1]
		}
		return group
	}), nil
}

func (queryResolver) ComparisonGroups(ctx context.Context, by model.ComparisonGroupKey, category, tool, winner, updatedSince, updatedBefore *string, sort model.ComparisonGroupSort, limit int) ([]*model.ComparisonGroup, error) {
	if err := params.CheckRange("limit", limit, 1, maxPageSize); err != nil {
		return nil, err
	}
	x := readerFrom(ctx).index
	found, err := comparisonFilter{category: category, tool: tool, winner: winner, updatedSince: updatedSince, updatedBefore: updatedBefore}.find(x)
	if err != nil {
		return nil, err
	}
	counts := map[string]*model.ComparisonGroup{}
	count := func(key string, won bool) {
		if counts[key] == nil {
			counts[key] = &model.ComparisonGroup{Key: key, Wins: new(int)}
		}
		counts[key].Count++
		if won {
			*counts[key].Wins++
		}
	}
	for _, i := range found {
		c := x.comparisons[i]
		a, b, winner := x.tools[c.toolA], x.tools[c.toolB], x.tools[c.winner]
		switch by {
		case model.ComparisonGroupKeyTool:
			count(a.slug, winner == a)
			if b != a {
				count(b.slug, winner == b)
			}
		case model.ComparisonGroupKeyCategory:
			count(a.category, winner.category == a.category)
			if b.category != a.category {
				count(b.category, winner.category == b.category)
			}
		case model.ComparisonGroupKeyMonth:
			count(c.UpdatedAt[:len("2006-01")], false)
		}
	}
	groups := slices.Collect(maps.Values(counts))
	for _, group := range groups {
		if by == model.ComparisonGroupKeyMonth {
			group.Wins = nil
			continue
		}
		rate := math.Round(float64(*group.Wins)/float64(group.Count)*1e4) / 1e4
		group.WinRate = &rate
	}
	slices.SortFunc(groups, func(a, b *model.ComparisonGroup) int {
		return cmp.Or(-cmp.Compare(comparisonRanks[sort](a), comparisonRanks[sort](b)), strings.Compare(a.Key, b.Key))
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

func (queryResolver) RetirementGroups(ctx context.Context, by []model.RetirementGroupKey, every *model.Period, retiredSince, retiredBefore *string) ([]*model.RetirementGroup, error) {
	if len(by) > 2 || len(by) == 2 && by[0] == by[1] {
		return nil, problem.New(problem.BadInput, "by must be reason, category or both, without duplicates (got %s).", strings.Join(mapSlice(by, model.RetirementGroupKey.String), ", "))
	}
	r := readerFrom(ctx)
	found, err := retiredFilter{retiredSince: retiredSince, retiredBefore: retiredBefore}.find(ctx, r)
	if err != nil {
		return nil, err
	}
	type key struct{ period, reason, category string }
	counts := map[key]int{}
	for _, i := range found {
		t, k := r.index.tools[i], key{}
		if every != nil {
			k.period = periodOf(t.retiredAt, *every).name
		}
		if slices.Contains(by, model.RetirementGroupKeyReason) {
			k.reason = string(t.reason)
		}
		if slices.Contains(by, model.RetirementGroupKeyCategory) {
			k.category = t.category
		}
		counts[k]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(strings.Compare(a.period, b.period), strings.Compare(a.reason, b.reason), strings.Compare(a.category, b.category))
	})
	return mapSlice(keys, func(k key) *model.RetirementGroup {
		group := &model.RetirementGroup{Category: orNil(k.category), Period: orNil(k.period), Count: counts[k]}
		if reason := model.RetirementReason(k.reason); reason != "" {
			group.Reason = &reason
		}
		return group
	}), nil
}

// scoreBins is the number of bins in the histogram: 0 to 1, …, 9 to 10.
const scoreBins = 10

func (queryResolver) ScoreHistogram(ctx context.Context, filter *model.ToolFilter) ([]*model.ScoreBin, error) {
	tools, err := readerFrom(ctx).matchingTools(ctx, filter)
	if err != nil {
		return nil, err
	}
	histogram := make([]*model.ScoreBin, scoreBins)
	for i := range histogram {
		histogram[i] = &model.ScoreBin{From: float64(i), To: float64(i + 1)}
	}
	for _, t := range tools {
		if !math.IsNaN(t.score) {
			histogram[min(int(t.score), scoreBins-1)].Count++
		}
	}
	return histogram, nil
}

func (queryResolver) PriceChangeCounts(ctx context.Context, filter *model.ToolFilter, since *string, direction *model.PriceDirection) ([]*model.PriceChangeCount, error) {
	r := readerFrom(ctx)
	matches, err := r.toolFilter(ctx, filter)
	if err != nil {
		return nil, err
	}
	changes, err := r.index.allPriceChanges(ctx, r.catalog, r.executor.index.Load())
	if err != nil {
		return nil, err
	}
	counts := map[[2]string]*model.PriceChangeCount{}
	for _, change := range changes {
		t := r.index.tools[change.tool]
		if !t.active() || matches != nil && !matches(change.tool) || since != nil && change.day < *since || direction != nil && change.direction != *direction {
			continue
		}
		key := [2]string{change.day[:len("2006-01")], t.category}
		if counts[key] == nil {
			counts[key] = &model.PriceChangeCount{Month: key[0], Category: key[1]}
		}
		counts[key].Count++
	}
	return slices.SortedFunc(maps.Values(counts), func(a, b *model.PriceChangeCount) int {
		return cmp.Or(strings.Compare(a.Month, b.Month), strings.Compare(a.Category, b.Category))
	}), nil
}

// indexedPriceChange is when and how the price of a tool changed.
type indexedPriceChange struct {
	tool      int
	since     int // the release that wrote it
	day       string
	direction model.PriceDirection // empty if the prices cannot be compared
}

// allPriceChanges returns the price changes of all tools and reads them on first
// use. Those of an earlier release are derived from the newest release.
func (x *catalogIndex) allPriceChanges(ctx context.Context, catalog Catalog, newest *catalogIndex) ([]indexedPriceChange, error) {
	if known := x.priceChanges.Load(); known != nil || x.release == nil {
		return *cmp.Or(known, new([]indexedPriceChange)), nil
	}
	if !store.InTransaction(ctx) {
		return nil, store.ErrNeedsTransaction
	}
	derives, err := x.derivesFrom(ctx, catalog, newest)
	if err != nil {
		return nil, err
	}
	var changes []indexedPriceChange
	if known := newest.priceChanges.Load(); derives && known != nil {
		if changes, err = x.readPriceChanges(store.WithAllVersions(ctx), catalog, "price_changes_versions WHERE "+ofRelease, x.number()); err != nil {
			return nil, err
		}
		positions, _ := x.positionsIn(newest)
		for _, change := range *known {
			if change.since <= x.number() {
				change.tool = positions[change.tool]
				changes = append(changes, change)
			}
		}
	} else if changes, err = x.readPriceChanges(ctx, catalog, "price_changes"); err != nil {
		return nil, err
	}
	changes = slices.Clone(changes) // trims the capacity
	if x.priceChanges.CompareAndSwap(nil, &changes) {
		x.added.Add(int64(cap(changes)) * int64(unsafe.Sizeof(indexedPriceChange{})))
	}
	return changes, nil
}

func (x *catalogIndex) readPriceChanges(ctx context.Context, catalog Catalog, from string, args ...any) (changes []indexedPriceChange, err error) {
	rows, err := catalog.Select(ctx, "SELECT tool_slug, changed_at, price, previous_price, since_release FROM "+from, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	days := interner{}
	for rows.Next() {
		var slug, price, previous string
		var change indexedPriceChange
		if err := rows.Scan(&slug, days.scan(&change.day), &price, &previous, &change.since); err != nil {
			return nil, err
		}
		if from, to, ok := readPrice(previous).comparable(readPrice(price)); ok {
			change.direction = directionOf(from, to)
		}
		change.tool, _ = x.find(slug)
		changes = append(changes, change)
	}
	return changes, rows.Err()
}
