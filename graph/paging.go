package graph

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// order is a sequence of columns that ends in the slug, which breaks ties.
type order []orderKey

type orderKey struct {
	column string
	desc   bool
}

func (o order) columns() []string { return mapSlice(o, func(k orderKey) string { return k.column }) }

func (o order) reversed() order {
	return mapSlice(o, func(k orderKey) orderKey { return orderKey{k.column, !k.desc} })
}

// apply orders a query.
func (o order) apply(s *entsql.Selector) {
	for _, key := range o {
		if column := s.C(key.column); key.desc {
			s.OrderBy(entsql.Desc(column))
		} else {
			s.OrderBy(entsql.Asc(column))
		}
	}
}

// sql returns the order for an ORDER BY clause.
func (o order) sql() string {
	return strings.Join(mapSlice(o, func(k orderKey) string {
		if k.desc {
			return k.column + " DESC"
		}
		return k.column
	}), ", ")
}

// past selects the rows after a position: greater in the first column, or equal
// in it and greater in the next, and so on. Only the score of untested tools can
// be null, and among those the slug alone decides.
func (o order) past(position []any) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		var either, equal []*entsql.Predicate
		for i, key := range o {
			column := s.C(key.column)
			if position[i] == nil {
				equal = append(equal, entsql.IsNull(column))
				continue
			}
			further := entsql.GT(column, position[i])
			if key.desc {
				further = entsql.LT(column, position[i])
			}
			either = append(either, entsql.And(append(slices.Clone(equal), further)...))
			equal = append(equal, entsql.EQ(column, position[i]))
		}
		s.Where(entsql.Or(either...))
		// Redundant, but leads PostgreSQL to the position in its index.
		if first := s.C(o[0].column); position[0] != nil && o[0].desc {
			s.Where(entsql.LTE(first, position[0]))
		} else if position[0] != nil {
			s.Where(entsql.GTE(first, position[0]))
		}
	}
}

// window is the part of a list to read.
type window struct {
	order         order // the list's order, reversed if backward
	backward      bool
	limit, offset int

	total         int   // the length of the list, if it is known
	after, before []any // the positions around a connection; nil for none
	more          bool  // the list knows that more items follow
}

// bounds returns the positions around a window in the order of reading.
func (w *window) bounds() (start, end []any) {
	if w.backward {
		return w.before, w.after
	}
	return w.after, w.before
}

// list is a list of a root field, read by page or as a Relay connection.
type list[Row, Node any] struct {
	err    error  // why the list cannot be read
	name   string // identifies the list and its order in cursors
	order  order
	count  func() (int, error)
	rows   func(w *window, nodes selection) ([]Row, error)
	nodes  func(ctx context.Context, rows []Row, nodes selection) ([]Node, error)
	cursor func(Row) string
}

// page reads a numbered page.
func (l *list[Row, Node]) page(ctx context.Context, number, limit int) ([]Node, *model.PageInfoByNumber, error) {
	if err := cmp.Or(params.CheckRange("page", number, 1, maxPage), params.CheckRange("limit", limit, 1, maxPageSize), l.err); err != nil {
		return nil, nil, err
	}
	total, err := l.count()
	if err != nil {
		return nil, nil, err
	}
	s := selected(ctx)
	meta := &model.PageInfoByNumber{Total: total, Page: number, Limit: limit, Pages: (total + limit - 1) / limit}
	w := &window{order: l.order, limit: limit, offset: (number - 1) * limit, total: total}
	if w.offset >= total || !s.has("items") {
		return nil, meta, nil
	}
	// Read from the nearer end: skipping rows costs as much as reading them.
	if after := total - w.offset - limit; after < w.offset {
		w.order, w.backward = l.order.reversed(), true
		w.limit, w.offset = min(limit, total-w.offset), max(after, 0)
	}
	rows, err := l.rows(w, s.of("items"))
	if err != nil {
		return nil, nil, err
	}
	if w.backward {
		slices.Reverse(rows)
	}
	nodes, err := l.nodes(ctx, rows, s.of("items"))
	return nodes, meta, err
}

// connection holds what all types of connections have in common.
type connection[Node any] struct {
	nodes   []Node
	cursors []string
	info    *model.PageInfo
	total   int
}

