package graph

import (
	"context"
	"strings"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
)

// toolColumns are the stored columns that each field is made of. Fields that
// need more than their tool's own row name the key to find it by.
var toolColumns = map[string][]string{
	"slug": {}, "name": {tool.FieldName}, "domain": {tool.FieldDomain},
	"categorySlug": {tool.FieldCategorySlug}, "category": {tool.FieldCategorySlug},
	"icp": {tool.FieldIcp}, "icpCode": {tool.FieldIcp}, "pricing": {tool.FieldPricing},
	"price": {tool.FieldPrice}, "priceAmount": {tool.FieldPriceAmount}, "pricePeriod": {tool.FieldPricePeriod},
	"score": {tool.FieldScore}, "verifiability": {tool.FieldVerifiability}, "obsolescence": {tool.FieldObsolescence},
	"tagline": {tool.FieldTagline}, "canonicalUrl": {tool.FieldCanonicalURL}, "avisUrl": {tool.FieldAvisURL},
	"alternativesUrl": {tool.FieldAlternativesURL}, "updatedAt": {tool.FieldUpdatedAt},
	"tier": {tool.FieldTier}, "mainstream": {tool.FieldMainstream},
	"reason": {tool.FieldRetiredReason}, "retiredAt": {tool.FieldRetiredAt}, "note": {tool.FieldRetiredNote},
	"history": {tool.FieldPricing, tool.FieldPrice, tool.FieldScore, tool.FieldUpdatedAt},
	"embeddings": {tool.FieldName, tool.FieldCategorySlug, tool.FieldScore, tool.FieldVerifiability, tool.FieldCanonicalURL,
		tool.FieldAvisURL, tool.FieldUpdatedAt, tool.FieldInEmbeddings, tool.FieldSectionsHash},
}

var icpCodes = map[model.Icp]string{
	model.IcpVibeCoder: "vibe-coder", model.IcpAgenticEngineer: "agentic-engineer", model.IcpMixte: "mixte",
}

func toolModel(row *ent.Tool) *model.Tool {
	return &model.Tool{
		Slug: row.ID, Name: row.Name, Domain: row.Domain, CategorySlug: row.CategorySlug,
		Icp: model.Icp(strings.ReplaceAll(string(row.Icp), "-", "_")), IcpCode: string(row.Icp),
		Pricing: model.Pricing(row.Pricing), Price: row.Price, PriceAmount: row.PriceAmount, PricePeriod: row.PricePeriod,
		Score: row.Score, Verifiability: row.Verifiability, Obsolescence: row.Obsolescence,
		Tagline: row.Tagline, CanonicalURL: row.CanonicalURL, AvisURL: row.AvisURL, AlternativesURL: row.AlternativesURL,
		UpdatedAt: row.UpdatedAt, Tier: row.Tier, Mainstream: row.Mainstream,
		PriceHistory: []*model.PriceChange{},
	}
}

// tool reads one active tool; nil for none.
func (r *reading) tool(ctx context.Context, slug string, s selection) (*model.Tool, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	rows, err := r.activeBySlug(ctx, columnsFor(s), slug)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	tools, err := r.fillTools(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	return tools[0], nil
}

// tools reads tools and everything that the selection asks of them.
func (r *reading) tools(ctx context.Context, s selection, q toolQuery) ([]*model.Tool, error) {
	q.columns = columnsFor(s)
	rows, err := r.toolRows(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.fillTools(ctx, rows, s)
}

// fillTools turns rows into tools with all that hangs on them.
func (r *reading) fillTools(ctx context.Context, rows []*ent.Tool, s selection) ([]*model.Tool, error) {
	tools := mapped(rows, toolModel)
	if len(rows) == 0 || !s.has("category", "comparisons", "priceHistory", "history", "embeddings") {
		return tools, nil
	}
	links, err := r.linksOf(ctx, rows, s)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		t.Category, t.Comparisons = links.categories[t.CategorySlug], links.comparisons[t.Slug]
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
		documents, err := r.documentsOf(ctx, rows, s.of("embeddings"))
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			t.Embeddings = documents[t.Slug]
		}
	}
	return tools, nil
}

// links are what active and retired tools have alike.
type links struct {
	categories  map[string]*model.Category     // by their own slug
	comparisons map[string][]*model.Comparison // by the tool's
}

// linksOf reads the links that are asked for.
func (r *reading) linksOf(ctx context.Context, rows []*ent.Tool, s selection) (found links, err error) {
	if s.has("category") {
		if found.categories, err = r.categoriesOf(ctx, rows, s.of("category")); err != nil {
			return found, err
		}
	}
	if s.has("comparisons") {
		found.comparisons, err = r.comparisonsOf(ctx, rows, s)
	}
	return found, err
}

