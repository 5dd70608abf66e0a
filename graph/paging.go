package graph

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"

	"palmares/ent/tool"
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

// orderColumn is a column that tools are ordered by.
type orderColumn struct {
	compare func(a, b *indexedTool) int
	value   func(*indexedTool) any       // for cursors
	set     func(*indexedTool, any) bool // from a cursor; reports whether the value is valid
}

func textColumn(field func(*indexedTool) *string) orderColumn {
	return orderColumn{
		compare: func(a, b *indexedTool) int { return strings.Compare(*field(a), *field(b)) },
		value:   func(t *indexedTool) any { return *field(t) },
		set: func(t *indexedTool, value any) bool {
			text, ok := value.(string)
			*field(t) = text
			return ok && checkText("", text, maxCursorLength) == nil
		},
	}
}

func numberColumn(field func(*indexedTool) *float64) orderColumn {
	return orderColumn{
		compare: func(a, b *indexedTool) int { return cmp.Compare(*field(a), *field(b)) },
		value: func(t *indexedTool) any {
			if math.IsNaN(*field(t)) {
				return nil
			}
			return *field(t)
		},
		set: func(t *indexedTool, value any) bool {
			number, ok := value.(float64)
			if *field(t) = number; value == nil {
				*field(t) = math.NaN()
			}
			return ok || value == nil
		},
	}
}

var orderColumns = map[string]orderColumn{
	tool.FieldID:          textColumn(func(t *indexedTool) *string { return &t.slug }),
	tool.FieldNameKey:     textColumn(func(t *indexedTool) *string { return &t.nameKey }),
	tool.FieldUpdatedAt:   textColumn(func(t *indexedTool) *string { return &t.updatedAt }),
	tool.FieldRetiredAt:   textColumn(func(t *indexedTool) *string { return &t.retiredAt }),
	tool.FieldScore:       numberColumn(func(t *indexedTool) *float64 { return &t.score }),
	tool.FieldPriceAmount: numberColumn(func(t *indexedTool) *float64 { return &t.price }),
	tool.FieldUntested: {
		compare: func(a, b *indexedTool) int {
			switch ofA, ofB := math.IsNaN(a.score), math.IsNaN(b.score); {
			case ofA == ofB:
				return 0
			case ofB:
				return -1
			}
			return 1
		},
		value: func(t *indexedTool) any { return math.IsNaN(t.score) },
		set:   func(_ *indexedTool, value any) bool { _, ok := value.(bool); return ok }, // the score says the same
	},
}

// comparison returns a function that returns which of two tools comes first.
func (o order) comparison() func(a, b *indexedTool) int {
	columns := mapSlice(o, func(key orderKey) orderColumn { return orderColumns[key.column] })
	return func(a, b *indexedTool) int {
		for i, column := range columns {
			if c := column.compare(a, b); c != 0 && o[i].desc {
				return -c
			} else if c != 0 {
				return c
			}
		}
		return 0
	}
}

// toolCursors returns how the cursors of an order are written and compared.
func (x *catalogIndex) toolCursors(o order) cursors[int] {
	return cursors[int]{
		position: func(i int) []any {
			return mapSlice(o, func(key orderKey) any { return orderColumns[key.column].value(x.tools[i]) })
		},
		compare: func(position []any) (func(int) int, bool) {
			var at indexedTool
			for i, key := range o {
				if !orderColumns[key.column].set(&at, position[i]) {
					return nil, false
				}
			}
			compare := o.comparison()
			return func(i int) int { return compare(x.tools[i], &at) }, true
		},
		length: len(o),
	}
}

// list is a list of a root field, read by page or as a Relay connection.
type list[Item, Node any] struct {
	err     error  // why the list cannot be read
	name    string // identifies the list and its order in cursors
	items   []Item // all of them, in order
	cursors cursors[Item]
	nodes   func(ctx context.Context, items []Item, nodes selection) ([]Node, error)
}

