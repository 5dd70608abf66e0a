package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
)

// toolChanges are the numbers of the events of each tool, and whether it has more.
type toolChanges struct {
	numbers map[string][]int
	more    map[string]bool
	read    map[int]change
}

func (linksResolver[T]) Changes(
	ctx context.Context, t T, types []model.ChangeType, first *int, after *string, last *int, before *string,
) (*model.ChangeConnection, error) {
	p := paging{first, after, last, before}
	older, newer, limit, err := p.events()
	if err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	own := t.InCatalog()
	type place struct {
		field      any
		withStates bool // another place may spread the same field without them
	}
	key := place{graphql.GetFieldContext(ctx).Field.Field, selectsStates(ctx)}
	found, err := model.Once(own.Siblings, key, func() (c toolChanges, err error) {
		query := journal.ToolQuery{
			Types: toolEvents(types), Newer: newer, Older: older, Limit: limit, FromOldest: last != nil,
			WithStates: key.withStates,
		}
		if len(query.Types) > 0 {
			if c.numbers, c.more, err = r.journalOf(slugsOf(own.Siblings.Items)...).Events(ctx, query); err != nil {
				return c, err
			}
		}
		var all []int
		for _, slug := range slugsOf(own.Siblings.Items) {
			all = append(all, c.numbers[slug]...)
		}
		c.read, err = r.readChanges(ctx, all)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return r.changeConnection(ctx, p, found.numbers[own.Slug], found.more[own.Slug], found.read)
}

// toolEvents returns the types of tool events among the given ones; all for nil.
func toolEvents(types []model.ChangeType) []string {
	if types == nil {
		return journal.ToolEvents
	}
	return slices.DeleteFunc(slices.Clone(journal.ToolEvents), func(event string) bool {
		return !slices.Contains(types, model.NewChangeType(event))
	})
}
