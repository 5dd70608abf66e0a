package graph

import (
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/cache"
)

// A page deep in a long list would step over everything before it. So a list
// that is read deep down gets waypoints, once for each release, filter and
// order: the places of every thousandth tool, to step on from.

// stride is from one waypoint to the next.
const stride = 1_000

// waypointsKey names the waypoints of a list.
type waypointsKey struct {
	filter string
	sort   model.ToolSort
}

func (k waypointsKey) question() cache.Question {
	return cache.Question{Operation: k.filter, Variables: string(k.sort)}
}

// deepPage is a numbered page of tools, read from the nearest waypoint, or
// from the end of the list that is near.
func (r *reading) deepPage(ctx context.Context, filter *model.ToolFilter, where []predicate.Tool, sort model.ToolSort, total, page, limit int) (toolQuery, error) {
	near := toolQuery{where: where}.at(pageOf(toolOrders[sort], total, page, limit))
	// SQLite steps over an index faster than it finds its way back into one.
	if near.offset <= stride || r.release == nil || r.catalog.Dialect() == dialect.SQLite {
		return near, nil
	}
	waypoints, err := r.waypoints(ctx, waypointsKey{filterKey(filter), sort}, where)
	if err != nil {
		return near, err
	}
	offset := (page - 1) * limit
	behind := min(offset/stride, len(waypoints))
	if behind == 0 {
		return near, nil
	}
	o := toolOrders[sort]
	on := append(where[:len(where):len(where)], o.past(waypoints[behind-1]))
	return toolQuery{where: on, order: o, limit: limit, offset: offset - behind*stride}, nil
}

func (r *reading) waypoints(ctx context.Context, key waypointsKey, where []predicate.Tool) ([][]any, error) {
	if known, ok := r.executor.waypoints.Get(r.edition, key.question()); ok {
		return known, nil
	}
	o := toolOrders[key.sort]
	numbered := entsql.Dialect(r.catalog.Dialect()).Select(o.columns()...).From(entsql.Table(tool.Table))
	for _, keep := range where {
		keep(numbered)
	}
	numbered.AppendSelectExprAs(entsql.Raw("row_number() OVER (ORDER BY "+o.sql()+")"), "place")
	all, args := numbered.Query()
	statement := fmt.Sprintf("SELECT %s FROM (%s) AS numbered WHERE place %% %d = 0 ORDER BY place", strings.Join(o.columns(), ", "), all, stride)
	rows, err := r.scanTools(ctx, toolQuery{columns: o.columns()}, statement, args...)
	if err != nil {
		return nil, err
	}
	found := mapped(rows, func(row *ent.Tool) []any { return o.keysOfTool(row) })
	if r.passed == nil {
		r.passed = map[waypointsKey][][]any{}
	}
	r.passed[key] = found
	return found, nil
}
