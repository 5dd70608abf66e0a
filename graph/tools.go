package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

func (queryResolver) Tool(ctx context.Context, slug string) (*model.Tool, error) {
	r := readerFrom(ctx)
	return bySlug(ctx, slug, r.activeTool, r.readTools)
}

// activeTool returns the active tool with a slug, or nil.
func (r *reader) activeTool(slug string) *release.Tool {
	if t := r.release.Tool(slug); t != nil && t.Active() {
		return t
	}
	return nil
}

func (queryResolver) Tools(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, page int, limit int,
) (*model.ToolPage, error) {
	items, meta, err := readerFrom(ctx).toolList(ctx, filter, sort).page(ctx, page, limit)
	return &model.ToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) ToolConnection(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort,
	first *int, after *string, last *int, before *string,
) (*model.ToolConnection, error) {
	c, err := readerFrom(ctx).toolList(ctx, filter, sort).connection(ctx, first, after, last, before)
	return toolConnection(c), err
}

func toolConnection(c connection[*model.Tool]) *model.ToolConnection {
	return &model.ToolConnection{
		Edges: edgesOf[model.ToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}
}

// toolListName identifies the lists of tools in an order. Cursors of one are valid
// in all of them.
func toolListName(sort model.ToolSort) string { return "tools " + string(sort) }

// toolResolver resolves the fields of active and retired tools that were read with
// them.
type toolResolver[T any] struct{ slug func(*T) string }

func (r toolResolver[T]) Comparisons(ctx context.Context, t *T, _ int) ([]*model.Comparison, error) {
	return nestedOf[[]*model.Comparison](ctx, toolID(r.slug(t)))
}

func (r toolResolver[T]) ComparisonConnection(
	ctx context.Context, t *T, _ *int, _ *string, _ *int, _ *string,
) (*model.ComparisonConnection, error) {
	return nestedOf[*model.ComparisonConnection](ctx, toolID(r.slug(t)))
}

func (r toolResolver[T]) Alternatives(ctx context.Context, t *T, _ int) ([]*model.Tool, error) {
	return nestedOf[[]*model.Tool](ctx, toolID(r.slug(t)))
}

func (r toolResolver[T]) Changes(
	ctx context.Context, t *T, _ []model.ChangeType, _ *int, _ *string, _ *int, _ *string,
) (*model.ChangeConnection, error) {
	return nestedOf[*model.ChangeConnection](ctx, toolID(r.slug(t)))
}

func (r toolResolver[T]) Versions(ctx context.Context, t *T, _ int) ([]*model.ToolVersion, error) {
	return nestedOf[[]*model.ToolVersion](ctx, toolID(r.slug(t)))
}

// toolList lists the tools that match a filter. Without an order, the best
// matches of a search come first, or else the highest scores.
func (r *reader) toolList(
	ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort,
) *list[*release.Tool, *model.Tool] {
	by := model.ToolSortScoreDesc
	if sort != nil {
		by = *sort
	} else if isSearch(filter) {
		by = model.ToolSortRelevance
	}
	tools := &list[*release.Tool, *model.Tool]{name: toolListName(by), order: orderOf(by), nodes: r.readTools}
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
			return r.release.ByRelevance(r.searches[*filter.Search], conditions), nil
		}
		return r.release.Matching(orderOf(by), conditions), nil
	})
	if relevance {
		tools.order = r.searches[*filter.Search]
	}
	return tools
}

// orderOf returns the order of a sort other than by relevance.
func orderOf(sort model.ToolSort) release.Order {
	order, _ := release.OrderNamed(string(sort)) // checkFields found all of them
	return order
}

// The types that tools satisfy.
var (
	toolTypes    = []string{"Tool", "ComparedTool", "Node"}
	retiredTypes = []string{"RetiredTool", "ComparedTool", "Node"}
)

// readTools returns active tools with the selected fields.
func (r *reader) readTools(ctx context.Context, found []*release.Tool, s selection) ([]*model.Tool, error) {
	s = s.as(toolTypes)
	complete, err := r.withDetails(ctx, found)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	categories, err := r.readLinks(ctx, found, s)
	if err != nil {
		return nil, err
	}
	tools := newTools(complete)
	withID, withPrices := s.has("id"), s.has("priceHistory")
	for _, t := range tools {
		t.Category = categories[t.CategorySlug]
		if withID {
			t.ID = r.pin(toolID(t.Slug))
		}
		if withPrices {
			t.PriceHistory = mapSlice(r.release.PricesOf(t.Slug), priceChange)
		}
	}
	if s.has("history") {
		if err := r.addHistory(ctx, tools); err != nil {
			return nil, err
		}
	}
	if s.has("verdict", "reviewSections") {
		if err := r.addReviews(ctx, tools, s); err != nil {
			return nil, err
		}
	}
	if s.has("embeddings") {
		err = r.addEmbeddings(ctx, tools, s.of("embeddings"))
	}
	return tools, err
}

