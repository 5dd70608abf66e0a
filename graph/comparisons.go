package graph

import (
	"cmp"
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

func (queryResolver) Comparison(ctx context.Context, slug string) (*model.Comparison, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	return first(r.readComparisons(ctx, r.release.FindComparisons(slug), selected(ctx)))
}

func (queryResolver) Comparisons(
	ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string,
	page int, limit int,
) (*model.ComparisonPage, error) {
	items, meta, err := readerFrom(ctx).
		comparisonList(ctx, comparisonFilter{category, tool, otherTool, winner, updatedSince, updatedBefore}).
		page(ctx, page, limit)
	return &model.ComparisonPage{Items: items, Meta: meta}, err
}

func (queryResolver) ComparisonConnection(
	ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string,
	first *int, after *string, last *int, before *string,
) (*model.ComparisonConnection, error) {
	c, err := readerFrom(ctx).
		comparisonList(ctx, comparisonFilter{category, tool, otherTool, winner, updatedSince, updatedBefore}).
		connection(ctx, first, after, last, before)
	return comparisonConnection(c), err
}

func comparisonConnection(c connection[*model.Comparison]) *model.ComparisonConnection {
	return &model.ComparisonConnection{
		Edges: edgesOf[model.ComparisonEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}
}

// comparisonFilter has the conditions on comparisons; nil for none.
type comparisonFilter struct{ category, tool, otherTool, winner, updatedSince, updatedBefore *string }

// find returns the published comparisons that match, most recently updated first.
func (f comparisonFilter) find(of *release.Release) (found []*release.Comparison, err error) {
	if err := checkSlugs(
		argument{"category", f.category}, argument{"tool", f.tool},
		argument{"otherTool", f.otherTool}, argument{"winner", f.winner},
	); err != nil {
		return nil, err
	}
	for _, c := range of.Comparisons {
		if (f.category == nil || c.A.Category == *f.category || c.B.Category == *f.category) &&
			(f.tool == nil || c.ToolA == *f.tool || c.ToolB == *f.tool) &&
			(f.otherTool == nil || c.ToolA == *f.otherTool || c.ToolB == *f.otherTool) &&
			(f.winner == nil || c.Winner == *f.winner) &&
			(f.updatedSince == nil || c.UpdatedAt >= *f.updatedSince) &&
			(f.updatedBefore == nil || c.UpdatedAt < *f.updatedBefore) {
			found = append(found, c)
		}
	}
	return found, nil
}

// comparisonList lists the published comparisons that match a filter.
func (r *reader) comparisonList(
	ctx context.Context, filter comparisonFilter,
) *list[*release.Comparison, *model.Comparison] {
	comparisons := r.listComparisons(nil)
	comparisons.items, comparisons.err = found(ctx, r, func() ([]*release.Comparison, error) {
		return filter.find(r.release)
	})
	return comparisons
}

// listComparisons lists comparisons that are in order.
func (r *reader) listComparisons(items []*release.Comparison) *list[*release.Comparison, *model.Comparison] {
	return &list[*release.Comparison, *model.Comparison]{
		name: "comparisons", items: items, nodes: r.readComparisons,
		cursors: cursors[*release.Comparison]{
			position: func(c *release.Comparison) []any { return []any{c.UpdatedAt, c.Slug} },
			compare: func(position []any) (func(*release.Comparison) int, bool) {
				if len(position) != 2 {
					return nil, false
				}
				updatedAt, isDate := position[0].(string)
				slug, isText := position[1].(string)
				return func(c *release.Comparison) int {
					return cmp.Or(strings.Compare(updatedAt, c.UpdatedAt), strings.Compare(c.Slug, slug))
				}, isDate && isText
			},
		},
	}
}

var comparisonTypes = []string{"Comparison", "Node"}

// readComparisons returns comparisons with their selected tools.
func (r *reader) readComparisons(
	ctx context.Context, found []*release.Comparison, s selection,
) ([]*model.Comparison, error) {
	s = s.as(comparisonTypes)
	var tools map[*release.Tool]model.ComparedTool
	if len(found) > 0 && s.has("toolA", "toolB", "winner", "winnerName") {
		var compared []*release.Tool
		for _, c := range found {
			compared = append(compared, c.A, c.B)
		}
		var err error
		if tools, err = r.comparedTools(ctx, compared, s.of("toolA", "toolB", "winner")); err != nil {
			return nil, err
		}
	}
	pins := s.has("id")
	return mapSlice(found, func(c *release.Comparison) *model.Comparison {
		m := &model.Comparison{
			Slug: c.Slug, Title: c.Title, WinnerNote: c.WinnerNote,
			UpdatedAt: c.UpdatedAt, CanonicalURL: c.CanonicalURL,
		}
		if pins {
			m.ID = r.pin(comparisonID(c.Slug))
		}
		if tools != nil {
			m.ToolA, m.ToolB, m.Winner = tools[c.A], tools[c.B], tools[c.Best]
			m.WinnerName = nameOf(m.Winner)
		}
		return m
	}), nil
}

func nameOf(t model.ComparedTool) string {
	if active, ok := t.(*model.Tool); ok {
		return active.Name
	}
	return t.(*model.RetiredTool).Name
}

// comparedTools returns active and retired tools, each once.
func (r *reader) comparedTools(
	ctx context.Context, found []*release.Tool, s selection,
) (map[*release.Tool]model.ComparedTool, error) {
	var active, retired []*release.Tool
	compared := make(map[*release.Tool]model.ComparedTool, len(found))
	for _, t := range found {
		if _, known := compared[t]; known {
			continue
		}
		if compared[t] = nil; t.Active() {
			active = append(active, t)
		} else {
			retired = append(retired, t)
		}
	}
	tools, err := r.readTools(ctx, active, s)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		compared[active[i]] = t
	}
	retiredTools, err := r.readRetired(ctx, retired, s)
	for i, t := range retiredTools {
		compared[retired[i]] = t
	}
	return compared, err
}

// comparisonsOf returns the comparisons of each tool, up to the largest limit in
// the selection.
func (r *reader) comparisonsOf(
	ctx context.Context, tools []*release.Tool, s selection,
) (map[*release.Tool][]*model.Comparison, error) {
	limit, err := s.maxLimit("comparisons")
	if err != nil {
		return nil, err
	}
	places := map[*release.Comparison]int{}
	var needed []*release.Comparison
	of := make(map[*release.Tool][]*release.Comparison, len(tools))
	for _, t := range tools {
		all := r.release.ComparisonsOf(t)
		of[t] = all[:min(limit, len(all))]
		for _, c := range of[t] {
			if _, known := places[c]; !known {
				places[c] = len(needed)
				needed = append(needed, c)
			}
		}
	}
	comparisons, err := r.readComparisons(ctx, needed, s.of("comparisons"))
	if err != nil {
		return nil, err
	}
	read := make(map[*release.Tool][]*model.Comparison, len(tools))
	for t, found := range of {
		read[t] = mapSlice(found, func(c *release.Comparison) *model.Comparison { return comparisons[places[c]] })
	}
	return read, nil
}

// readComparisonConnections reads a part of the comparisons of each tool for one
// field.
func (r *reader) readComparisonConnections(
	ctx context.Context, tools []*release.Tool, field graphql.CollectedField, within selection,
) error {
	lists := mapSlice(tools, func(t *release.Tool) *list[*release.Comparison, *model.Comparison] {
		return r.listComparisons(r.release.ComparisonsOf(t))
	})
	found, err := connections(ctx, lists, pagingOf(field.ArgumentMap(within.op.Variables)), within)
	for i, c := range found {
		r.setNested(field, toolID(tools[i].Slug), comparisonConnection(c))
	}
	return inField(field, err)
}
