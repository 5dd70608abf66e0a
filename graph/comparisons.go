package graph

import (
	"context"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
)

var comparisonOrder = order{{comparison.FieldUpdatedAt, true}, {comparison.FieldID, false}}

func (queryResolver) Comparison(ctx context.Context, slug string) (*model.Comparison, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	rows, err := r.client.Comparison.Query().Where(comparison.ID(slug), comparison.Published(true)).All(ctx)
	if err != nil {
		return nil, err
	}
	return first(r.fillComparisons(ctx, rows, selected(ctx)))
}

func (queryResolver) Comparisons(ctx context.Context, category *string, page int, limit int) (*model.ComparisonPage, error) {
	items, meta, err := readerFrom(ctx).comparisonList(ctx, category).page(ctx, page, limit)
	return &model.ComparisonPage{Items: items, Meta: meta}, err
}

func (queryResolver) ComparisonConnection(ctx context.Context, category *string, first *int, after *string, last *int, before *string) (*model.ComparisonConnection, error) {
	c, err := readerFrom(ctx).comparisonList(ctx, category).connection(ctx, first, after, last, before)
	return &model.ComparisonConnection{Edges: edgesOf[model.ComparisonEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// comparisonList lists the published comparisons, optionally with a tool of one
// category.
func (r *reader) comparisonList(ctx context.Context, category *string) *list[*ent.Comparison, *model.Comparison] {
	comparisons := &list[*ent.Comparison, *model.Comparison]{name: "comparisons", order: comparisonOrder, nodes: r.fillComparisons}
	where, key := []predicate.Comparison{comparison.Published(true)}, "comparisons"
	if category != nil {
		comparisons.err = checkText("category", *category, maxSlugText)
		where, key = append(where, comparisonInCategory(*category)), key+" "+*category
	}
	comparisons.count = func() (int, error) {
		return r.count(key, func() (int, error) { return r.client.Comparison.Query().Where(where...).Count(ctx) })
	}
	comparisons.rows = func(w *window, _ selection) ([]*ent.Comparison, error) {
		query := r.client.Comparison.Query().Where(where...)
		start, end := w.bounds()
		if start != nil {
			query.Where(w.order.past(start))
		}
		if end != nil {
			query.Where(w.order.reversed().past(end))
		}
		return query.Order(w.order.apply).Limit(w.limit).Offset(w.offset).All(ctx)
	}
	comparisons.cursor = func(row *ent.Comparison) string {
		return encodeCursor(comparisons.name, []any{row.UpdatedAt, row.ID})
	}
	return comparisons
}

func comparisonInCategory(category string) predicate.Comparison {
	return func(s *entsql.Selector) {
		slug := s.C(comparison.FieldID)
		if s.Dialect() == dialect.SQLite {
			slug = "+" + slug // makes it walk the list's order instead of sorting the category
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(slug + " IN (SELECT comparison_slug FROM comparison_categories WHERE category_slug = ").Arg(category).WriteByte(')')
		}))
	}
}

// fillComparisons converts rows and reads the selected tools.
func (r *reader) fillComparisons(ctx context.Context, rows []*ent.Comparison, s selection) ([]*model.Comparison, error) {
	comparisons := mapSlice(rows, func(row *ent.Comparison) *model.Comparison {
		return &model.Comparison{
			Slug: row.ID, Title: row.Title, WinnerNote: row.WinnerNote, UpdatedAt: row.UpdatedAt, CanonicalURL: row.CanonicalURL,
		}
	})
	if len(rows) == 0 || !s.has("toolA", "toolB", "winner", "winnerName") {
		return comparisons, nil
	}
	var slugs []string
	for _, row := range rows {
		slugs = append(slugs, row.ToolASlug, row.ToolBSlug)
	}
	tools, err := r.comparedTools(ctx, distinct(slugs), s.of("toolA", "toolB", "winner"))
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		c := comparisons[i]
		c.ToolA, c.ToolB, c.Winner = tools[row.ToolASlug], tools[row.ToolBSlug], tools[row.WinnerSlug]
		c.WinnerName = c.Winner.GetName()
	}
	return comparisons, nil
}

// comparedTools reads active and retired tools, by slug.
func (r *reader) comparedTools(ctx context.Context, slugs []string, s selection) (map[string]model.ComparedTool, error) {
	active, retired := s.as("Tool", "ComparedTool"), s.as("RetiredTool", "ComparedTool")
	columns := toolFields.columnsFor(active, append(retiredFields.columnsFor(retired), tool.FieldName, tool.FieldRetiredAt)...)
	rows, err := r.toolRows(ctx, toolQuery{columns: columns, where: []predicate.Tool{tool.IDIn(slugs...)}})
	if err != nil {
		return nil, err
	}
	var activeRows, retiredRows []*ent.Tool
	for _, row := range rows {
		if row.RetiredAt == "" {
			activeRows = append(activeRows, row)
		} else {
			retiredRows = append(retiredRows, row)
		}
	}
	tools, err := r.fillTools(ctx, activeRows, active)
	if err != nil {
		return nil, err
	}
	retiredTools, err := r.fillRetired(ctx, retiredRows, retired)
	if err != nil {
		return nil, err
	}
	bySlug := make(map[string]model.ComparedTool, len(rows))
	for _, t := range tools {
		bySlug[t.Slug] = t
	}
	for _, t := range retiredTools {
		bySlug[t.Slug] = t
	}
	return bySlug, nil
}

// comparisonsOf reads the published comparisons that cite any of the tools, by
// the tool's slug, up to the largest limit in the selection.
func (r *reader) comparisonsOf(ctx context.Context, tools []*ent.Tool, s selection) (map[string][]*model.Comparison, error) {
	limit, err := s.maxLimit("comparisons")
	if err != nil {
		return nil, err
	}
	slugs := slugsOf(tools)
	rows, err := r.client.Comparison.Query().
		Where(comparison.Published(true), comparison.Or(comparison.ToolASlugIn(slugs...), comparison.ToolBSlugIn(slugs...))).
		Order(comparisonOrder.apply).All(ctx)
	if err != nil {
		return nil, err
	}
	cited, rows := citedBy(slugs, rows, limit)
	comparisons, err := r.fillComparisons(ctx, rows, s.of("comparisons"))
	if err != nil {
		return nil, err
	}
	bySlug := make(map[string]*model.Comparison, len(comparisons))
	for _, c := range comparisons {
		bySlug[c.Slug] = c
	}
	found := make(map[string][]*model.Comparison, len(tools))
	for tool, citing := range cited {
		found[tool] = mapSlice(citing, func(slug string) *model.Comparison { return bySlug[slug] })
	}
	return found, nil
}

// citedBy returns the slugs of the first comparisons of each tool, and the rows
// that appear in any of these lists.
func citedBy(tools []string, rows []*ent.Comparison, limit int) (cited map[string][]string, needed []*ent.Comparison) {
	cited = make(map[string][]string, len(tools))
	for _, slug := range tools {
		cited[slug] = nil
	}
	for _, row := range rows {
		listed := false
		for _, slug := range []string{row.ToolASlug, row.ToolBSlug} {
			list, wanted := cited[slug]
			if !wanted || len(list) == limit || (len(list) > 0 && list[len(list)-1] == row.ID) {
				continue
			}
			cited[slug], listed = append(list, row.ID), true
		}
		if listed {
			needed = append(needed, row)
		}
	}
	return cited, needed
}
