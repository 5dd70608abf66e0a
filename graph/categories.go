package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	r := readerFrom(ctx)
	return r.readCategories(ctx, r.release.Categories, selected(ctx))
}

func (queryResolver) Category(ctx context.Context, slug string) (*model.Category, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	c := r.release.Category(slug)
	if c == nil {
		return nil, nil
	}
	return first(r.readCategories(ctx, []*release.Category{c}, selected(ctx)))
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
		sort := model.ToolSort(fmt.Sprint(field.ArgumentMap(s.op.Variables)["sort"]))
		if sort == model.ToolSortRelevance {
			return nil, inField(field, problem.New(problem.BadInput,
				"sort: relevance requires a search, which the tools of a category do not support."))
		}
		read := r.readCategoryTools
		if field.Name == "toolConnection" {
			read = r.readCategoryConnections
		}
		if err := read(ctx, categories, sort, field, s.within(field)); err != nil {
			return nil, inField(field, err)
		}
	}
	return mapSlice(categories, func(c *release.Category) *model.Category {
		return &model.Category{
			ID: r.pin(categoryID(c.Slug)), Slug: c.Slug, Label: c.Label,
			ToolCount: c.ToolCount, AvgScore: c.AvgScore, AvgScoreOrZero: orZero(c.AvgScore),
		}
	}), nil
}

// readCategoryTools reads the first tools of categories for one field.
func (r *reader) readCategoryTools(
	ctx context.Context, categories []*release.Category, sort model.ToolSort,
	field graphql.CollectedField, within selection,
) error {
	limit, _ := document.WholeNumber(field.ArgumentMap(within.op.Variables)["limit"])
	if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
		return err
	}
	tools, err := r.readTools(ctx, r.firstTools(categories, sort, limit), within)
	if err != nil {
		return err
	}
	of := map[string][]*model.Tool{}
	for _, t := range tools {
		of[t.CategorySlug] = append(of[t.CategorySlug], t)
	}
	for _, c := range categories {
		r.setNested(field, categoryID(c.Slug), of[c.Slug])
	}
	return nil
}

// readCategoryConnections reads a part of the tools of each category for one
// field.
func (r *reader) readCategoryConnections(
	ctx context.Context, categories []*release.Category, sort model.ToolSort,
	field graphql.CollectedField, within selection,
) error {
	name, cursors := toolListName(sort), toolCursors(orderOf(sort))
	lists := make([]*list[*release.Tool, *model.Tool], len(categories))
	of := make(map[string]*list[*release.Tool, *model.Tool], len(categories))
	for i, c := range categories {
		lists[i] = &list[*release.Tool, *model.Tool]{name: name, cursors: cursors, nodes: r.readTools}
		of[c.Slug] = lists[i]
	}
	for _, t := range r.release.Sorted(orderOf(sort)) {
		if tools := of[t.Category]; tools != nil {
			tools.items = append(tools.items, t)
		}
	}
	found, err := connections(ctx, lists, pagingOf(field.ArgumentMap(within.op.Variables)), within)
	for i, c := range found {
		r.setNested(field, categoryID(categories[i].Slug), toolConnection(c))
	}
	return err
}

// firstTools returns the first tools of each category.
func (r *reader) firstTools(categories []*release.Category, sort model.ToolSort, limit int) (first []*release.Tool) {
	wanted := make(map[string]int, len(categories)) // number of missing tools by category
	missing := 0
	for _, c := range categories {
		wanted[c.Slug] = min(limit, c.ToolCount)
		missing += wanted[c.Slug]
	}
	for _, t := range r.release.Sorted(orderOf(sort)) {
		if missing == 0 {
			break
		}
		if wanted[t.Category] > 0 {
			wanted[t.Category]--
			missing--
			first = append(first, t)
		}
	}
	return first
}
