package graph

import (
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/params"
)

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	return readerFrom(ctx).categories(ctx, selected(ctx))
}

func (queryResolver) Category(ctx context.Context, slug string) (*model.Category, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	return first(readerFrom(ctx).categories(ctx, selected(ctx), category.ID(slug)))
}

// Tools returns the list that was read for this place in the operation.
func (categoryResolver) Tools(ctx context.Context, c *model.Category, _ model.ToolSort, _ int) ([]*model.Tool, error) {
	tools, ok := readerFrom(ctx).categoryTools[categoryToolsKey{c.Slug, graphql.GetFieldContext(ctx).Field.Field}]
	if !ok {
		return nil, fmt.Errorf("the tools of category %s were not read", c.Slug)
	}
	return tools, nil
}

// categories reads categories and their selected tools, ordered by slug.
func (r *reader) categories(ctx context.Context, s selection, where ...predicate.Category) ([]*model.Category, error) {
	rows, err := r.client.Category.Query().Where(where...).Order(category.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	categories := mapSlice(rows, func(row *ent.Category) *model.Category {
		return &model.Category{
			Slug: row.ID, Label: row.Label, ToolCount: row.ToolCount, AvgScore: row.AvgScore, AvgScoreOrZero: orZero(row.AvgScore),
		}
	})
	if len(categories) == 0 {
		return categories, nil
	}
	for _, field := range s.fields() {
		if field.Name == "tools" {
			if err := r.readCategoryTools(ctx, categories, field, s); err != nil {
				return nil, err
			}
		}
	}
	return categories, nil
}

// categoriesOf reads the categories of tools, by slug.
func (r *reader) categoriesOf(ctx context.Context, rows []*ent.Tool, s selection) (map[string]*model.Category, error) {
	slugs := distinct(mapSlice(rows, func(row *ent.Tool) string { return row.CategorySlug }))
	found, err := r.categories(ctx, s, category.IDIn(slugs...))
	bySlug := make(map[string]*model.Category, len(found))
	for _, c := range found {
		bySlug[c.Slug] = c
	}
	return bySlug, err
}

// categoryToolsKey identifies one list of a category's tools by the place in the
// operation that selects it, with its own fields and arguments.
type categoryToolsKey struct {
	category string
	place    *ast.Field
}

// readCategoryTools reads the first tools of each category for one place in the
// operation.
func (r *reader) readCategoryTools(ctx context.Context, categories []*model.Category, field graphql.CollectedField, s selection) error {
	args := field.ArgumentMap(s.op.Variables)
	limit, _ := wholeNumber(args["limit"])
	if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
		return err
	}
	nodes := selection{op: s.op}.with(field.Selections)
	rows, err := r.firstTools(ctx, categories, toolOrders[model.ToolSort(fmt.Sprint(args["sort"]))], limit, nodes)
	if err != nil {
		return err
	}
	tools, err := r.fillTools(ctx, rows, nodes)
	if err != nil {
		return err
	}
	byCategory := make(map[string][]*model.Tool, len(categories))
	for _, t := range tools {
		byCategory[t.CategorySlug] = append(byCategory[t.CategorySlug], t)
	}
	for _, c := range categories {
		r.categoryTools[categoryToolsKey{c.Slug, field.Field}] = byCategory[c.Slug]
	}
	return nil
}

// firstTools walks the index of the order within each category up to the limit.
// A window function would read every tool.
func (r *reader) firstTools(ctx context.Context, categories []*model.Category, o order, limit int, nodes selection) ([]*ent.Tool, error) {
	places := make([]string, len(categories))
	args := make([]any, len(categories))
	for i, c := range categories {
		places[i], args[i] = fmt.Sprintf("$%d", i+1), c.Slug
	}
	columns := toolFields.columnsFor(nodes, append(o.columns(), tool.FieldCategorySlug)...)
	first := func(columns string) string {
		return fmt.Sprintf("SELECT %s FROM tools AS f WHERE retired_at IS NULL AND category_slug = category ORDER BY %s LIMIT %d", columns, o.sql(), limit)
	}
	columnList := strings.Join(columns, ", ")
	join := "CROSS JOIN LATERAL (" + first(columnList) + ") AS t"
	if r.catalog.Dialect() == dialect.SQLite { // which has no LATERAL
		join = "JOIN tools AS t ON t.slug IN (" + first(tool.FieldID) + ")"
	}
	statement := fmt.Sprintf("SELECT %s FROM (SELECT slug AS category FROM categories WHERE slug IN (%s)) AS c %s ORDER BY category_slug, %s",
		columnList, strings.Join(places, ", "), join, o.sql())
	return r.scanTools(ctx, columns, len(categories)*limit, statement, args...)
}
