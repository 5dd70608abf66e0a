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

func comparisonModel(row *ent.Comparison) *model.Comparison {
	return &model.Comparison{
		Slug: row.ID, Title: row.Title, WinnerNote: row.WinnerNote, UpdatedAt: row.UpdatedAt, CanonicalURL: row.CanonicalURL,
	}
}

// fillComparisons turns rows into comparisons with the tools they set against
// each other, read together.
func (r *reading) fillComparisons(ctx context.Context, rows []*ent.Comparison, s selection) ([]*model.Comparison, error) {
	comparisons := mapped(rows, comparisonModel)
	if len(rows) == 0 || !s.has("toolA", "toolB", "winner", "winnerName") {
		return comparisons, nil
	}
	seen := map[string]bool{}
	var slugs []string
	for _, row := range rows {
		for _, slug := range []string{row.ToolASlug, row.ToolBSlug} {
			if !seen[slug] {
				seen[slug] = true
				slugs = append(slugs, slug)
			}
		}
	}
	tools, err := r.comparedTools(ctx, slugs, s.of("toolA", "toolB", "winner"))
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

// comparedTools reads tools, active and retired, by slug.
func (r *reading) comparedTools(ctx context.Context, slugs []string, s selection) (map[string]model.ComparedTool, error) {
	active, retired := s.as("Tool", "ComparedTool"), s.as("RetiredTool", "ComparedTool")
	columns := columnsFor(active, append(columnsFor(retired), tool.FieldName, tool.FieldRetiredAt)...)
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
	bySlug := make(map[string]model.ComparedTool, len(rows))
	tools, err := r.fillTools(ctx, activeRows, active)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		bySlug[t.Slug] = t
	}
	gone, err := r.fillRetired(ctx, retiredRows, retired)
	if err != nil {
		return nil, err
	}
	for _, t := range gone {
		bySlug[t.Slug] = t
	}
	return bySlug, nil
}

// comparisonsOf reads the published comparisons that cite any of the tools, as
// many of each as is asked for anywhere.
func (r *reading) comparisonsOf(ctx context.Context, tools []*ent.Tool, s selection) (map[string][]*model.Comparison, error) {
	limit, err := s.longest("comparisons")
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
		found[tool] = mapped(citing, func(slug string) *model.Comparison { return bySlug[slug] })
	}
	return found, nil
}

// citedBy lists for each tool the first comparisons that cite it, and the rows
// that are in any such list.
func citedBy(tools []string, rows []*ent.Comparison, limit int) (cited map[string][]string, needed []*ent.Comparison) {
	cited = make(map[string][]string, len(tools))
	for _, slug := range tools {
		cited[slug] = nil
	}
	for _, row := range rows {
		before := len(needed)
		for _, slug := range []string{row.ToolASlug, row.ToolBSlug} {
			list, asked := cited[slug]
			if !asked || len(list) == limit || (len(list) > 0 && list[len(list)-1] == row.ID) {
				continue
			}
			cited[slug] = append(list, row.ID)
			if len(needed) == before {
				needed = append(needed, row)
			}
		}
	}
	return cited, needed
}

// firstOf is the start of what was read for the longest list that is asked for.
func firstOf(comparisons []*model.Comparison, limit int) []*model.Comparison {
	return comparisons[:min(limit, len(comparisons))]
}

// comparison reads a published one; nil for none.
func (r *reading) comparison(ctx context.Context, slug string, s selection) (*model.Comparison, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	rows, err := r.client.Comparison.Query().Where(comparison.ID(slug), comparison.Published(true)).All(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.fillComparisons(ctx, rows, s)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// comparisonsWhere are the published ones, with a tool of a category if asked.
func comparisonsWhere(category *string) ([]predicate.Comparison, string, error) {
	where := []predicate.Comparison{comparison.Published(true)}
	if category == nil {
		return where, "comparisons", nil
	}
	if err := checkText("category", *category, maxSlugText); err != nil {
		return nil, "", err
	}
	inCategory := func(s *entsql.Selector) {
		slug := s.C(comparison.FieldID)
		if s.Dialect() == dialect.SQLite {
			slug = "+" + slug // which has it walk the list's order, and not look up and sort what is listed
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(slug + " IN (SELECT comparison_slug FROM comparison_categories WHERE category_slug = ").Arg(*category).WriteByte(')')
		}))
	}
	return append(where, inCategory), "comparisons " + *category, nil
}

func (r *reading) countComparisons(ctx context.Context, key string, where []predicate.Comparison) (int, error) {
	return r.count(key, func() (int, error) { return r.client.Comparison.Query().Where(where...).Count(ctx) })
}

func (r *reading) comparisonPage(ctx context.Context, category *string, page, limit int, s selection) (*model.ComparisonPage, error) {
	if err := checkPaging(page, limit); err != nil {
		return nil, err
	}
	where, key, err := comparisonsWhere(category)
	if err != nil {
		return nil, err
	}
	total, err := r.countComparisons(ctx, key, where)
	if err != nil {
		return nil, err
	}
	result := &model.ComparisonPage{Items: []*model.Comparison{}, Meta: meta(total, page, limit)}
	if (page-1)*limit >= total || !s.has("items") {
		return result, nil
	}
	p := pageOf(comparisonOrder, total, page, limit)
	rows, err := r.client.Comparison.Query().Where(where...).Order(p.order.apply).Limit(p.limit).Offset(p.offset).All(ctx)
	if err != nil {
		return nil, err
	}
	result.Items, err = r.fillComparisons(ctx, asOrdered(p, rows), s.of("items"))
	return result, err
}

func (r *reading) comparisonSlice(ctx context.Context, category *string, sl *slice, s selection) (*model.ComparisonConnection, error) {
	where, key, err := comparisonsWhere(category)
	if err != nil {
		return nil, err
	}
	c, err := connect(s, sl, connected[*ent.Comparison, *model.Comparison, *model.ComparisonEdge]{
		count: func() (int, error) { return r.countComparisons(ctx, key, where) },
		read:  func(selection) ([]*ent.Comparison, error) { return r.sliceOfComparisons(ctx, where, sl) },
		fill: func(rows []*ent.Comparison, asked selection) ([]*model.Comparison, error) {
			return r.fillComparisons(ctx, rows, asked)
		},
		cursor: func(row *ent.Comparison) string { return sl.cursor([]any{row.UpdatedAt, row.ID}) },
		edge: func(cursor string, node *model.Comparison) *model.ComparisonEdge {
			return &model.ComparisonEdge{Cursor: cursor, Node: node}
		},
	})
	return &model.ComparisonConnection{Edges: c.edges, Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

func (r *reading) sliceOfComparisons(ctx context.Context, where []predicate.Comparison, sl *slice) ([]*ent.Comparison, error) {
	query := r.client.Comparison.Query().Where(where...)
	if sl.after != nil {
		query.Where(sl.order.past(sl.after))
	}
	if sl.before != nil {
		query.Where(sl.order.reversed().past(sl.before))
	}
	return query.Order(sl.direction().apply).Limit(sl.size + 1).All(ctx)
}
