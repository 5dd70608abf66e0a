package graph

import (
	"cmp"
	"context"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
)

func (queryResolver) Comparison(ctx context.Context, slug string) (*model.Comparison, error) {
	r := readerFrom(ctx)
	find := func(slug string) *release.Comparison { return cmp.Or(r.FindComparisons(slug)...) }
	return bySlug(slug, find, r.Comparisons)
}

func (queryResolver) Comparisons(
	ctx context.Context, slugs, domains []string,
	category, tool, otherTool, winner, updatedSince, updatedBefore *string, page int, limit int,
) (*model.ComparisonPage, error) {
	items, meta, err := readerFrom(ctx).
		comparisonList(ctx, release.ComparisonFilter{
			Slugs: slugs, Domains: domains, Category: category, Tool: tool, OtherTool: otherTool, Winner: winner,
			UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
		}).
		page(ctx, page, limit)
	return &model.ComparisonPage{Items: items, Meta: meta}, err
}

func (queryResolver) ComparisonConnection(
	ctx context.Context, slugs, domains []string,
	category, tool, otherTool, winner, updatedSince, updatedBefore *string,
	first *int, after *string, last *int, before *string,
) (*model.ComparisonConnection, error) {
	c, err := readerFrom(ctx).
		comparisonList(ctx, release.ComparisonFilter{
			Slugs: slugs, Domains: domains, Category: category, Tool: tool, OtherTool: otherTool, Winner: winner,
			UpdatedSince: updatedSince, UpdatedBefore: updatedBefore,
		}).
		connection(ctx, paging{first, after, last, before})
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
	if err := cmp.Or(
		model.CheckKeys("slugs", f.Slugs), model.CheckKeys("domains", f.Domains),
		params.CheckSlug("category", orZero(f.Category)), params.CheckSlug("tool", orZero(f.Tool)),
		params.CheckSlug("otherTool", orZero(f.OtherTool)), params.CheckSlug("winner", orZero(f.Winner)),
	); err != nil {
		return nil, err
	}
	given := f
	if f.Domains != nil {
		f.Domains = model.Map(f.Domains, release.Domain)
	}
	matching := r.MatchingComparisons(f)
	r.noteComparisons(given, len(matching) == 0)
	return matching, nil
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
		name: "comparisons", items: items, places: release.ByUpdate, nodes: r.Comparisons,
	}
}

// addTools sets the tools of items to those with their slugs that exist, active or
// retired.
func addTools[Item any](r *reader, items []*Item, place func(*Item) (slug string, tool *model.ComparedTool)) {
	slugs := model.Map(items, func(item *Item) string { slug, _ := place(item); return slug })
	tools := r.ComparedTools(existing(slugs, r.Tool))
	for _, item := range items {
		slug, tool := place(item)
		*tool = tools[r.Tool(slug)]
	}
}
