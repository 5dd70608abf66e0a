package graph

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/catalog/search"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

var toolOrders = map[model.ToolSort]order{
	model.ToolSortScoreDesc:   {{tool.FieldUntested, false}, {tool.FieldScore, true}, {tool.FieldID, false}},
	model.ToolSortScoreAsc:    {{tool.FieldUntested, false}, {tool.FieldScore, false}, {tool.FieldID, false}},
	model.ToolSortNameAsc:     {{tool.FieldNameKey, false}, {tool.FieldID, false}},
	model.ToolSortNameDesc:    {{tool.FieldNameKey, true}, {tool.FieldID, false}},
	model.ToolSortUpdatedDesc: {{tool.FieldUpdatedAt, true}, {tool.FieldID, false}},
	model.ToolSortUpdatedAsc:  {{tool.FieldUpdatedAt, false}, {tool.FieldID, false}},
	model.ToolSortPriceAsc:    {{tool.FieldPriceAmount, false}, {tool.FieldID, false}},
	model.ToolSortPriceDesc:   {{tool.FieldPriceAmount, true}, {tool.FieldID, false}},

	model.ToolSortMonthlyPriceAsc:  {{noMonthlyPrice, false}, {monthlyPrice, false}, {tool.FieldID, false}},
	model.ToolSortMonthlyPriceDesc: {{noMonthlyPrice, false}, {monthlyPrice, true}, {tool.FieldID, false}},
}

var retiredOrder = order{{tool.FieldRetiredAt, true}, {tool.FieldID, false}}

func (queryResolver) Tool(ctx context.Context, slug string) (*model.Tool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	i, ok := r.index.find(slug)
	if !ok || !r.index.tools[i].active() {
		return nil, nil
	}
	return first(r.fillTools(ctx, []int{i}, selected(ctx)))
}

func (queryResolver) Tools(ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, page int, limit int) (*model.ToolPage, error) {
	items, meta, err := readerFrom(ctx).toolList(ctx, filter, sort).page(ctx, page, limit)
	return &model.ToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) ToolConnection(ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort, first *int, after *string, last *int, before *string) (*model.ToolConnection, error) {
	c, err := readerFrom(ctx).toolList(ctx, filter, sort).connection(ctx, first, after, last, before)
	return toolConnection(c), err
}

func toolConnection(c connection[*model.Tool]) *model.ToolConnection {
	return &model.ToolConnection{Edges: edgesOf[model.ToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}
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
func (toolResolver) ComparisonConnection(ctx context.Context, t *model.Tool, _ *int, _ *string, _ *int, _ *string) (*model.ComparisonConnection, error) {
	return nestedOf[*model.ComparisonConnection](ctx, toolID(t.Slug))
}

// toolList lists the tools that match a filter. Without an order, the best
// matches of a search come first, or else the highest scores.
func (r *reader) toolList(ctx context.Context, filter *model.ToolFilter, sort *model.ToolSort) *list[int, *model.Tool] {
	by := model.ToolSortScoreDesc
	if sort != nil {
		by = *sort
	} else if isSearch(filter) {
		by = model.ToolSortRelevance
	}
	tools := &list[int, *model.Tool]{name: toolListName(by), nodes: r.fillTools, cursors: r.index.toolCursors(toolOrders[by])}
	if by == model.ToolSortRelevance {
		if !isSearch(filter) {
			tools.err = problem.New(problem.BadInput, "sort: relevance requires filter.search.")
			return tools
		}
		tools.cursors = r.relevanceCursors(*filter.Search)
	}
	tools.items, tools.err = r.positions(ctx, func() ([]int, error) {
		matches, err := r.toolFilter(ctx, filter)
		switch {
		case err != nil:
			return nil, err
		case by == model.ToolSortRelevance:
			return r.byRelevance(*filter.Search, matches), nil
		}
		return filtered(r.index.orders[by](), matches), nil
	})
	return tools
}

// byRelevance returns the matches of a search that satisfy a condition, ordered
// by rank, then by score.
func (r *reader) byRelevance(search string, matches func(int) bool) []int {
	ranks := r.searches[search]
	found := filtered(slices.Collect(maps.Keys(ranks)), matches)
	compare := toolOrders[model.ToolSortScoreDesc].comparison()
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Or(ranks[a]-ranks[b], compare(r.index.tools[a], r.index.tools[b]))
	})
	return found
}

