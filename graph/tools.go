package graph

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

func (queryResolver) Tool(ctx context.Context, slug string) (*model.Tool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	t := r.release.Tool(slug)
	if t == nil || !t.Active() {
		return nil, nil
	}
	return first(r.readTools(ctx, []*release.Tool{t}, selected(ctx)))
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

// Comparisons returns the first items of the list, which was read with the largest
// limit in the operation.
func (toolResolver) Comparisons(_ context.Context, t *model.Tool, limit int) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

// ComparisonConnection returns the connection that was read for this field.
func (toolResolver) ComparisonConnection(
	ctx context.Context, t *model.Tool, _ *int, _ *string, _ *int, _ *string,
) (*model.ComparisonConnection, error) {
	return nestedOf[*model.ComparisonConnection](ctx, toolID(t.Slug))
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
	tools := &list[*release.Tool, *model.Tool]{name: toolListName(by), nodes: r.readTools}
	if by == model.ToolSortRelevance {
		if !isSearch(filter) {
			tools.err = problem.New(problem.BadInput, "sort: relevance requires filter.search.")
			return tools
		}
		tools.cursors = r.relevanceCursors(*filter.Search)
	} else {
		tools.cursors = toolCursors(orderOf(by))
	}
	tools.items, tools.err = found(ctx, r, func() ([]*release.Tool, error) {
		conditions, err := r.toolFilter(filter)
		switch {
		case err != nil:
			return nil, err
		case by == model.ToolSortRelevance:
			return r.byRelevance(*filter.Search, conditions), nil
		}
		return r.release.Matching(orderOf(by), conditions), nil
	})
	return tools
}

// orderOf returns the order of a sort other than by relevance.
func orderOf(sort model.ToolSort) release.Order {
	order, _ := release.OrderNamed(string(sort)) // checkFields found all of them
	return order
}

// byRelevance returns the matches of a search that satisfy a filter, ordered
// by rank, then by score.
func (r *reader) byRelevance(search string, filter release.Filter) []*release.Tool {
	ranks := r.searches[search]
	found := slices.DeleteFunc(slices.Collect(maps.Keys(ranks)), func(t *release.Tool) bool { return !filter.Matches(t) })
	compare := release.ByScore.Comparer()
	slices.SortFunc(found, func(a, b *release.Tool) int { return cmp.Or(ranks[a]-ranks[b], compare(a, b)) })
	return found
}

// relevanceCursors returns the cursors of byRelevance.
func (r *reader) relevanceCursors(search string) cursors[*release.Tool] {
	rank := func(t *release.Tool) int { return r.searches[search][t] }
	return cursors[*release.Tool]{
		position: func(t *release.Tool) []any { return append([]any{rank(t)}, release.ByScore.Position(t)...) },
		compare: func(position []any) (func(*release.Tool) int, bool) {
			if len(position) == 0 {
				return nil, false
			}
			other, isNumber := position[0].(float64)
			compareScores, valid := release.ByScore.Seek(position[1:])
			return func(t *release.Tool) int { return cmp.Or(rank(t)-int(other), compareScores(t)) }, isNumber && valid
		},
	}
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
	if err != nil {
		return nil, err
	}
	tools := newTools(complete)
	links, err := r.readLinks(ctx, found, s)
	if err != nil || len(tools) == 0 {
		return nil, err
	}
	history := s.has("history")
	for i, t := range tools {
		t.ID, t.Category = links.id(t.Slug), links.categories[t.CategorySlug]
		t.Comparisons, t.Versions = links.comparisons[found[i]], links.versions[t.Slug]
		if history || s.has("priceHistory") {
			t.PriceHistory = mapSlice(r.release.PricesOf(t.Slug), priceChange)
		}
	}
	if history {
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
		err = r.addEmbeddings(ctx, tools, complete, s.of("embeddings"))
	}
	return tools, err
}

// withDetails returns tools with their details. If they are not in memory, they are
// copies.
func (r *reader) withDetails(ctx context.Context, tools []*release.Tool) ([]*release.Tool, error) {
	return r.release.WithDetails(ctx, r.database, tools)
}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	t := r.release.Tool(slug)
	if t == nil || t.Active() {
		return nil, nil
	}
	return first(r.readRetired(ctx, []*release.Tool{t}, selected(ctx)))
}

