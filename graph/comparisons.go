package graph

import (
	"cmp"
	"context"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

func (queryResolver) Comparison(ctx context.Context, slug string) (*model.Comparison, error) {
	r := readerFrom(ctx)
	find := func(slug string) *release.Comparison { return cmp.Or(r.release.FindComparisons(slug)...) }
	return bySlug(ctx, slug, find, r.readComparisons)
}

func (queryResolver) Comparisons(
	ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string,
	page int, limit int,
) (*model.ComparisonPage, error) {
	items, meta, err := readerFrom(ctx).
		comparisonList(ctx, release.ComparisonFilter{
			Category: category, Tool: tool, OtherTool: otherTool, Winner: winner,
			UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
		}).
		page(ctx, page, limit)
	return &model.ComparisonPage{Items: items, Meta: meta}, err
}

func (queryResolver) ComparisonConnection(
	ctx context.Context, category, tool, otherTool, winner, updatedSince, updatedBefore *string,
	first *int, after *string, last *int, before *string,
) (*model.ComparisonConnection, error) {
	c, err := readerFrom(ctx).
		comparisonList(ctx, release.ComparisonFilter{
			Category: category, Tool: tool, OtherTool: otherTool, Winner: winner,
			UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
		}).
		connection(ctx, first, after, last, before)
	return comparisonConnection(c), err
}

func comparisonConnection(c connection[*model.Comparison]) *model.ComparisonConnection {
	return &model.ComparisonConnection{
		Edges: edgesOf[model.ComparisonEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}
}

// findComparisons returns the comparisons that satisfy a filter, most recently updated
// first.
func (r *reader) findComparisons(f release.ComparisonFilter) ([]*release.Comparison, error) {
	if err := checkSlugs(
		argument{"category", f.Category}, argument{"tool", f.Tool},
		argument{"otherTool", f.OtherTool}, argument{"winner", f.Winner},
	); err != nil {
		return nil, err
	}
	return r.release.MatchingComparisons(f), nil
}

// comparisonList lists the published comparisons that match a filter.
func (r *reader) comparisonList(
	ctx context.Context, filter release.ComparisonFilter,
) *list[*release.Comparison, *model.Comparison] {
	comparisons := r.listComparisons(nil)
	comparisons.items, comparisons.err = found(ctx, r, func() ([]*release.Comparison, error) {
		return r.findComparisons(filter)
	})
	return comparisons
}

// listComparisons lists comparisons that are in order.
func (r *reader) listComparisons(items []*release.Comparison) *list[*release.Comparison, *model.Comparison] {
	return &list[*release.Comparison, *model.Comparison]{
		name: "comparisons", items: items, order: release.ByUpdate{}, nodes: r.readComparisons,
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
		m := &model.Comparison{ComparisonText: c.ComparisonText}
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

// addTools sets the tools of items to those with their slugs that exist, active or
// retired, if the field being resolved selects them.
func addTools[Item any](
	ctx context.Context, r *reader, items []*Item, place func(*Item) (slug string, tool *model.ComparedTool),
) error {
	s := selected(ctx)
	if !s.has("tool") {
		return nil
	}
	slugs := mapSlice(items, func(item *Item) string { slug, _ := place(item); return slug })
	tools, err := r.comparedTools(ctx, existing(slugs, r.release.Tool), s.of("tool"))
	for _, item := range items {
		slug, tool := place(item)
		*tool = tools[r.release.Tool(slug)]
	}
	return err
}

// readToolComparisons reads the comparisons of each tool for one field.
func (r *reader) readToolComparisons(
	ctx context.Context, tools []*release.Tool, field graphql.CollectedField, within selection,
) error {
	limit := math.MaxInt
	if field.Name == "comparisons" {
		var err error
		if limit, err = within.limit(field, document.MaxPageSize); err != nil {
			return err
		}
	}
	parents := mapSlice(tools, func(t *release.Tool) string { return toolID(t.Slug) })
	all := r.listComparisons(nil)
	lists := mapSlice(tools, func(t *release.Tool) *list[*release.Comparison, *model.Comparison] {
		own := *all
		own.items = r.release.ComparisonsOf(t)
		own.items = own.items[:min(limit, len(own.items))]
		return &own
	})
	return readNested(ctx, r, field, within, parents, lists, comparisonConnection)
}