// withDetails returns tools with their details. If they are not in memory, they are
// copies.
func (r *reader) withDetails(ctx context.Context, tools []*release.Tool) ([]*release.Tool, error) {
	return r.release.WithDetails(ctx, r.database, tools)
}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	r := readerFrom(ctx)
	find := func(slug string) *release.Tool {
		if t := r.release.Tool(slug); t != nil && !t.Active() {
			return t
		}
		return nil
	}
	return bySlug(ctx, slug, find, r.readRetired)
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
		connection(ctx, first, after, last, before)
	return &model.RetiredToolConnection{
		Edges: edgesOf[model.RetiredToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

// searchRetired returns the tools that contain all words of a query, in the same
// order. There are far fewer retired tools than active ones, so they need no search
// index.
func (r *reader) searchRetired(
	ctx context.Context, tools []*release.Tool, query string,
) (found []*release.Tool, err error) {
	if err := checkText("search", query, maxSearchText); err != nil {
		return nil, err
	}
	words := distinct(text.Words(query))
	if len(words) > search.MaxWords {
		return nil, errTooManyWords
	}
	if len(words) == 0 { // only punctuation
		return nil, nil
	}
	complete, err := r.withDetails(ctx, tools)
	for i, t := range complete {
		of := slices.Concat(text.Words(t.Name), text.Words(t.RetiredNote))
		if !slices.ContainsFunc(words, func(word string) bool {
			return !slices.ContainsFunc(of, func(w string) bool { return strings.HasPrefix(w, word) })
		}) {
			found = append(found, tools[i])
		}
	}
	return found, err
}

// retiredList lists the retired tools that match a filter and contain all words of a
// search, if there is one.
func (r *reader) retiredList(
	ctx context.Context, search *string, filter release.RetiredFilter,
) *list[*release.Tool, *model.RetiredTool] {
	tools := &list[*release.Tool, *model.RetiredTool]{
		name: "retired tools", order: release.ByRetirement, nodes: r.readRetired,
	}
	tools.items, tools.err = found(ctx, r, func() ([]*release.Tool, error) {
		if err := checkSlugs(argument{"category", filter.Category}); err != nil {
			return nil, err
		}
		found := r.release.MatchingRetired(filter)
		if search == nil || strings.TrimSpace(*search) == "" {
			return found, nil
		}
		return r.searchRetired(ctx, found, *search)
	})
	return tools
}

// readRetired returns retired tools with the selected fields.
func (r *reader) readRetired(ctx context.Context, found []*release.Tool, s selection) ([]*model.RetiredTool, error) {
	s = s.as(retiredTypes)
	complete, err := r.withDetails(ctx, found)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	categories, err := r.readLinks(ctx, found, s)
	withID := s.has("id")
	return mapSlice(complete, func(t *release.Tool) *model.RetiredTool {
		retired := newRetired(t)
		retired.Category = categories[t.Category]
		if withID {
			retired.ID = r.pin(toolID(t.Slug))
		}
		return retired
	}), err
}

// readLinks reads the selected lists of active or retired tools, and returns their
// categories by slug.
func (r *reader) readLinks(
	ctx context.Context, tools []*release.Tool, s selection,
) (categories map[string]*model.Category, err error) {
	for _, field := range s.named("comparisons", "comparisonConnection", "changes", "alternatives") {
		read := r.readToolComparisons
		switch field.Name {
		case "changes":
			read = r.readToolChanges
		case "alternatives":
			read = r.readAlternatives
		}
		if err := read(ctx, tools, field, s.within(field)); err != nil {
			return nil, err
		}
	}
	if s.has("category") {
		if categories, err = r.categoriesOf(ctx, tools, s.of("category")); err != nil {
			return nil, err
		}
	}
	if fields := s.named("versions"); len(fields) > 0 {
		err = r.readVersions(ctx, tools, fields, s)
	}
	return categories, err
}

// readAlternatives reads the alternatives to each tool for one field.
func (r *reader) readAlternatives(
	ctx context.Context, tools []*release.Tool, field graphql.CollectedField, within selection,
) error {
	limit, err := within.limit(field, maxNestedTools)
	if err != nil {
		return err
	}
	parents := mapSlice(tools, func(t *release.Tool) string { return toolID(t.Slug) })
	lists := mapSlice(tools, func(t *release.Tool) *list[*release.Tool, *model.Tool] {
		return &list[*release.Tool, *model.Tool]{items: r.release.Alternatives(t, limit), nodes: r.readTools}
	})
	return readNested(ctx, r, field, within, parents, lists, toolConnection)
}
