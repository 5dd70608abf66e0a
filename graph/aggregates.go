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
	"palmares/internal/core/store"
	"palmares/internal/core/text"
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

func (queryResolver) ToolGroups(ctx context.Context, by model.ToolGroupKey, filter *model.ToolFilter) ([]*model.ToolGroup, error) {
	tools, err := readerFrom(ctx).matchingTools(ctx, filter)
	if err != nil {
		return nil, err
	}
	groups, sums := map[string]*model.ToolGroup{}, map[string]float64{}
	for _, t := range tools {
		key := groupKeys[by](t)
		group := groups[key]
		if group == nil {
			group = &model.ToolGroup{Key: key}
			groups[key] = group
		}
		group.Count++
		if math.IsNaN(t.score) {
			continue
		}
		group.Tested++
		sums[key] += t.score
		if group.MinScore == nil || t.score < *group.MinScore {
			group.MinScore = &t.score
		}
		if group.MaxScore == nil || t.score > *group.MaxScore {
			group.MaxScore = &t.score
		}
	}
	for key, group := range groups {
		group.AvgScore = text.Mean(sums[key], group.Tested)
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b *model.ToolGroup) int { return strings.Compare(a.Key, b.Key) }), nil
}

// scoreBins is the number of bins of the histogram: 0 to 1, …, 9 to 10.
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

func (queryResolver) PriceChangeCounts(ctx context.Context, filter *model.ToolFilter, since *string) ([]*model.PriceChangeCount, error) {
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
		if !t.active() || matches != nil && !matches(change.tool) || since != nil && change.day < *since {
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

// indexedPriceChange is when the price of a tool changed.
type indexedPriceChange struct {
	tool  int
	since int // the release that wrote it
	day   string
}

// allPriceChanges returns the price changes of all tools, which are read when
// they are first needed. Those of an earlier release are derived from the newest.
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
	changes = slices.Clone(changes) // without the room to grow
	if x.priceChanges.CompareAndSwap(nil, &changes) {
		x.added.Add(int64(cap(changes)) * int64(unsafe.Sizeof(indexedPriceChange{})))
	}
	return changes, nil
}

func (x *catalogIndex) readPriceChanges(ctx context.Context, catalog Catalog, from string, args ...any) (changes []indexedPriceChange, err error) {
	rows, err := catalog.Select(ctx, "SELECT tool_slug, changed_at, since_release FROM "+from, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	days := interner{}
	for rows.Next() {
		var slug string
		var change indexedPriceChange
		if err := rows.Scan(&slug, days.scan(&change.day), &change.since); err != nil {
			return nil, err
		}
		change.tool, _ = x.find(slug)
		changes = append(changes, change)
	}
	return changes, rows.Err()
}