// cursors translates between the items of a list and their positions, which
// remain valid when the item is removed.
type cursors[Item any] struct {
	length   int // of a position
	position func(Item) []any
	// compare returns a function that compares items with a position, or false if
	// the position has values of the wrong types.
	compare func(position []any) (compare func(Item) int, ok bool)
}

// page reads a numbered page.
func (l *list[Item, Node]) page(ctx context.Context, number, limit int) ([]Node, *model.PageInfoByNumber, error) {
	if err := cmp.Or(params.CheckRange("page", number, 1, maxPage), params.CheckRange("limit", limit, 1, maxPageSize), l.err); err != nil {
		return nil, nil, err
	}
	s, total := selected(ctx), len(l.items)
	meta := &model.PageInfoByNumber{Total: total, Page: number, Limit: limit, Pages: (total + limit - 1) / limit}
	start := min((number-1)*limit, total)
	if start == total || !s.has("items") {
		return nil, meta, nil
	}
	nodes, err := l.nodes(ctx, l.items[start:min(start+limit, total)], s.of("items"))
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
func (l *list[Item, Node]) connection(ctx context.Context, first *int, after *string, last *int, before *string) (c connection[Node], err error) {
	name, limit := "first", defaultPageSize
	switch {
	case first != nil && last != nil:
		return c, problem.New(problem.BadInput, "first and last cannot be used together.")
	case first != nil:
		limit = *first
	case last != nil:
		name, limit = "last", *last
	}
	if err := cmp.Or(params.CheckRange(name, limit, 0, maxPageSize), l.err); err != nil {
		return c, err
	}
	start, end := 0, len(l.items)
	if after != nil {
		if start, err = l.seek("after", *after, 1); err != nil {
			return c, err
		}
	}
	if before != nil {
		if end, err = l.seek("before", *before, 0); err != nil {
			return c, err
		}
	}
	items := l.items[min(start, end):end]
	c.total, c.info = len(l.items), &model.PageInfo{HasNextPage: before != nil, HasPreviousPage: after != nil}
	if more := len(items) > limit; last != nil {
		items, c.info.HasPreviousPage = items[max(0, len(items)-limit):], more
	} else {
		items, c.info.HasNextPage = items[:min(limit, len(items))], more
	}
	err = readConnection(ctx, &c, items, func(item Item) string { return encodeCursor(l.name, l.cursors.position(item)) }, l.nodes)
	return c, err
}

// seek returns the number of items whose comparison with a cursor is less than a
// bound: 0 for those before the cursor, 1 for those up to it.
func (l *list[Item, Node]) seek(argument, text string, bound int) (int, error) {
	position, valid := decodeCursor(text, l.name, l.cursors.length)
	var compare func(Item) int
	if valid {
		compare, valid = l.cursors.compare(position)
	}
	if !valid {
		return 0, problem.New(problem.BadInput, "%s must be a cursor of this list in the same order.", argument)
	}
	return sort.Search(len(l.items), func(i int) bool { return compare(l.items[i]) >= bound }), nil
}

// readConnection reads the items of a connection: once for both nodes and edges.
func readConnection[Item, Node any](ctx context.Context, c *connection[Node], items []Item, cursor func(Item) string,
	nodes func(context.Context, []Item, selection) ([]Node, error),
) (err error) {
	s := selected(ctx)
	if c.cursors = mapSlice(items, cursor); len(items) > 0 {
		c.info.StartCursor, c.info.EndCursor = &c.cursors[0], &c.cursors[len(items)-1]
	}
	c.nodes, err = nodes(ctx, items, s.of("nodes").with(s.of("edges").of("node").sets...))
	return err
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

func decodeCursor(text, list string, length int) (position []any, ok bool) {
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	ok = err == nil && len(data) <= maxCursorLength && json.Unmarshal(data, &c) == nil && c.List == list && len(c.Position) == length
	return c.Position, ok
}

// distinct sorts values and removes duplicates.
func distinct[V cmp.Ordered](values []V) []V {
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
