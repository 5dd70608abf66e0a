package graph

import (
	"context"
	"fmt"
	"strings"

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

// readFirstTools ranks the tools within each category, and reads the first.
func (r *reading) readFirstTools(ctx context.Context, categories []*model.Category, list firstTools, field graphql.CollectedField) error {
	ranked, err := r.firstSlugs(ctx, categories, list)
	if err != nil {
		return err
	}
	var all []string
	for _, slugs := range ranked {
		all = append(all, slugs...)
	}
	bySlug := map[string]*model.Tool{}
	if len(all) > 0 {
		asked := selection{op: graphql.GetOperationContext(ctx)}.with(field.Selections)
		found, err := r.tools(ctx, asked, toolQuery{where: []predicate.Tool{tool.IDIn(all...)}})
		if err != nil {
			return err
		}
		for _, t := range found {
			bySlug[t.Slug] = t
		}
	}
	for _, c := range categories {
		r.categoryTools[categoryToolsKey{c.Slug, field.Field}] = mapped(ranked[c.Slug], func(slug string) *model.Tool { return bySlug[slug] })
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

func (r *reading) firstSlugs(ctx context.Context, categories []*model.Category, list firstTools) (map[string][]string, error) {
	places := make([]string, len(categories))
	args := make([]any, len(categories))
	for i, c := range categories {
		places[i], args[i] = fmt.Sprintf("$%d", i+1), c.Slug
	}
	query := fmt.Sprintf(`SELECT category_slug, slug FROM (
		SELECT category_slug, slug, row_number() OVER (PARTITION BY category_slug ORDER BY %s) AS place
		FROM tools WHERE retired_at IS NULL AND category_slug IN (%s)
	) AS ranked WHERE place <= %d ORDER BY category_slug, place`, toolOrders[list.sort].sql(), strings.Join(places, ", "), list.limit)
	rows, err := r.catalog.Select(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ranked := map[string][]string{}
	for rows.Next() {
		var category, slug string
		if err := rows.Scan(&category, &slug); err != nil {
			return nil, err
		}
		ranked[category] = append(ranked[category], slug)
	}
	return ranked, rows.Err()
}
