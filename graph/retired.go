package graph

import (
	"context"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
)

var retiredOrder = order{{tool.FieldRetiredAt, true}, {tool.FieldID, false}}

func (queryResolver) RetiredTool(ctx context.Context, slug string) (*model.RetiredTool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r, s := readerFrom(ctx), selected(ctx)
	where := []predicate.Tool{tool.ID(slug), tool.RetiredAtNotNil()}
	rows, err := r.toolRows(ctx, toolQuery{columns: retiredFields.columnsFor(s), where: where})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	tools, err := r.fillRetired(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	return tools[0], nil
}

func (queryResolver) RetiredTools(ctx context.Context, reason *model.RetirementReason, category *string, page int, limit int) (*model.RetiredToolPage, error) {
	tools, err := readerFrom(ctx).retiredList(ctx, reason, category)
	if err != nil {
		return nil, err
	}
	items, meta, err := tools.page(page, limit, selected(ctx))
	return &model.RetiredToolPage{Items: items, Meta: meta}, err
}

func (queryResolver) RetiredToolConnection(ctx context.Context, reason *model.RetirementReason, category *string, first *int, after *string, last *int, before *string) (*model.RetiredToolConnection, error) {
	tools, err := readerFrom(ctx).retiredList(ctx, reason, category)
	if err != nil {
		return nil, err
	}
	c, err := tools.connection(first, after, last, before, selected(ctx))
	edges := edgesOf(c, func(cursor string, node *model.RetiredTool) *model.RetiredToolEdge {
		return &model.RetiredToolEdge{Cursor: cursor, Node: node}
	})
	return &model.RetiredToolConnection{Edges: edges, Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// Comparisons returns the start of the list, which was read with the largest
// limit of the operation.
func (retiredToolResolver) Comparisons(_ context.Context, t *model.RetiredTool, limit int) ([]*model.Comparison, error) {
	return t.Comparisons[:min(limit, len(t.Comparisons))], nil
}

func (r *reader) retiredList(ctx context.Context, reason *model.RetirementReason, category *string) (*list[*ent.Tool, *model.RetiredTool], error) {
	where, key := []predicate.Tool{tool.RetiredAtNotNil()}, "retired"
	if reason != nil {
		where = append(where, tool.RetiredReasonEQ(tool.RetiredReason(*reason)))
		key += " for " + string(*reason)
	}
	if category != nil {
		if err := checkText("category", *category, maxSlugText); err != nil {
			return nil, err
		}
		where = append(where, tool.CategorySlug(*category))
		key += " in " + *category
	}
	tools := &list[*ent.Tool, *model.RetiredTool]{name: "retired tools", order: retiredOrder}
	tools.count = func() (int, error) {
		return r.count(key, func() (int, error) { return r.client.Tool.Query().Where(where...).Count(ctx) })
	}
	tools.rows = func(w *window, nodes selection) ([]*ent.Tool, error) {
		return r.toolWindow(ctx, where, w, retiredFields.columnsFor(nodes, w.order.columns()...))
	}
	tools.nodes = func(rows []*ent.Tool, nodes selection) ([]*model.RetiredTool, error) {
		return r.fillRetired(ctx, rows, nodes)
	}
	tools.cursor = func(row *ent.Tool) string { return encodeCursor(tools.name, toolPosition(retiredOrder, row)) }
	return tools, nil
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