// connection reads a Relay connection.
func (l *list[Row, Node]) connection(ctx context.Context, first *int, after *string, last *int, before *string) (c connection[Node], err error) {
	w := &window{order: l.order, limit: defaultPageSize}
	name := "first"
	switch {
	case first != nil && last != nil:
		return c, problem.New(problem.BadInput, "first and last cannot be used together.")
	case first != nil:
		w.limit = *first
	case last != nil:
		name, w.limit, w.backward, w.order = "last", *last, true, l.order.reversed()
	}
	if err := cmp.Or(params.CheckRange(name, w.limit, 0, maxPageSize), l.err); err != nil {
		return c, err
	}
	if w.after, err = l.decodeCursor("after", after); err != nil {
		return c, err
	}
	if w.before, err = l.decodeCursor("before", before); err != nil {
		return c, err
	}
	w.limit++ // the additional row shows whether more follow
	return l.readConnection(ctx, w, w.limit-1)
}

// readConnection reads at most size items of a window. The total is only counted
// if it is selected, and nodes are read once for both nodes and edges.
func (l *list[Row, Node]) readConnection(ctx context.Context, w *window, size int) (c connection[Node], err error) {
	s := selected(ctx)
	if s.has("totalCount") {
		if c.total, err = l.count(); err != nil {
			return c, err
		}
	}
	nodes := s.of("nodes").with(s.of("edges").of("node").sets...)
	rows, err := l.rows(w, nodes)
	if err != nil {
		return c, err
	}
	more := w.more || len(rows) > size
	rows = rows[:min(len(rows), size)]
	c.info = &model.PageInfo{HasNextPage: more, HasPreviousPage: w.after != nil}
	if w.backward {
		slices.Reverse(rows)
		c.info.HasNextPage, c.info.HasPreviousPage = w.before != nil, more
	}
	if c.cursors = mapSlice(rows, l.cursor); len(rows) > 0 {
		c.info.StartCursor, c.info.EndCursor = &c.cursors[0], &c.cursors[len(rows)-1]
	}
	c.nodes, err = l.nodes(ctx, rows, nodes)
	return c, err
}

// edge has the fields that gqlgen generates for every type of edge.
type edge[Node any] interface {
	~struct {
		Cursor string `json:"cursor"`
		Node   Node   `json:"node"`
	}
}

// edgesOf returns the edges of a connection.
func edgesOf[Edge edge[Node], Node any](c connection[Node]) []*Edge {
	edges := make([]*Edge, len(c.nodes))
	for i, node := range c.nodes {
		edges[i] = &Edge{Cursor: c.cursors[i], Node: node}
	}
	return edges
}

// cursor is the position of an item in one list and order.
type cursor struct {
	List     string `json:"l"`
	Position []any  `json:"p"`
}

const maxCursorLength = 2_000

func encodeCursor(list string, position []any) string {
	data, err := json.Marshal(cursor{list, position})
	if err != nil {
		panic(err) // a position only has numbers and strings
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeCursor checks that a cursor has the types of its order's columns,
// because its values go to the database.
func (l *list[Row, Node]) decodeCursor(argument string, text *string) ([]any, error) {
	if text == nil {
		return nil, nil
	}
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(*text)
	valid := err == nil && len(data) <= maxCursorLength && json.Unmarshal(data, &c) == nil &&
		c.List == l.name && len(c.Position) == len(l.order)
	for i := 0; valid && i < len(l.order); i++ {
		switch l.order[i].column {
		case "untested":
			_, valid = c.Position[i].(bool)
		case "score":
			_, isNumber := c.Position[i].(float64)
			valid = isNumber || c.Position[i] == nil && c.Position[0] == true
		case "price_amount":
			_, valid = c.Position[i].(float64)
		default:
			text, isText := c.Position[i].(string)
			valid = isText && checkText("", text, maxCursorLength) == nil
		}
	}
	if !valid {
		return nil, problem.New(problem.BadInput, "%s must be a cursor of this list in the same order.", argument)
	}
	return c.Position, nil
}

// distinct sorts values and removes duplicates.
func distinct(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// first returns the only item of a lookup by slug, or nil.
func first[T any](items []*T, err error) (*T, error) {
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return items[0], nil
}

// mapSlice converts each item of a slice.
func mapSlice[A, B any](items []A, convert func(A) B) []B {
	converted := make([]B, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}
