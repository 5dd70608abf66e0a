package graph

import (
	"context"
	"fmt"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/problem"
)

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	r := readerFrom(ctx)
	return r.readCategories(ctx, r.release.Categories, selected(ctx))
}

func (queryResolver) Category(ctx context.Context, slug string) (*model.Category, error) {
	r := readerFrom(ctx)
	return bySlug(ctx, slug, r.release.Category, r.readCategories)
}

// Tools returns the list that was read for this field of the operation.
func (categoryResolver) Tools(ctx context.Context, c *model.Category, _ model.ToolSort, _ int) ([]*model.Tool, error) {
	return nestedOf[[]*model.Tool](ctx, categoryID(c.Slug))
}

// ToolConnection returns the connection that was read for this field.
func (categoryResolver) ToolConnection(
	ctx context.Context, c *model.Category, _ model.ToolSort, _ *int, _ *string, _ *int, _ *string,
) (*model.ToolConnection, error) {
	return nestedOf[*model.ToolConnection](ctx, categoryID(c.Slug))
}

// categoriesOf returns the categories of tools, by slug.
func (r *reader) categoriesOf(
	ctx context.Context, tools []*release.Tool, s selection,
) (map[string]*model.Category, error) {
	slugs := distinct(mapSlice(tools, func(t *release.Tool) string { return t.Category }))
	categories, err := r.readCategories(ctx, mapSlice(slugs, r.release.Category), s)
	bySlug := make(map[string]*model.Category, len(categories))
	for _, c := range categories {
		bySlug[c.Slug] = c
	}
	return bySlug, err
}

var categoryTypes = []string{"Category", "Node"}

// readCategories returns categories and reads their selected tools.
func (r *reader) readCategories(
	ctx context.Context, categories []*release.Category, s selection,
) ([]*model.Category, error) {
	s = s.as(categoryTypes)
	if len(categories) == 0 {
		return nil, nil
	}
	for _, field := range s.named("tools", "toolConnection") {
		if err := r.readCategoryTools(ctx, categories, field, s.within(field)); err != nil {
			return nil, err
		}
	}
	return mapSlice(categories, func(c *release.Category) *model.Category {
		return &model.Category{
			Category: c, ID: r.pin(categoryID(c.Slug)), AvgScoreOrZero: orZero(c.AvgScore),
		}
	}), nil
}

// readCategoryTools reads the tools of each category for one field.
func (r *reader) readCategoryTools(
	ctx context.Context, categories []*release.Category, field graphql.CollectedField, within selection,
) error {
	sort := model.ToolSort(fmt.Sprint(field.ArgumentMap(within.op.Variables)["sort"]))
	if sort == model.ToolSortRelevance {
		return inField(field, problem.New(problem.BadInput,
			"sort: relevance requires a search, which the tools of a category do not support."))
	}
	limit := math.MaxInt
	if field.Name == "tools" {
		var err error
		if limit, err = within.limit(field, maxNestedTools); err != nil {
			return err
		}
	}
	of := r.release.InCategories(orderOf(sort), categories, limit)
	parents := mapSlice(categories, func(c *release.Category) string { return categoryID(c.Slug) })
	lists := mapSlice(categories, func(c *release.Category) *list[*release.Tool, *model.Tool] {
		return &list[*release.Tool, *model.Tool]{
			name: toolListName(sort), items: of[c.Slug], order: orderOf(sort), nodes: r.readTools,
		}
	})
	return readNested(ctx, r, field, within, parents, lists, toolConnection)
}
