package graph

import (
	"context"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
)

func retiredModel(row *ent.Tool) *model.RetiredTool {
	return &model.RetiredTool{
		Slug: row.ID, Name: row.Name, Score: row.Score, CategorySlug: row.CategorySlug,
		Reason: model.RetirementReason(row.RetiredReason), RetiredAt: row.RetiredAt, Note: row.RetiredNote,
	}
}

// fillRetired turns rows into retired tools with all that hangs on them.
func (r *reading) fillRetired(ctx context.Context, rows []*ent.Tool, s selection) ([]*model.RetiredTool, error) {
	tools := mapped(rows, retiredModel)
	if len(rows) == 0 {
		return tools, nil
	}
	links, err := r.linksOf(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		t.Category, t.Comparisons = links.categories[t.CategorySlug], links.comparisons[t.Slug]
	}
	return tools, nil
}

// retiredTool reads one; nil for none.
func (r *reading) retiredTool(ctx context.Context, slug string, s selection) (*model.RetiredTool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	rows, err := r.toolRows(ctx, toolQuery{columns: columnsFor(s), where: []predicate.Tool{tool.ID(slug), tool.RetiredAtNotNil()}})
	if err != nil {
		return nil, err
	}
	found, err := r.fillRetired(ctx, rows, s)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// retiredWhere are the retired tools, by reason and category if asked, and
// the name of their count.
func retiredWhere(reason *model.RetirementReason, category *string) ([]predicate.Tool, string, error) {
	where, key := []predicate.Tool{tool.RetiredAtNotNil()}, "retired"
	if reason != nil {
		where = append(where, tool.RetiredReasonEQ(tool.RetiredReason(*reason)))
		key += " for " + string(*reason)
	}
	if category != nil {
		if err := checkText("category", *category, maxSlugText); err != nil {
			return nil, "", err
		}
		where = append(where, tool.CategorySlug(*category))
		key += " in " + *category
	}
	return where, key, nil
}

func (r *reading) countRetired(ctx context.Context, key string, where []predicate.Tool) (int, error) {
	return r.count(key, func() (int, error) { return r.client.Tool.Query().Where(where...).Count(ctx) })
}

func (r *reading) retiredPage(ctx context.Context, reason *model.RetirementReason, category *string, page, limit int, s selection) (*model.RetiredToolPage, error) {
	if err := checkPaging(page, limit); err != nil {
		return nil, err
	}
	where, key, err := retiredWhere(reason, category)
	if err != nil {
		return nil, err
	}
	total, err := r.countRetired(ctx, key, where)
	if err != nil {
		return nil, err
	}
	result := &model.RetiredToolPage{Items: []*model.RetiredTool{}, Meta: meta(total, page, limit)}
	if (page-1)*limit >= total || !s.has("items") {
		return result, nil
	}
	asked := s.of("items")
	rows, err := r.toolRows(ctx, toolQuery{columns: columnsFor(asked), where: where}.at(pageOf(retiredOrder, total, page, limit)))
	if err != nil {
		return nil, err
	}
	result.Items, err = r.fillRetired(ctx, rows, asked)
	return result, err
}

func (r *reading) retiredSlice(ctx context.Context, reason *model.RetirementReason, category *string, sl *slice, s selection) (*model.RetiredToolConnection, error) {
	where, key, err := retiredWhere(reason, category)
	if err != nil {
		return nil, err
	}
	c, err := connect(s, sl, connected[*ent.Tool, *model.RetiredTool, *model.RetiredToolEdge]{
		count: func() (int, error) { return r.countRetired(ctx, key, where) },
		read:  func(asked selection) ([]*ent.Tool, error) { return r.sliceOfTools(ctx, where, sl, asked) },
		fill: func(rows []*ent.Tool, asked selection) ([]*model.RetiredTool, error) {
			return r.fillRetired(ctx, rows, asked)
		},
		cursor: func(row *ent.Tool) string { return sl.cursor(sl.order.keysOfTool(row)) },
		edge: func(cursor string, node *model.RetiredTool) *model.RetiredToolEdge {
			return &model.RetiredToolEdge{Cursor: cursor, Node: node}
		},
	})
	return &model.RetiredToolConnection{Edges: c.edges, Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}
