package graph

import (
	"context"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const maxNestedTools = 50 // tools of a category

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	r := readerFrom(ctx)
	return r.Categories(r.Release.Categories), nil
}

func (queryResolver) Category(ctx context.Context, slug string) (*model.Category, error) {
	r := readerFrom(ctx)
	return bySlug(slug, r.Category, r.Categories)
}

// FormerSlugs returns the slugs that a category had before, newest first.
func (categoryResolver) FormerSlugs(ctx context.Context, c *model.Category) ([]string, error) {
	r := readerFrom(ctx)
	if r.Partial() {
		return nil, release.ErrPartial
	}
	former, err := model.Once(c.Siblings, "formerSlugs", func() (map[string][]string, error) { return r.FormerSlugs(), nil })
	return append([]string{}, former[c.Slug]...), err
}

func (categoryResolver) Tools(
	ctx context.Context, c *model.Category, filter *model.ToolFilter, sort model.ToolSort, limit int,
) ([]*model.Tool, error) {
	if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
		return nil, err
	}
	toolsOf, err := toolsByCategory(ctx, c, filter, sort, limit)
	if err != nil {
		return nil, err
	}
	return childrenOf(ctx, c.Siblings, c.Category, toolsOf, c.Siblings.Tools), nil
}

func (categoryResolver) ToolConnection(
	ctx context.Context, c *model.Category, filter *model.ToolFilter, sort model.ToolSort,
	first *int, after *string, last *int, before *string,
) (*model.ToolConnection, error) {
	toolsOf, err := toolsByCategory(ctx, c, filter, sort, math.MaxInt)
	if err != nil {
		return nil, err
	}
	connection, err := connectionOf(ctx, c.Siblings, c.Category, paging{first, after, last, before},
		func(c *release.Category) *list[*release.Tool, *model.Tool] {
			return readerFrom(ctx).listTools(sort, toolsOf(c))
		})
	return toolConnection(connection), err
}

// toolsByCategory returns a function for the first tools of a category in an order. All
// categories that are siblings need a single walk through the sorted tools.
func toolsByCategory(
	ctx context.Context, c *model.Category, filter *model.ToolFilter, sort model.ToolSort, limit int,
) (func(*release.Category) []*release.Tool, error) {
	if sort == model.ToolSortRelevance {
		return nil, problem.New(problem.BadInput,
			"sort: relevance is not supported by the tools of a category. Use tools with filter.categories instead.")
	}
	type walk struct{ field any }
	place := graphql.GetFieldContext(ctx).Field.Field
	of, err := model.Once(c.Siblings, walk{place}, func() (map[string][]*release.Tool, error) {
		conditions, err := readerFrom(ctx).toolFilter(filter)
		if err != nil {
			return nil, err
		}
		return c.Siblings.InCategories(orderOf(sort), conditions, c.Siblings.Items, limit), nil
	})
	return func(c *release.Category) []*release.Tool { return of[c.Slug] }, err
}
