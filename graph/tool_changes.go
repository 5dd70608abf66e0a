package graph

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"

	"palmares/ent/journalentry"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
)

// Changes returns the connection that was read for this field.
func (toolResolver) Changes(ctx context.Context, t *model.Tool, _ []model.ChangeType, _ *int, _ *string, _ *int, _ *string) (*model.ChangeConnection, error) {
	return nestedOf[*model.ChangeConnection](ctx, toolID(t.Slug))
}

// Changes returns the connection that was read for this field.
func (retiredToolResolver) Changes(ctx context.Context, t *model.RetiredTool, _ []model.ChangeType, _ *int, _ *string, _ *int, _ *string) (*model.ChangeConnection, error) {
	return nestedOf[*model.ChangeConnection](ctx, toolID(t.Slug))
}

// toolChangesBytes limits the size of the changes of all tools in one place, because
// reviews may be long. Each tool gets at least one change.
const toolChangesBytes = 8 << 20

// readToolChanges reads a part of the changes to each tool for one field.
func (r *reader) readToolChanges(ctx context.Context, tools []*release.Tool, field graphql.CollectedField, within selection) error {
	arguments := field.ArgumentMap(within.op.Variables)
	p := pagingOf(arguments)
	after, before, limit, err := p.events()
	if err != nil {
		return inField(field, err)
	}
	slugs := distinct(mapSlice(tools, func(t *release.Tool) string { return t.Slug }))
	query := toolEvents{slugs: slugs, types: toolEventTypes(arguments["types"]), newer: before, older: after, limit: limit, fromOldest: p.last != nil}
	query.withBytes = within.of("nodes").with(within.of("edges").of("node")).as(changeTypes).has(statesOfChange...) || within.has("events")
	numbers, more, err := query.read(ctx, r)
	if err != nil {
		return err
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
		return slices.DeleteFunc(slices.Clone(journal.ToolEvents), func(event string) bool { return !slices.Contains(given, any(string(changeType(event)))) })
	default: // a single value stands for a list of one
		return toolEventTypes([]any{given})
	}
}

// toolEvents selects events of several tools.
type toolEvents struct {
	slugs, types []string
	older, newer int // than these events; any if 0
	limit        int // for each tool
	fromOldest   bool
	withBytes    bool // the states are read too
}

// read returns the numbers of each tool's events, newest first, and whether it
// has more.
func (q toolEvents) read(ctx context.Context, r *reader) (numbers map[string][]int, more map[string]bool, err error) {
	numbers, more = map[string][]int{}, map[string]bool{}
	if len(q.types) == 0 {
		return numbers, more, nil
	}
	statement, args := q.statement(r)
	bytes := toolChangesBytes
	err = store.ScanRows(ctx, r.database(), func(rows *sql.Rows) error {
		var slug string
		var number, size int
		if err := rows.Scan(&number, &slug, &size); err != nil {
			return err
		}
		if known := len(numbers[slug]); more[slug] || known == q.limit || known > 0 && bytes < size {
			more[slug] = true
			return nil
		}
		bytes -= size
		numbers[slug] = append(numbers[slug], number)
		return nil
	}, statement, args...)
	if q.fromOldest {
		for _, of := range numbers {
			slices.Reverse(of)
		}
	}
	return numbers, more, err
}

// ofTypes selects events of the given types, which must not come from a caller. The
// expression hides the column from SQLite's planner, which would otherwise read all
// events of these types instead of those of a few tools.
func ofTypes(types []string) *entsql.Predicate {
	return entsql.ExprP("coalesce(" + journalentry.FieldEvent + ", '') IN ('" + strings.Join(types, "', '") + "')")
}

// statement returns the SQL that numbers the events of each tool and selects one
// more than the limit.
func (q toolEvents) statement(r *reader) (string, []any) {
	condition := entsql.And(
		entsql.In(journalentry.FieldSlug, mapSlice(q.slugs, func(slug string) any { return slug })...),
		ofTypes(q.types),
		entsql.LTE(journalentry.FieldReleaseNumber, r.release.Number()),
	)
	if q.older > 0 {
		condition = entsql.And(condition, entsql.LT(journalentry.FieldID, q.older))
	}
	if q.newer > 0 {
		condition = entsql.And(condition, entsql.GT(journalentry.FieldID, q.newer))
	}
	order := journalentry.FieldID + " DESC"
	if q.fromOldest {
		order = journalentry.FieldID
	}
	bytes := "0"
	if q.withBytes {
		bytes = "coalesce(octet_length(" + journalentry.FieldBefore + "), 0) + coalesce(octet_length(" + journalentry.FieldAfter + "), 0)"
	}
	all := entsql.Dialect(r.dialect()).Select(journalentry.FieldID, journalentry.FieldSlug).From(entsql.Table(journalentry.Table)).Where(condition)
	all.AppendSelectExprAs(entsql.Raw(bytes), "bytes")
	all.AppendSelectExprAs(entsql.RowNumber().PartitionBy(journalentry.FieldSlug).OrderExpr(entsql.Expr(order)), "place")
	return entsql.Dialect(r.dialect()).Select(journalentry.FieldID, journalentry.FieldSlug, "bytes").From(all.As("events")).
		Where(entsql.LTE("place", q.limit+1)).OrderBy("place", journalentry.FieldSlug).Query()
}
