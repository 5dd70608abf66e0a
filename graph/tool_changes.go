package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
)

// readToolChanges reads a part of the changes to each tool for one field.
func (r *reader) readToolChanges(
	ctx context.Context, tools []*release.Tool, field graphql.CollectedField, within selection,
) error {
	arguments := field.ArgumentMap(within.op.Variables)
	p := pagingOf(arguments)
	after, before, limit, err := p.events()
	if err != nil {
		return inField(field, err)
	}
	slugs := distinct(mapSlice(tools, func(t *release.Tool) string { return t.Slug }))
	query := journal.ToolQuery{
		Types: toolEventTypes(arguments["types"]), Newer: before, Older: after, Limit: limit, FromOldest: p.last != nil,
		WithStates: within.of("nodes").with(within.of("edges").of("node")).hasStates() || within.has("events"),
	}
	var numbers map[string][]int
	var more map[string]bool
	if len(query.Types) > 0 {
		if numbers, more, err = r.journalOf(slugs).Events(ctx, query); err != nil {
			return err
		}
	}
	infos := mapSlice(slugs, func(slug string) *model.PageInfo { return p.info(more[slug]) })
	parts := mapSlice(slugs, func(slug string) []int { return numbers[slug] })
	found, err := r.changeConnections(ctx, infos, parts, p.after, within)
	if err != nil {
		return err
	}
	for i, slug := range slugs {
		r.setNested(field, toolID(slug), found[i])
	}
	return nil
}

// toolEventTypes returns the types of tool events that an argument selects.
func toolEventTypes(argument any) []string {
	switch given := argument.(type) {
	case nil:
		return journal.ToolEvents
	case []any:
		return slices.DeleteFunc(slices.Clone(journal.ToolEvents), func(event string) bool {
			return !slices.Contains(given, any(string(changeType(event))))
		})
	default: // a single value stands for a list of one
		return toolEventTypes([]any{given})
	}
}
