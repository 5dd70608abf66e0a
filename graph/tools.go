package graph

import (
	"context"
	"strings"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

func (queryResolver) Tool(ctx context.Context, slug string) (*model.Tool, error) {
	r := readerFrom(ctx)
	return bySlug(slug, r.activeTool, r.Tools)
}

// activeTool returns the active tool with a slug, or nil.
func (r *reader) activeTool(slug string) *release.Tool {
	if t := r.Tool(slug); t != nil && t.Active() {
		return t
	}
	return nil
}

func (queryResolver) Tools(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, language *model.Language, page int, limit int,
) (*model.ToolPage, error) {
	items, meta, err := readerFrom(ctx).toolList(ctx, filter, sort, language).page(ctx, page, limit)
	return &model.ToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) ToolConnection(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, language *model.Language,
	first *int, after *string, last *int, before *string,
) (*model.ToolConnection, error) {
	c, err := readerFrom(ctx).toolList(ctx, filter, sort, language).connection(ctx, paging{first, after, last, before})
	return toolConnection(c), err
}

func toolConnection(c connection[*model.Tool]) *model.ToolConnection {
	return &model.ToolConnection{
		Edges: edgesOf[model.ToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}
}

func slugsOf(tools []*release.Tool) []string {
	return distinct(model.Map(tools, func(t *release.Tool) string { return t.Slug }))
}

// linksResolver resolves the fields that active and retired tools have in common.
type linksResolver[T interface{ InCatalog() *model.CatalogTool }] struct{}

// retiredResolver resolves the fields of retired tools.
type retiredResolver struct {
	linksResolver[*model.RetiredTool]
}

// activeResolver resolves the fields of active tools.
type activeResolver struct{ linksResolver[*model.Tool] }

func (linksResolver[T]) Comparisons(ctx context.Context, t T, limit int) ([]*model.Comparison, error) {
	if err := params.CheckRange("limit", limit, 1, document.MaxPageSize); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	own := t.InCatalog()
	return childrenOf(ctx, own.Siblings, own.Tool, func(t *release.Tool) []*release.Comparison {
		all := r.ComparisonsOf(t)
		return all[:min(limit, len(all))]
	}, r.Comparisons), nil
}

func (linksResolver[T]) ComparisonConnection(
	ctx context.Context, t T, first *int, after *string, last *int, before *string,
) (*model.ComparisonConnection, error) {
	r := readerFrom(ctx)
	own := t.InCatalog()
	c, err := connectionOf(ctx, own.Siblings, own.Tool, paging{first, after, last, before},
		func(t *release.Tool) *list[*release.Comparison, *model.Comparison] {
			return r.listComparisons(r.ComparisonsOf(t))
		})
	return comparisonConnection(c), err
}

func (linksResolver[T]) Alternatives(ctx context.Context, t T, limit int) ([]*model.Tool, error) {
	if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	own := t.InCatalog()
	return childrenOf(ctx, own.Siblings, own.Tool, func(t *release.Tool) []*release.Tool {
		return r.Alternatives(t, limit)
	}, r.Tools), nil
}

// toolList lists the tools that match a filter. Without an order, the best
// matches of a search come first, or else the highest scores.
func (r *reader) toolList(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, language *model.Language,
) *list[*release.Tool, *model.Tool] {
	by := model.ToolSortScoreDesc
	if sort != nil {
		by = *sort
	} else if isSearch(filter) {
		by = model.ToolSortRelevance
	}
	r.language = string(orZero(language))
	tools := r.listTools(by, nil)
	relevance := by == model.ToolSortRelevance
	if relevance && !isSearch(filter) {
		tools.err = problem.New(problem.BadInput, "sort: relevance requires filter.search.")
		return tools
	}
	tools.items, tools.err = found(ctx, r, func() ([]*release.Tool, error) {
		conditions, err := r.toolFilter(filter)
		switch {
		case err != nil:
			return nil, err
		case relevance:
			return r.ByRelevance(r.searches[searched{r.language, *filter.Search}], conditions), nil
		}
		return r.Matching(orderOf(by), conditions), nil
	})
	if relevance {
		tools.name += r.language
		tools.places = r.searches[searched{r.language, *filter.Search}].Places()
	}
	return tools
}

// listTools lists tools that are in order. Cursors of one list are valid in all lists of
// tools in the same order.
func (r *reader) listTools(by model.ToolSort, items []*release.Tool) *list[*release.Tool, *model.Tool] {
	return &list[*release.Tool, *model.Tool]{
		name: "tools " + string(by), items: items, places: orderOf(by).Places(), nodes: r.Tools,
	}
}

// orderOf returns the order of a sort other than by relevance.
func orderOf(sort model.ToolSort) release.Order {
	order, _ := release.OrderNamed(string(sort)) // checkFields found all of them
	return order
}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	r := readerFrom(ctx)
	find := func(slug string) *release.Tool {
		if t := r.Tool(slug); t != nil && !t.Active() {
			return t
		}
		return nil
	}
	return bySlug(slug, find, r.RetiredTools)
}

func (queryResolver) RetiredTools(
	ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string,
	page int, limit int,
) (*model.RetiredToolPage, error) {
	items, meta, err := readerFrom(ctx).
		retiredList(ctx, search, release.RetiredFilter{
			Reason: (*string)(reason), Category: category, Since: retiredSince, Before: retiredBefore,
		}).
		page(ctx, page, limit)
	return &model.RetiredToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) RetiredToolConnection(
	ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string,
	first *int, after *string, last *int, before *string,
) (*model.RetiredToolConnection, error) {
	c, err := readerFrom(ctx).
		retiredList(ctx, search, release.RetiredFilter{
			Reason: (*string)(reason), Category: category, Since: retiredSince, Before: retiredBefore,
		}).
		connection(ctx, paging{first, after, last, before})
	return &model.RetiredToolConnection{
		Edges: edgesOf[model.RetiredToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

// searchRetired returns the tools that contain all words of a query, in the same
// order. There are far fewer retired tools than active ones, so they need no search
// index.
func searchRetired(tools []*release.Tool, query string) (found []*release.Tool, err error) {
	if err := params.CheckText("search", query, params.MaxText); err != nil {
		return nil, err
	}
	words := distinct(text.Words(query))
	if len(words) > search.MaxWords {
		return nil, errTooManyWords
	}
	if len(words) == 0 { // only punctuation
		return nil, nil
	}
	for _, t := range tools {
		if t.RetiredWith(words) {
			found = append(found, t)
		}
	}
	return found, nil
}

// retiredList lists the retired tools that match a filter and contain all words of a
// search, if there is one.
func (r *reader) retiredList(
	ctx context.Context, search *string, filter release.RetiredFilter,
) *list[*release.Tool, *model.RetiredTool] {
	tools := &list[*release.Tool, *model.RetiredTool]{
		name: "retired tools", places: release.ByRetirement.Places(), nodes: r.RetiredTools,
	}
	tools.items, tools.err = found(ctx, r, func() ([]*release.Tool, error) {
		if err := params.CheckSlug("category", orZero(filter.Category)); err != nil {
			return nil, err
		}
		found := r.MatchingRetired(filter)
		r.noteCategory(filter.Category, len(found) == 0)
		if search == nil || strings.TrimSpace(*search) == "" {
			return found, nil
		}
		return searchRetired(found, *search)
	})
	return tools
}
