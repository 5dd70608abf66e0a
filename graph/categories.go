package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	r := readerFrom(ctx)
	return r.index.categories, r.readCategoryTools(ctx, r.index.categories, selected(ctx))
}

func (queryResolver) Category(ctx context.Context, slug string) (*model.Category, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	c := r.index.category(slug)
	if c == nil {
		return nil, nil
	}
	return c, r.readCategoryTools(ctx, []*model.Category{c}, selected(ctx))
}

// Tools returns the list that was read for this place in the operation.
func (categoryResolver) Tools(ctx context.Context, c *model.Category, _ model.ToolSort, _ int) ([]*model.Tool, error) {
	tools, ok := readerFrom(ctx).categoryTools[categoryToolsKey{c.Slug, graphql.GetFieldContext(ctx).Field.Field}]
	if !ok {
		return nil, fmt.Errorf("the tools of category %s were not read", c.Slug)
	}
	return tools, nil
}

// category returns a category by its slug, or nil.
func (x *catalogIndex) category(slug string) *model.Category {
	i, ok := slices.BinarySearchFunc(x.categories, slug, func(c *model.Category, slug string) int { return strings.Compare(c.Slug, slug) })
	if !ok {
		return nil
	}
	return x.categories[i]
}

// categoriesOf returns the categories of tools, by slug.
func (r *reader) categoriesOf(ctx context.Context, positions []int, s selection) (map[string]*model.Category, error) {
	bySlug := map[string]*model.Category{}
	var categories []*model.Category
	for _, i := range positions {
		if slug := r.index.tools[i].category; bySlug[slug] == nil {
			bySlug[slug] = r.index.category(slug)
			categories = append(categories, bySlug[slug])
		}
	}
	return bySlug, r.readCategoryTools(ctx, categories, s)
}

// categoryToolsKey identifies one list of a category's tools by the place in the
// operation that selects it, with its own fields and arguments.
type categoryToolsKey struct {
	category string
	place    *ast.Field
}

// readCategoryTools reads the first tools of categories, for each place in the
// operation that selects them.
func (r *reader) readCategoryTools(ctx context.Context, categories []*model.Category, s selection) error {
	for _, field := range s.fields() {
		if field.Name != "tools" || len(categories) == 0 {
			continue
		}
		args := field.ArgumentMap(s.op.Variables)
		limit, _ := wholeNumber(args["limit"])
		if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
			return err
		}
		sort := model.ToolSort(fmt.Sprint(args["sort"]))
		if sort == model.ToolSortRelevance {
			return problem.New(problem.BadInput, "sort: relevance requires a search, which a category does not have.")
		}
		positions := r.index.firstTools(categories, sort, limit)
		tools, err := r.fillTools(ctx, positions, selection{op: s.op}.with(field.Selections))
		if err != nil {
			return err
		}
		for _, c := range categories {
			r.categoryTools[categoryToolsKey{c.Slug, field.Field}] = nil
		}
		for _, t := range tools {
			key := categoryToolsKey{t.CategorySlug, field.Field}
			r.categoryTools[key] = append(r.categoryTools[key], t)
		}
	}
	return nil
}

// firstTools returns the positions of the first tools of each category.
func (x *catalogIndex) firstTools(categories []*model.Category, sort model.ToolSort, limit int) (first []int) {
	wanted := make(map[string]int, len(categories)) // how many more, by category
	missing := 0
	for _, c := range categories {
		wanted[c.Slug] = min(limit, c.ToolCount)
		missing += wanted[c.Slug]
	}
	for _, i := range x.orders[sort]() {
		if missing == 0 {
			break
		}
		if category := x.tools[i].category; wanted[category] > 0 {
			wanted[category]--
			missing--
			first = append(first, i)
		}
	}
	return first
}
