package graph

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
)

func (queryResolver) Comparison(ctx context.Context, slug string) (*model.Comparison, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	return first(r.fillComparisons(ctx, r.index.findComparisons(slug), selected(ctx)))
}

// findComparisons returns the positions of the comparisons that exist.
func (x *catalogIndex) findComparisons(slugs ...string) (found []int) {
	wanted := make(map[string]bool, len(slugs))
	for _, slug := range slugs {
		wanted[slug] = true
	}
	for i := 0; i < len(x.comparisons) && len(found) < len(wanted); i++ {
		if wanted[x.comparisons[i].Slug] {
			found = append(found, i)
		}
	}
	return found
}

func (queryResolver) Comparisons(ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string, page int, limit int) (*model.ComparisonPage, error) {
	items, meta, err := readerFrom(ctx).comparisonList(ctx, comparisonFilter{category, tool, otherTool, winner, updatedSince, updatedBefore}).page(ctx, page, limit)
	return &model.ComparisonPage{Items: items, Meta: meta}, err
}

func (queryResolver) ComparisonConnection(ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string, first *int, after *string, last *int, before *string) (*model.ComparisonConnection, error) {
	c, err := readerFrom(ctx).comparisonList(ctx, comparisonFilter{category, tool, otherTool, winner, updatedSince, updatedBefore}).connection(ctx, first, after, last, before)
	return comparisonConnection(c), err
}

func comparisonConnection(c connection[*model.Comparison]) *model.ComparisonConnection {
	return &model.ComparisonConnection{Edges: edgesOf[model.ComparisonEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}
}

// comparisonFilter has the conditions on comparisons; nil for none.
type comparisonFilter struct{ category, tool, otherTool, winner, updatedSince, updatedBefore *string }

// find returns the published comparisons that match, most recently updated first.
func (f comparisonFilter) find(x *catalogIndex) (found []int, err error) {
	if err := checkSlugs(argument{"category", f.category}, argument{"tool", f.tool}, argument{"otherTool", f.otherTool}, argument{"winner", f.winner}); err != nil {
		return nil, err
	}
	for i, c := range x.comparisons {
		a, b := x.tools[c.toolA], x.tools[c.toolB]
		if (f.category == nil || a.category == *f.category || b.category == *f.category) &&
			(f.tool == nil || a.slug == *f.tool || b.slug == *f.tool) &&
			(f.otherTool == nil || a.slug == *f.otherTool || b.slug == *f.otherTool) &&
			(f.winner == nil || x.tools[c.winner].slug == *f.winner) &&
			(f.updatedSince == nil || c.UpdatedAt >= *f.updatedSince) &&
			(f.updatedBefore == nil || c.UpdatedAt < *f.updatedBefore) {
			found = append(found, i)
		}
	}
	return found, nil
}

// comparisonList lists the published comparisons that match a filter.
func (r *reader) comparisonList(ctx context.Context, filter comparisonFilter) *list[int, *model.Comparison] {
	comparisons := r.comparisonsAt(nil)
	comparisons.items, comparisons.err = r.positions(ctx, func() ([]int, error) { return filter.find(r.index) })
	return comparisons
}

// comparisonsAt lists the comparisons at the given positions, which are in order.
func (r *reader) comparisonsAt(positions []int) *list[int, *model.Comparison] {
	all := r.index.comparisons
	return &list[int, *model.Comparison]{name: "comparisons", items: positions, nodes: r.fillComparisons, cursors: cursors[int]{
		length:   2,
		position: func(i int) []any { return []any{all[i].UpdatedAt, all[i].Slug} },
		compare: func(position []any) (func(int) int, bool) {
			updatedAt, isDate := position[0].(string)
			slug, isText := position[1].(string)
			return func(i int) int {
				return cmp.Or(strings.Compare(updatedAt, all[i].UpdatedAt), strings.Compare(all[i].Slug, slug))
			}, isDate && isText
		},
	}}
}

var comparisonTypes = []string{"Comparison", "Node"}

// fillComparisons returns comparisons with their selected tools.
func (r *reader) fillComparisons(ctx context.Context, positions []int, s selection) ([]*model.Comparison, error) {
	s = s.as(comparisonTypes)
	comparisons := mapSlice(positions, func(i int) *model.Comparison { return r.index.comparisons[i].Comparison })
	if r.pinned && s.has("id") {
		comparisons = mapSlice(comparisons, func(c *model.Comparison) *model.Comparison {
			pinned := *c // the index is shared by all operations
			pinned.ID = r.pin(c.ID)
			return &pinned
		})
	}
	if len(comparisons) == 0 || !s.has("toolA", "toolB", "winner", "winnerName") {
		return comparisons, nil
	}
	var compared []int
	for _, i := range positions {
		compared = append(compared, r.index.comparisons[i].toolA, r.index.comparisons[i].toolB)
	}
	tools, err := r.comparedTools(ctx, distinct(compared), s.of("toolA", "toolB", "winner"))
	if err != nil {
		return nil, err
	}
	for i, position := range positions {
		of, linked := r.index.comparisons[position], *comparisons[i]
		linked.ToolA, linked.ToolB, linked.Winner = tools[of.toolA], tools[of.toolB], tools[of.winner]
		linked.WinnerName = linked.Winner.GetName()
		comparisons[i] = &linked
	}
	return comparisons, nil
}

// comparedTools returns active and retired tools, by position.
func (r *reader) comparedTools(ctx context.Context, positions []int, s selection) (map[int]model.ComparedTool, error) {
	var active, retired []int
	for _, i := range positions {
		if r.index.tools[i].active() {
			active = append(active, i)
		} else {
			retired = append(retired, i)
		}
	}
	compared := make(map[int]model.ComparedTool, len(positions))
	tools, err := r.fillTools(ctx, active, s)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		compared[active[i]] = t
	}
	retiredTools, err := r.fillRetired(ctx, retired, s)
	for i, t := range retiredTools {
		compared[retired[i]] = t
	}
	return compared, err
}

// comparisonsOf returns the comparisons of each tool, up to the largest limit in
// the selection.
func (r *reader) comparisonsOf(ctx context.Context, tools []int, s selection) ([][]*model.Comparison, error) {
	limit, err := s.maxLimit("comparisons")
	if err != nil {
		return nil, err
	}
	var needed []int
	for _, i := range tools {
		positions := r.index.comparisonsOf[i]
		needed = append(needed, positions[:min(limit, len(positions))]...)
	}
	needed = distinct(needed)
	comparisons, err := r.fillComparisons(ctx, needed, s.of("comparisons"))
	if err != nil {
		return nil, err
	}
	return mapSlice(tools, func(i int) []*model.Comparison {
		positions := r.index.comparisonsOf[i]
		return mapSlice(positions[:min(limit, len(positions))], func(position int) *model.Comparison {
			at, _ := slices.BinarySearch(needed, position)
			return comparisons[at]
		})
	}), nil
}

// readComparisonConnections reads a part of the comparisons of each tool for one
// field.
func (r *reader) readComparisonConnections(ctx context.Context, tools []int, field graphql.CollectedField, within selection) error {
	lists := mapSlice(tools, func(i int) *list[int, *model.Comparison] { return r.comparisonsAt(r.index.comparisonsOf[i]) })
	found, err := connections(ctx, lists, pagingOf(field.ArgumentMap(within.op.Variables)), within)
	for i, c := range found {
		r.setNested(field, toolID(r.index.tools[tools[i]].slug), comparisonConnection(c))
	}
	return inField(field, err)
}