// relevanceCursors returns the cursors of byRelevance.
func (r *reader) relevanceCursors(search string) cursors[int] {
	scores := r.index.toolCursors(toolOrders[model.ToolSortScoreDesc])
	rank := func(i int) int { return r.searches[search][i] }
	return cursors[int]{
		length:   1 + scores.length,
		position: func(i int) []any { return append([]any{rank(i)}, scores.position(i)...) },
		compare: func(position []any) (func(int) int, bool) {
			other, isNumber := position[0].(float64)
			compareScores, valid := scores.compare(position[1:])
			return func(i int) int { return cmp.Or(rank(i)-int(other), compareScores(i)) }, isNumber && valid
		},
	}
}

// The types that tools satisfy.
var (
	toolTypes    = []string{"Tool", "ComparedTool", "Node"}
	retiredTypes = []string{"RetiredTool", "ComparedTool", "Node"}
)

// filtered returns the positions of the tools that satisfy a condition, or all of
// them without a condition.
func filtered(positions []int, matches func(int) bool) (found []int) {
	if matches == nil {
		return positions
	}
	found = make([]int, 0, len(positions))
	for _, i := range positions {
		if matches(i) {
			found = append(found, i)
		}
	}
	return found
}

// fillTools returns active tools with the selected fields that are stored
// elsewhere.
func (r *reader) fillTools(ctx context.Context, positions []int, s selection) ([]*model.Tool, error) {
	s = s.as(toolTypes)
	entities, err := r.entities(ctx, positions, s.has("priceHistory"))
	if err == nil {
		err = r.readToolConnections(ctx, positions, s)
	}
	if err != nil {
		return nil, err
	}
	tools := mapSlice(entities, func(e *entity) *model.Tool { return e.tool })
	pins := r.pinned && s.has("id")
	if len(tools) == 0 || !pins && !s.has("category", "comparisons", "priceHistory", "history", "versions", "verdict", "reviewSections", "embeddings") {
		return tools, nil
	}
	categories, comparisons, err := r.toolLinks(ctx, positions, s)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		linked := *t // the entity is shared by all operations
		if pins {
			linked.ID = r.pin(t.ID)
		}
		linked.Category, linked.PriceHistory = categories[t.CategorySlug], entities[i].prices
		if comparisons != nil {
			linked.Comparisons = comparisons[i]
		}
		tools[i] = &linked
	}
	if s.has("history") {
		if err := r.fillHistory(ctx, tools); err != nil {
			return nil, err
		}
	}
	if s.has("versions") {
		limit, err := s.maxLimit("versions")
		if err != nil {
			return nil, err
		}
		versions, err := r.versions(ctx, mapSlice(tools, func(t *model.Tool) string { return t.Slug }), limit)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			t.Versions = versions[t.Slug]
		}
	}
	if err := r.fillReviews(ctx, tools, s); err != nil {
		return nil, err
	}
	if s.has("embeddings") {
		err = r.fillEmbeddings(ctx, tools, entities, s.of("embeddings"))
	}
	return tools, err
}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	i, ok := r.index.find(slug)
	if !ok || r.index.tools[i].active() {
		return nil, nil
	}
	return first(r.fillRetired(ctx, []int{i}, selected(ctx)))
}

