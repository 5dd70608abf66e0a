package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Categories(ctx context.Context) ([]*model.Category, error) {
	r := readerFrom(ctx)
	return r.fillCategories(ctx, r.index.categories, selected(ctx))
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
	return first(r.fillCategories(ctx, []*model.Category{c}, selected(ctx)))
}

// Tools returns the list that was read for this field of the operation.
func (categoryResolver) Tools(ctx context.Context, c *model.Category, _ model.ToolSort, _ int) ([]*model.Tool, error) {
	return nestedOf[[]*model.Tool](ctx, categoryID(c.Slug))
}

// ToolConnection returns the connection that was read for this field.
func (categoryResolver) ToolConnection(ctx context.Context, c *model.Category, _ model.ToolSort, _ *int, _ *string, _ *int, _ *string) (*model.ToolConnection, error) {
	return nestedOf[*model.ToolConnection](ctx, categoryID(c.Slug))
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
	categories, err := r.fillCategories(ctx, categories, s)
	for _, c := range categories {
		bySlug[c.Slug] = c
	}
	return bySlug, err
}

var categoryTypes = []string{"Category", "Node"}

// fillCategories reads the selected tools of categories and returns the categories.
func (r *reader) fillCategories(ctx context.Context, categories []*model.Category, s selection) ([]*model.Category, error) {
	s = s.as(categoryTypes)
	if len(categories) == 0 {
		return categories, nil
	}
	for _, field := range s.named("tools", "toolConnection") {
		sort := model.ToolSort(fmt.Sprint(field.ArgumentMap(s.op.Variables)["sort"]))
		if sort == model.ToolSortRelevance {
			return nil, inField(field, problem.New(problem.BadInput, "sort: relevance requires a search, which the tools of a category do not support."))
		}
		read := r.readCategoryTools
		if field.Name == "toolConnection" {
			read = r.readCategoryConnections
		}
		if err := read(ctx, categories, sort, field, s.within(field)); err != nil {
			return nil, inField(field, err)
		}
	}
	if !r.pinned || !s.has("id") {
		return categories, nil
	}
	return mapSlice(categories, func(c *model.Category) *model.Category {
		pinned := *c // the index is shared by all operations
		pinned.ID = r.pin(c.ID)
		return &pinned
	}), nil
}

// readCategoryTools reads the first tools of categories for one field.
func (r *reader) readCategoryTools(ctx context.Context, categories []*model.Category, sort model.ToolSort, field graphql.CollectedField, within selection) error {
	limit, _ := wholeNumber(field.ArgumentMap(within.op.Variables)["limit"])
	if err := params.CheckRange("limit", limit, 1, maxNestedTools); err != nil {
		return err
	}
	tools, err := r.fillTools(ctx, r.index.firstTools(categories, sort, limit), within)
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
func (r *reader) readCategoryConnections(ctx context.Context, categories []*model.Category, sort model.ToolSort, field graphql.CollectedField, within selection) error {
	name, cursors := toolListName(sort), r.index.toolCursors(toolOrders[sort])
	lists := make([]*list[int, *model.Tool], len(categories))
	of := make(map[string]*list[int, *model.Tool], len(categories))
	for i, c := range categories {
		lists[i] = &list[int, *model.Tool]{name: name, cursors: cursors, nodes: r.fillTools}
		of[c.Slug] = lists[i]
	}
	for _, i := range r.index.orders[sort]() {
		if tools := of[r.index.tools[i].category]; tools != nil {
			tools.items = append(tools.items, i)
		}
	}
	found, err := connections(ctx, lists, pagingOf(field.ArgumentMap(within.op.Variables)), within)
	for i, c := range found {
		r.setNested(field, categoryID(categories[i].Slug), toolConnection(c))
	}
	return err
}

// firstTools returns the positions of the first tools of each category.
func (x *catalogIndex) firstTools(categories []*model.Category, sort model.ToolSort, limit int) (first []int) {
	wanted := make(map[string]int, len(categories)) // number of missing tools by category
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
