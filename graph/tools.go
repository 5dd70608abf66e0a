package graph

import (
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
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
}

var retiredOrder = order{{tool.FieldRetiredAt, true}, {tool.FieldID, false}}

func (queryResolver) Tool(ctx context.Context, slug string) (*model.Tool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r, s := readerFrom(ctx), selected(ctx)
	// The most frequent statement is not worth building with ent.
	columns := toolFields.columnsFor(s)
	statement := "SELECT " + strings.Join(columns, ", ") + " FROM tools WHERE slug = $1 AND retired_at IS NULL"
	rows, err := r.scanTools(ctx, columns, 1, statement, slug)
	if err != nil {
		return nil, err
	}
	return first(r.fillTools(ctx, rows, s))
}

func (queryResolver) Tools(ctx context.Context, filter *model.ToolFilter, sort model.ToolSort, page int, limit int) (*model.ToolPage, error) {
	items, meta, err := readerFrom(ctx).toolList(ctx, filter, sort).page(ctx, page, limit)
	return &model.ToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) ToolConnection(ctx context.Context, filter *model.ToolFilter, sort model.ToolSort, first *int, after *string, last *int, before *string) (*model.ToolConnection, error) {
	c, err := readerFrom(ctx).toolList(ctx, filter, sort).connection(ctx, first, after, last, before)
	return &model.ToolConnection{Edges: edgesOf[model.ToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// Comparisons returns the start of the list, which was read with the largest
// limit of the operation.
func (toolResolver) Comparisons(_ context.Context, t *model.Tool, limit int) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

func (r *reader) toolList(ctx context.Context, filter *model.ToolFilter, sort model.ToolSort) *list[*ent.Tool, *model.Tool] {
	where, err := r.toolsWhere(ctx, filter)
	tools := &list[*ent.Tool, *model.Tool]{err: err, name: "tools " + string(sort), order: toolOrders[sort], nodes: r.fillTools}
	tools.count = func() (int, error) { return r.countTools(ctx, filter, where) }
	tools.rows = func(w *window, nodes selection) ([]*ent.Tool, error) {
		where := where
		if w.offset <= maxSkip {
			few := w.total > 0 && r.release != nil && w.total < r.release.ToolsTotal/10
			where = r.withListHint(filter, where, w.order, few)
		}
		return r.toolWindow(ctx, where, w, toolFields.columnsFor(nodes, w.order.columns()...))
	}
	tools.cursor = func(row *ent.Tool) string { return encodeCursor(tools.name, toolPosition(tools.order, row)) }
	return tools
}

func (r *reader) countTools(ctx context.Context, filter *model.ToolFilter, where []predicate.Tool) (int, error) {
	if len(where) == 1 && r.release != nil { // all active tools
		return r.release.ToolsTotal, nil
	}
	return r.count(filterKey(filter), func() (int, error) {
		if !hasIndex(filter) {
			where = r.withScanHint(where)
		}
		return r.client.Tool.Query().Where(where...).Count(ctx)
	})
}

// toolWindow reads a window of tools.
func (r *reader) toolWindow(ctx context.Context, where []predicate.Tool, w *window, columns []string) ([]*ent.Tool, error) {
	q := toolQuery{columns: columns, where: where, order: w.order, limit: w.limit, offset: w.offset}
	start, end := w.bounds()
	if end != nil {
		q = q.and(w.order.reversed().past(end))
	}
	switch {
	case start == nil:
		return r.toolRows(ctx, q)
	case w.order[0].column != tool.FieldUntested:
		return r.toolRows(ctx, q.and(w.order.past(start)))
	}
	// Tools with and without a score are read separately: no index leads to a
	// position that either of them may follow.
	untested, _ := start[0].(bool)
	rows, err := r.toolRows(ctx, q.and(untestedIs(untested), w.order[1:].past(start[1:])))
	if err != nil || len(rows) == q.limit || untested != w.order[0].desc {
		return rows, err
	}
	q.limit -= len(rows)
	others, err := r.toolRows(ctx, q.and(untestedIs(!untested)))
	return append(rows, others...), err
}

// tools reads the tools that satisfy a predicate, in no particular order.
func (r *reader) tools(ctx context.Context, s selection, where ...predicate.Tool) ([]*model.Tool, error) {
	rows, err := r.toolRows(ctx, toolQuery{columns: toolFields.columnsFor(s), where: where})
	if err != nil {
		return nil, err
	}
	return r.fillTools(ctx, rows, s)
}

// fillTools converts rows and reads the selected fields that are stored
// elsewhere.
func (r *reader) fillTools(ctx context.Context, rows []*ent.Tool, s selection) ([]*model.Tool, error) {
	tools := toolFields.models(rows)
	if len(rows) == 0 || !s.has("category", "comparisons", "priceHistory", "history", "embeddings") {
		return tools, nil
	}
	categories, comparisons, err := r.toolLinks(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		t.Category, t.Comparisons = categories[t.CategorySlug], comparisons[t.Slug]
	}
	if s.has("priceHistory") {
		if err := r.fillPriceHistory(ctx, tools); err != nil {
			return nil, err
		}
	}
	if s.has("history") {
		if err := r.fillHistory(ctx, tools); err != nil {
			return nil, err
		}
	}
	if s.has("embeddings") {
		documents, err := r.embeddingsOf(ctx, rows, s.of("embeddings"))
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			t.Embeddings = documents[t.Slug]
		}
	}
	return tools, nil
}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r, s := readerFrom(ctx), selected(ctx)
	where := []predicate.Tool{tool.ID(slug), tool.RetiredAtNotNil()}
	rows, err := r.toolRows(ctx, toolQuery{columns: retiredFields.columnsFor(s), where: where})
	if err != nil {
		return nil, err
	}
	return first(r.fillRetired(ctx, rows, s))
}

func (queryResolver) RetiredTools(ctx context.Context, reason *model.RetirementReason, category *string, page int, limit int) (*model.RetiredToolPage, error) {
	items, meta, err := readerFrom(ctx).retiredList(ctx, reason, category).page(ctx, page, limit)
	return &model.RetiredToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) RetiredToolConnection(ctx context.Context, reason *model.RetirementReason, category *string, first *int, after *string, last *int, before *string) (*model.RetiredToolConnection, error) {
	c, err := readerFrom(ctx).retiredList(ctx, reason, category).connection(ctx, first, after, last, before)
	return &model.RetiredToolConnection{Edges: edgesOf[model.RetiredToolEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// Comparisons returns the start of the list, which was read with the largest
// limit of the operation.
func (retiredToolResolver) Comparisons(_ context.Context, t *model.RetiredTool, limit int) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

func (r *reader) retiredList(ctx context.Context, reason *model.RetirementReason, category *string) *list[*ent.Tool, *model.RetiredTool] {
	tools := &list[*ent.Tool, *model.RetiredTool]{name: "retired tools", order: retiredOrder, nodes: r.fillRetired}
	where, key := []predicate.Tool{tool.RetiredAtNotNil()}, "retired"
	if reason != nil {
		where = append(where, tool.RetiredReasonEQ(tool.RetiredReason(*reason)))
		key += " for " + string(*reason)
	}
	if category != nil {
		tools.err = checkText("category", *category, maxSlugText)
		where = append(where, tool.CategorySlug(*category))
		key += " in " + *category
	}
	tools.count = func() (int, error) {
		return r.count(key, func() (int, error) { return r.client.Tool.Query().Where(where...).Count(ctx) })
	}
	tools.rows = func(w *window, nodes selection) ([]*ent.Tool, error) {
		return r.toolWindow(ctx, where, w, retiredFields.columnsFor(nodes, w.order.columns()...))
	}
	tools.cursor = func(row *ent.Tool) string { return encodeCursor(tools.name, toolPosition(retiredOrder, row)) }
	return tools
}

// fillRetired converts rows and reads the selected links.
func (r *reader) fillRetired(ctx context.Context, rows []*ent.Tool, s selection) ([]*model.RetiredTool, error) {
	tools := retiredFields.models(rows)
	if len(rows) == 0 {
		return tools, nil
	}
	categories, comparisons, err := r.toolLinks(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		t.Category, t.Comparisons = categories[t.CategorySlug], comparisons[t.Slug]
	}
	return tools, nil
}

// toolLinks reads the selected links of active or retired tools: categories by
// their slug, comparisons by the slug of the tool.
func (r *reader) toolLinks(ctx context.Context, rows []*ent.Tool, s selection) (
	categories map[string]*model.Category, comparisons map[string][]*model.Comparison, err error,
) {
	if s.has("category") {
		if categories, err = r.categoriesOf(ctx, rows, s.of("category")); err != nil {
			return nil, nil, err
		}
	}
	if s.has("comparisons") {
		comparisons, err = r.comparisonsOf(ctx, rows, s)
	}
	return categories, comparisons, err
}

// toolQuery selects rows of tools.
type toolQuery struct {
	columns       []string
	where         []predicate.Tool
	order         order
	limit, offset int // unlimited if limit is 0
}

// and returns the query with further conditions.
func (q toolQuery) and(where ...predicate.Tool) toolQuery {
	q.where = slices.Concat(q.where, where)
	return q
}

// maxSkip is the largest offset at which skipping rows is cheaper than finding
// the page's slugs in the index first.
const maxSkip = 500

func (r *reader) toolRows(ctx context.Context, q toolQuery) ([]*ent.Tool, error) {
	s := entsql.Dialect(r.catalog.Dialect()).Select(q.columns...).From(entsql.Table(tool.Table))
	for _, condition := range q.where {
		condition(s)
	}
	q.order.apply(s)
	if q.limit > 0 {
		s.Limit(q.limit).Offset(q.offset)
	}
	if q.offset > maxSkip {
		slugs := s.Select(tool.FieldID)
		s = entsql.Dialect(r.catalog.Dialect()).Select(q.columns...).From(entsql.Table(tool.Table))
		s.Where(entsql.In(s.C(tool.FieldID), slugs))
		q.order.apply(s)
	}
	statement, args := s.Query()
	return r.scanTools(ctx, q.columns, q.limit, statement, args...)
}

func (r *reader) scanTools(ctx context.Context, columns []string, expected int, statement string, args ...any) ([]*ent.Tool, error) {
	rows, err := r.catalog.Select(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var next ent.Tool
	targets := scanTargets(&next, columns)
	found := make([]*ent.Tool, 0, expected)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := next
		found = append(found, &row)
	}
	return found, rows.Err()
}

func slugsOf(rows []*ent.Tool) []string {
	return mapSlice(rows, func(row *ent.Tool) string { return row.ID })
}
