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
)

func categoryModel(row *ent.Category) *model.Category {
	return &model.Category{
		Slug: row.ID, Label: row.Label, ToolCount: row.ToolCount, AvgScore: row.AvgScore, AvgScoreOrZero: orZero(row.AvgScore),
	}
}

func orZero(value *float64) float64 {
	if value == nil {
		return 0
	}
	return *value
}

// categories reads categories in the order of their slugs.
func (r *reading) categories(ctx context.Context, s selection, where ...predicate.Category) ([]*model.Category, error) {
	rows, err := r.client.Category.Query().Where(where...).Order(category.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	categories := mapped(rows, categoryModel)
	return categories, r.readCategoryTools(ctx, categories, s)
}

// category reads one; nil for an unknown one.
func (r *reading) category(ctx context.Context, slug string, s selection) (*model.Category, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	found, err := r.categories(ctx, s, category.ID(slug))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// categoriesOf reads the categories of tools, by slug.
func (r *reading) categoriesOf(ctx context.Context, rows []*ent.Tool, s selection) (map[string]*model.Category, error) {
	slugs := map[string]bool{}
	var distinct []string
	for _, row := range rows {
		if !slugs[row.CategorySlug] {
			slugs[row.CategorySlug] = true
			distinct = append(distinct, row.CategorySlug)
		}
	}
	found, err := r.categories(ctx, s, category.IDIn(distinct...))
	bySlug := make(map[string]*model.Category, len(found))
	for _, c := range found {
		bySlug[c.Slug] = c
	}
	return bySlug, err
}

// categoryToolsKey names one list of a category's tools by the place in the
// query that asks for it, with fields and arguments of its own.
type categoryToolsKey struct {
	category string
	place    *ast.Field
}

// firstTools is how a list is cut.
type firstTools struct {
	sort  model.ToolSort
	limit int
}

// readCategoryTools reads every list that the selection asks of the
// categories, for the resolver to find.
func (r *reading) readCategoryTools(ctx context.Context, categories []*model.Category, s selection) error {
	if len(categories) == 0 {
		return nil
	}
	for _, field := range s.fields() {
		if field.Name != "tools" {
			continue
		}
		args := field.ArgumentMap(s.op.Variables)
		limit, _ := wholeNumber(args["limit"])
		if err := checkRange("limit", limit, 1, maxNested); err != nil {
			return err
		}
		list := firstTools{model.ToolSort(fmt.Sprint(args["sort"])), limit}
		if err := r.readFirstTools(ctx, categories, list, field); err != nil {
			return err
		}
	}
	return nil
}

// readFirstTools reads the first tools of each category.
func (r *reading) readFirstTools(ctx context.Context, categories []*model.Category, list firstTools, field graphql.CollectedField) error {
	asked := selection{op: graphql.GetOperationContext(ctx)}.with(field.Selections)
	rows, err := r.firstRows(ctx, categories, list, asked)
	if err != nil {
		return err
	}
	tools, err := r.fillTools(ctx, rows, asked)
	if err != nil {
		return err
	}
	byCategory := make(map[string][]*model.Tool, len(categories))
	for _, t := range tools {
		byCategory[t.CategorySlug] = append(byCategory[t.CategorySlug], t)
	}
	for _, c := range categories {
		r.categoryTools[categoryToolsKey{c.Slug, field.Field}] = append([]*model.Tool{}, byCategory[c.Slug]...)
	}
	return nil
}

// toolsOfCategory finds what was read for the place that is being resolved.
func (r *reading) toolsOfCategory(ctx context.Context, category string) ([]*model.Tool, error) {
	tools, read := r.categoryTools[categoryToolsKey{category, graphql.GetFieldContext(ctx).Field.Field}]
	if !read {
		return nil, fmt.Errorf("the tools of category %s were not read", category)
	}
	return tools, nil
}

// firstRows walks the index of the order within each category, as far as the
// limit: ranking with a window function would read every tool.
func (r *reading) firstRows(ctx context.Context, categories []*model.Category, list firstTools, asked selection) ([]*ent.Tool, error) {
	places := make([]string, len(categories))
	args := make([]any, len(categories))
	for i, c := range categories {
		places[i], args[i] = fmt.Sprintf("$%d", i+1), c.Slug
	}
	o := toolOrders[list.sort]
	columns := columnsFor(asked, append(o.columns(), tool.FieldCategorySlug)...)
	first := func(columns string) string {
		return fmt.Sprintf("SELECT %s FROM tools AS f WHERE retired_at IS NULL AND category_slug = category ORDER BY %s LIMIT %d", columns, o.sql(), list.limit)
	}
	listed := strings.Join(columns, ", ")
	within := "CROSS JOIN LATERAL (" + first(listed) + ") AS t"
	if r.catalog.Dialect() == dialect.SQLite { // which has no LATERAL
		within = "JOIN tools AS t ON t.slug IN (" + first(tool.FieldID) + ")"
	}
	statement := fmt.Sprintf("SELECT %s FROM (SELECT slug AS category FROM categories WHERE slug IN (%s)) AS c %s ORDER BY category_slug, %s",
		listed, strings.Join(places, ", "), within, o.sql())
	return r.scanTools(ctx, toolQuery{columns: columns, limit: len(categories) * list.limit}, statement, args...)
}