func (queryResolver) RetiredTools(ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string, page int, limit int) (*model.RetiredToolPage, error) {
	items, meta, err := readerFrom(ctx).retiredList(ctx, retiredFilter{reason, category, retiredSince, retiredBefore, search}).page(ctx, page, limit)
	return &model.RetiredToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) RetiredToolConnection(ctx context.Context, reason *model.RetirementReason, category, retiredSince, retiredBefore, search *string, first *int, after *string, last *int, before *string) (*model.RetiredToolConnection, error) {
	c, err := readerFrom(ctx).retiredList(ctx, retiredFilter{reason, category, retiredSince, retiredBefore, search}).connection(ctx, first, after, last, before)
	return &model.RetiredToolConnection{Edges: edgesOf[model.RetiredToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// Comparisons returns the first items of the list, which was read with the largest
// limit in the operation.
func (retiredToolResolver) Comparisons(_ context.Context, t *model.RetiredTool, limit int) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

// ComparisonConnection returns the connection that was read for this field.
func (retiredToolResolver) ComparisonConnection(ctx context.Context, t *model.RetiredTool, _ *int, _ *string, _ *int, _ *string) (*model.ComparisonConnection, error) {
	return nestedOf[*model.ComparisonConnection](ctx, toolID(t.Slug))
}

// retiredFilter has the conditions on retired tools; nil for none.
type retiredFilter struct {
	reason                                        *model.RetirementReason
	category, retiredSince, retiredBefore, search *string
}

// find returns the retired tools that match, most recently retired first.
func (f retiredFilter) find(ctx context.Context, r *reader) ([]int, error) {
	if err := checkSlugs(argument{"category", f.category}); err != nil {
		return nil, err
	}
	found := filtered(r.index.retired(), func(i int) bool {
		t := r.index.tools[i]
		return (f.reason == nil || t.reason == *f.reason) &&
			(f.category == nil || t.category == *f.category) &&
			(f.retiredSince == nil || t.retiredAt >= *f.retiredSince) &&
			(f.retiredBefore == nil || t.retiredAt < *f.retiredBefore)
	})
	if f.search == nil || strings.TrimSpace(*f.search) == "" {
		return found, nil
	}
	return r.searchRetired(ctx, found, *f.search)
}

// searchRetired returns the tools that contain all words of a query, in the same
// order. There are far fewer retired tools than active ones, so they need no search
// index.
func (r *reader) searchRetired(ctx context.Context, positions []int, query string) (found []int, err error) {
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
	entities, err := r.entities(ctx, positions, false)
	if err != nil {
		return nil, err
	}
	for i, e := range entities {
		of := slices.Concat(text.Words(e.retired.Name), text.Words(e.retired.Note))
		if !slices.ContainsFunc(words, func(word string) bool {
			return !slices.ContainsFunc(of, func(w string) bool { return strings.HasPrefix(w, word) })
		}) {
			found = append(found, positions[i])
		}
	}
	return found, nil
}

func (r *reader) retiredList(ctx context.Context, filter retiredFilter) *list[int, *model.RetiredTool] {
	tools := &list[int, *model.RetiredTool]{name: "retired tools", cursors: r.index.toolCursors(retiredOrder), nodes: r.fillRetired}
	tools.items, tools.err = r.positions(ctx, func() ([]int, error) { return filter.find(ctx, r) })
	return tools
}

// fillRetired returns retired tools with the selected links.
func (r *reader) fillRetired(ctx context.Context, positions []int, s selection) ([]*model.RetiredTool, error) {
	s = s.as(retiredTypes)
	entities, err := r.entities(ctx, positions, false)
	if err == nil {
		err = r.readToolConnections(ctx, positions, s)
	}
	if err != nil {
		return nil, err
	}
	tools := mapSlice(entities, func(e *entity) *model.RetiredTool { return e.retired })
	pins := r.pinned && s.has("id")
	if len(tools) == 0 || !pins && !s.has("category", "comparisons", "versions") {
		return tools, nil
	}
	categories, comparisons, err := r.toolLinks(ctx, positions, s)
	if err != nil {
		return nil, err
	}
	var versions map[string][]*model.ToolVersion
	if s.has("versions") {
		limit, err := s.maxLimit("versions")
		if err != nil {
			return nil, err
		}
		if versions, err = r.versions(ctx, mapSlice(tools, func(t *model.RetiredTool) string { return t.Slug }), limit); err != nil {
			return nil, err
		}
	}
	for i, t := range tools {
		linked := *t
		if pins {
			linked.ID = r.pin(t.ID)
		}
		linked.Versions = versions[t.Slug]
		if linked.Category = categories[t.CategorySlug]; comparisons != nil {
			linked.Comparisons = comparisons[i]
		}
		tools[i] = &linked
	}
	return tools, nil
}

// toolLinks reads the selected links of active or retired tools: categories by
// their slug, comparisons for each tool.
func (r *reader) toolLinks(ctx context.Context, positions []int, s selection) (
	categories map[string]*model.Category, comparisons [][]*model.Comparison, err error,
) {
	if s.has("category") {
		if categories, err = r.categoriesOf(ctx, positions, s.of("category")); err != nil {
			return nil, nil, err
		}
	}
	if s.has("comparisons") {
		comparisons, err = r.comparisonsOf(ctx, positions, s)
	}
	return categories, comparisons, err
}

// readToolConnections reads the selected connections of active or retired tools.
func (r *reader) readToolConnections(ctx context.Context, positions []int, s selection) error {
	if len(positions) == 0 {
		return nil
	}
	for _, field := range s.named("comparisonConnection", "changes") {
		read := r.readComparisonConnections
		if field.Name == "changes" {
			read = r.readToolChanges
		}
		if err := read(ctx, positions, field, s.within(field)); err != nil {
			return err
		}
	}
	return nil
}