func (r *reading) toolPage(ctx context.Context, filter *model.ToolFilter, sort model.ToolSort, page, limit int, s selection) (*model.ToolPage, error) {
	if err := checkPaging(page, limit); err != nil {
		return nil, err
	}
	where, err := r.where(ctx, filter)
	if err != nil {
		return nil, err
	}
	total, err := r.countTools(ctx, filter, where)
	if err != nil {
		return nil, err
	}
	result := &model.ToolPage{Items: []*model.Tool{}, Meta: meta(total, page, limit)}
	if (page-1)*limit < total && s.has("items") {
		p := pageOf(toolOrders[sort], total, page, limit)
		if p.offset <= deep {
			few := r.release != nil && total < r.release.ToolsTotal/10
			where = r.listed(filter, where, p.order, few)
		}
		if result.Items, err = r.tools(ctx, s.of("items"), toolQuery{where: where}.at(p)); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (r *reading) countTools(ctx context.Context, filter *model.ToolFilter, where []predicate.Tool) (int, error) {
	if len(where) == 1 && r.release != nil { // all active tools
		return r.release.ToolsTotal, nil
	}
	return r.count(filterKey(filter), func() (int, error) {
		text := searched(filter)
		if len(r.searches[text]) > mostFound && len(where) == 2 { // nothing but a search
			return r.countFound(ctx, text)
		}
		if !hasIndex(filter) {
			where = r.scanned(where)
		}
		return r.client.Tool.Query().Where(where...).Count(ctx)
	})
}

// listed chooses how SQLite finds the first of a filtered list. It walks the
// index of the order where that has the filter's own column, or takes the few
// tools that the filter's index finds; or else it goes through the table.
func (r *reading) listed(filter *model.ToolFilter, where []predicate.Tool, o order, few bool) []predicate.Tool {
	if len(where) == 1 || inOneCategory(filter) || hasIndex(filter) && (few || o.narrowedBy(filter)) {
		return where
	}
	return r.scanned(where)
}

func (r *reading) toolSlice(ctx context.Context, filter *model.ToolFilter, sl *slice, s selection) (*model.ToolConnection, error) {
	where, err := r.where(ctx, filter)
	if err != nil {
		return nil, err
	}
	c, err := connect(s, sl, connected[*ent.Tool, *model.Tool, *model.ToolEdge]{
		count: func() (int, error) { return r.countTools(ctx, filter, where) },
		read: func(asked selection) ([]*ent.Tool, error) {
			return r.sliceOfTools(ctx, r.listed(filter, where, sl.order, false), sl, asked)
		},
		fill:   func(rows []*ent.Tool, asked selection) ([]*model.Tool, error) { return r.fillTools(ctx, rows, asked) },
		cursor: func(row *ent.Tool) string { return sl.cursor(sl.order.keysOfTool(row)) },
		edge: func(cursor string, node *model.Tool) *model.ToolEdge {
			return &model.ToolEdge{Cursor: cursor, Node: node}
		},
	})
	return &model.ToolConnection{Edges: c.edges, Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total}, err
}

// sliceOfTools reads one row more than the slice holds, to see whether any follow.
func (r *reading) sliceOfTools(ctx context.Context, where []predicate.Tool, sl *slice, asked selection) ([]*ent.Tool, error) {
	o, start, end := sl.direction(), sl.after, sl.before
	if sl.backward {
		start, end = end, start
	}
	if end != nil {
		where = append(where[:len(where):len(where)], o.reversed().past(end))
	}
	q := toolQuery{columns: columnsFor(asked, sl.order.columns()...), where: where, order: o, limit: sl.size + 1}
	switch {
	case start == nil:
		return r.toolRows(ctx, q)
	case o[0].column != tool.FieldUntested:
		return r.toolRows(ctx, q.also(o.past(start)))
	}
	// Tools with a score and those without are read apart: no index leads to a
	// place that either of them may be behind.
	untested, _ := start[0].(bool)
	rows, err := r.toolRows(ctx, q.also(untestedIs(untested), o[1:].past(start[1:])))
	if err != nil || len(rows) == q.limit || untested != o[0].desc {
		return rows, err
	}
	q.limit -= len(rows)
	others, err := r.toolRows(ctx, q.also(untestedIs(!untested)))
	return append(rows, others...), err
}

// slugsOf are the slugs of tools, for what is found by them.
func slugsOf(rows []*ent.Tool) []string {
	return mapped(rows, func(row *ent.Tool) string { return row.ID })
}