func (queryResolver) RetiredTools(
	ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string,
	page int, limit int,
) (*model.RetiredToolPage, error) {
	items, meta, err := readerFrom(ctx).
		retiredList(ctx, retiredFilter{reason, category, retiredSince, retiredBefore, search}).
		page(ctx, page, limit)
	return &model.RetiredToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) RetiredToolConnection(
	ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string,
	first *int, after *string, last *int, before *string,
) (*model.RetiredToolConnection, error) {
	c, err := readerFrom(ctx).
		retiredList(ctx, retiredFilter{reason, category, retiredSince, retiredBefore, search}).
		connection(ctx, first, after, last, before)
	return &model.RetiredToolConnection{
		Edges: edgesOf[model.RetiredToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

// Comparisons returns the first items of the list, which was read with the largest
// limit in the operation.
func (retiredToolResolver) Comparisons(
	_ context.Context, t *model.RetiredTool, limit int,
) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

// ComparisonConnection returns the connection that was read for this field.
func (retiredToolResolver) ComparisonConnection(
	ctx context.Context, t *model.RetiredTool, _ *int, _ *string, _ *int, _ *string,
) (*model.ComparisonConnection, error) {
	return nestedOf[*model.ComparisonConnection](ctx, toolID(t.Slug))
}

// retiredFilter has the conditions on retired tools; nil for none.
type retiredFilter struct {
	reason                                        *model.RetirementReason
	category, retiredSince, retiredBefore, search *string
}

// find returns the retired tools that match, most recently retired first.
func (f retiredFilter) find(ctx context.Context, r *reader) ([]*release.Tool, error) {
	if err := checkSlugs(argument{"category", f.category}); err != nil {
		return nil, err
	}
	found := r.release.Matching(release.ByRetirement, release.Filter{release.Where(func(t *release.Tool) bool {
		return (f.reason == nil || t.Reason == string(*f.reason)) &&
			(f.category == nil || t.Category == *f.category) &&
			(f.retiredSince == nil || t.RetiredAt >= *f.retiredSince) &&
			(f.retiredBefore == nil || t.RetiredAt < *f.retiredBefore)
	})})
	if f.search == nil || strings.TrimSpace(*f.search) == "" {
		return found, nil
	}
	return r.searchRetired(ctx, found, *f.search)
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

func (r *reader) retiredList(ctx context.Context, filter retiredFilter) *list[*release.Tool, *model.RetiredTool] {
	tools := &list[*release.Tool, *model.RetiredTool]{
		name: "retired tools", cursors: toolCursors(release.ByRetirement), nodes: r.readRetired,
	}
	tools.items, tools.err = found(ctx, r, func() ([]*release.Tool, error) { return filter.find(ctx, r) })
	return tools
}

// readRetired returns retired tools with the selected fields.
func (r *reader) readRetired(ctx context.Context, found []*release.Tool, s selection) ([]*model.RetiredTool, error) {
	s = s.as(retiredTypes)
	complete, err := r.withDetails(ctx, found)
	if err != nil {
		return nil, err
	}
	links, err := r.readLinks(ctx, found, s)
	if err != nil {
		return nil, err
	}
	tools := mapSlice(complete, newRetired)
	for i, t := range tools {
		t.ID, t.Category = links.id(t.Slug), links.categories[t.CategorySlug]
		t.Comparisons, t.Versions = links.comparisons[found[i]], links.versions[t.Slug]
	}
	return tools, nil
}

// toolLinks are the selected values of active or retired tools that are stored
// elsewhere.
type toolLinks struct {
	id          func(slug string) string
	categories  map[string]*model.Category            // by slug
	comparisons map[*release.Tool][]*model.Comparison // by tool
	versions    map[string][]*model.ToolVersion       // by slug
}

func (r *reader) readLinks(ctx context.Context, tools []*release.Tool, s selection) (links toolLinks, err error) {
	links.id = func(string) string { return "" }
	if len(tools) == 0 {
		return links, nil
	}
	if s.has("id") {
		links.id = func(slug string) string { return r.pin(toolID(slug)) }
	}
	for _, field := range s.named("comparisonConnection", "changes") {
		read := r.readComparisonConnections
		if field.Name == "changes" {
			read = r.readToolChanges
		}
		if err := read(ctx, tools, field, s.within(field)); err != nil {
			return links, err
		}
	}
	if s.has("category") {
		if links.categories, err = r.categoriesOf(ctx, tools, s.of("category")); err != nil {
			return links, err
		}
	}
	if s.has("comparisons") {
		if links.comparisons, err = r.comparisonsOf(ctx, tools, s); err != nil {
			return links, err
		}
	}
	if s.has("versions") {
		limit, err := s.maxLimit("versions")
		if err != nil {
			return links, err
		}
		links.versions, err = r.versions(ctx, mapSlice(tools, func(t *release.Tool) string { return t.Slug }), limit)
		return links, err
	}
	return links, nil
}
