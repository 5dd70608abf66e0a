package graph

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sort"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// list is a list that is read by page or as a Relay connection.
type list[Item comparable, Node any] struct {
	err   error  // why the list cannot be read
	name  string // identifies the list and its order in cursors
	items []Item // all of them, in order
	order order[Item]
	nodes func(ctx context.Context, items []Item, nodes selection) ([]Node, error)
}

// order converts between the items of a list and their positions, which remain valid
// when the item is removed.
type order[Item any] interface {
	Position(Item) []any
	// Seek returns a function that compares items with a position, or false if the
	// position is not one of this list.
	Seek(position []any) (compare func(Item) int, ok bool)
}

// checkPage rejects a page that no list has.
func checkPage(number, limit int) error {
	return cmp.Or(params.CheckRange("page", number, 1, maxPage),
		params.CheckRange("limit", limit, 1, document.MaxPageSize))
}

// page reads a numbered page.
func (l *list[Item, Node]) page(ctx context.Context, number, limit int) ([]Node, *model.PageInfoByNumber, error) {
	if err := cmp.Or(checkPage(number, limit), l.err); err != nil {
		return nil, nil, err
	}
	s, total := selected(ctx), len(l.items)
	readerFrom(ctx).total = total
	meta := &model.PageInfoByNumber{Total: total, Page: number, Limit: limit, Pages: (total + limit - 1) / limit}
	start := min((number-1)*limit, total)
	if start == total || !s.has("items") {
		return nil, meta, nil
	}
	nodes, err := l.nodes(ctx, l.items[start:min(start+limit, total)], s.of("items"))
	return nodes, meta, err
}

// Scan is shared by executions that read the pages of a list one after another, so
// that the list is filtered and sorted only once. They may differ only in page and
// limit.
type Scan struct {
	release *release.Release
	lists   map[string]any // by the name of a root field in the response
}

// found returns the items of a list at the root. It calls find the first time.
func found[Item any](ctx context.Context, r *reader, find func() ([]Item, error)) ([]Item, error) {
	if r.scan == nil {
		return find()
	}
	name := graphql.GetFieldContext(ctx).Field.Alias
	if known, ok := r.scan.lists[name].([]Item); ok {
		return known, nil
	}
	items, err := find()
	if err == nil {
		r.scan.lists[name] = items
	}
	return items, err
}

// connection holds what all types of connections have in common.
type connection[Node any] struct {
	nodes   []Node
	cursors []string // only for edges
	info    *model.PageInfo
	total   int
}

// connection reads a Relay connection.
func (l *list[Item, Node]) connection(
	ctx context.Context, first *int, after *string, last *int, before *string,
) (c connection[Node], err error) {
	found, err := connections(ctx, []*list[Item, Node]{l}, paging{first, after, last, before}, selected(ctx))
	if err != nil {
		return c, err
	}
	return found[0], nil
}

// connections reads the same part of several lists of the same kind, such as one
// for each parent: the nodes of all of them at once.
func connections[Item comparable, Node any](
	ctx context.Context, lists []*list[Item, Node], p paging, s selection,
) ([]connection[Node], error) {
	parts, found := make([][]Item, len(lists)), make([]connection[Node], len(lists))
	for i, l := range lists {
		var err error
		if parts[i], found[i].info, err = l.part(p); err != nil {
			return nil, err
		}
		found[i].total = len(l.items)
	}
	cursor := func(item Item) string { return encodeCursor(lists[0].name, lists[0].order.Position(item)) }
	return found, fillConnections(ctx, found, parts, cursor, lists[0].nodes, s)
}

// paging is the part of a connection that is requested.
type paging struct {
	first  *int
	after  *string
	last   *int
	before *string
}

// pagingOf returns the paging arguments of a connection below the root.
func pagingOf(arguments map[string]any) (p paging) {
	if n, ok := document.WholeNumber(arguments["first"]); ok {
		p.first = &n
	}
	if n, ok := document.WholeNumber(arguments["last"]); ok {
		p.last = &n
	}
	if text, ok := arguments["after"].(string); ok {
		p.after = &text
	}
	if text, ok := arguments["before"].(string); ok {
		p.before = &text
	}
	return p
}

// check returns the maximum number of items. It ignores empty cursors, because some
// clients cannot omit them.
func (p *paging) check() (limit int, err error) {
	if p.after != nil && *p.after == "" {
		p.after = nil
	}
	if p.before != nil && *p.before == "" {
		p.before = nil
	}
	name, limit := "first", document.DefaultPageSize
	switch {
	case p.first != nil && p.last != nil:
		return 0, problem.New(problem.BadInput, "first and last cannot be used together.")
	case p.first != nil:
		limit = *p.first
	case p.last != nil:
		name, limit = "last", *p.last
	}
	return limit, params.CheckRange(name, limit, 0, document.MaxPageSize)
}

// info returns the position of a part; more reports whether the limit cut off
// items.
func (p *paging) info(more bool) *model.PageInfo {
	if p.last != nil {
		return &model.PageInfo{HasPreviousPage: more, HasNextPage: p.before != nil}
	}
	return &model.PageInfo{HasNextPage: more, HasPreviousPage: p.after != nil}
}

// part returns the items of a connection.
func (l *list[Item, Node]) part(p paging) (items []Item, info *model.PageInfo, err error) {
	limit, err := p.check()
	if err := cmp.Or(err, l.err); err != nil {
		return nil, nil, err
	}
	start, end := 0, len(l.items)
	if p.after != nil {
		if start, err = l.seek("after", *p.after, 1); err != nil {
			return nil, nil, err
		}
	}
	if p.before != nil {
		if end, err = l.seek("before", *p.before, 0); err != nil {
			return nil, nil, err
		}
	}
	items = l.items[min(start, end):end]
	info = p.info(len(items) > limit)
	if p.last != nil {
		return items[max(0, len(items)-limit):], info, nil
	}
	return items[:min(limit, len(items))], info, nil
}

// seek returns the number of items whose comparison with a cursor is less than a
// bound: 0 for those before the cursor, 1 for those up to it.
func (l *list[Item, Node]) seek(argument, text string, bound int) (int, error) {
	position, valid := decodeCursor(text, l.name)
	var compare func(Item) int
	if valid {
		compare, valid = l.order.Seek(position)
	}
	if !valid {
		return 0, problem.New(problem.BadInput, string(badCursor), argument)
	}
	return sort.Search(len(l.items), func(i int) bool { return compare(l.items[i]) >= bound }), nil
}

// fillConnections adds the cursors and nodes of the parts of connections. It
// reads all nodes at once, for both nodes and edges, unless neither is selected.
func fillConnections[Item comparable, Node any](
	ctx context.Context, to []connection[Node], parts [][]Item, cursor func(Item) string,
	nodes func(context.Context, []Item, selection) ([]Node, error), s selection,
) error {
	edges := s.has("edges")
	for i, items := range parts {
		if edges {
			to[i].cursors = mapSlice(items, cursor)
		}
		if n := len(items); n > 0 {
			start, end := cursor(items[0]), cursor(items[n-1])
			to[i].info.StartCursor, to[i].info.EndCursor = &start, &end
		}
		to[i].nodes = make([]Node, len(items))
	}
	within := s.of("nodes").with(s.of("edges").of("node"))
	if len(within.sets) == 0 {
		return nil
	}
	found, err := readParts(ctx, parts, nodes, within)
	for i := range found {
		to[i].nodes = found[i]
	}
	return err
}

// readParts reads the nodes of parts of lists, each item once.
func readParts[Item comparable, Node any](
	ctx context.Context, parts [][]Item, read func(context.Context, []Item, selection) ([]Node, error), s selection,
) ([][]Node, error) {
	if len(parts) == 1 {
		nodes, err := read(ctx, parts[0], s)
		return [][]Node{nodes}, err
	}
	places := map[Item]int{}
	var all []Item
	for _, item := range slices.Concat(parts...) {
		if _, known := places[item]; !known {
			places[item] = len(all)
			all = append(all, item)
		}
	}
	nodes, err := read(ctx, all, s)
	if err != nil {
		return nil, err
	}
	return mapSlice(parts, func(items []Item) []Node {
		return mapSlice(items, func(item Item) Node { return nodes[places[item]] })
	}), nil
}

// readNested reads a list of each parent for one field: all of its items or, if the
// field is a connection, the requested part.
func readNested[Item comparable, Node, Connection any](
	ctx context.Context, r *reader, field graphql.CollectedField, within selection, parents []string,
	lists []*list[Item, Node], convert func(connection[Node]) Connection,
) error {
	if field.Definition.Type.Elem != nil {
		parts := mapSlice(lists, func(l *list[Item, Node]) []Item { return l.items })
		found, err := readParts(ctx, parts, lists[0].nodes, within)
		for i, nodes := range found {
			r.setNested(field, parents[i], nodes)
		}
		return inField(field, err)
	}
	found, err := connections(ctx, lists, pagingOf(field.ArgumentMap(within.op.Variables)), within)
	for i, c := range found {
		r.setNested(field, parents[i], convert(c))
	}
	return inField(field, err)
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
	edges := make([]*Edge, len(c.cursors))
	for i, cursor := range c.cursors {
		edges[i] = &Edge{Cursor: cursor, Node: c.nodes[i]}
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

func decodeCursor(text, list string) (position []any, ok bool) {
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	ok = err == nil && len(data) <= maxCursorLength && json.Unmarshal(data, &c) == nil && c.List == list
	for _, value := range c.Position {
		if text, isText := value.(string); isText {
			ok = ok && params.IsText(text)
		}
	}
	return c.Position, ok
}

// distinct sorts values and removes duplicates.
func distinct[V cmp.Ordered](values []V) []V {
	slices.Sort(values)
	return slices.Compact(values)
}

// bySlug returns the object with a slug, or nil.
func bySlug[Item, Node any](
	ctx context.Context, slug string, find func(slug string) *Item,
	read func(context.Context, []*Item, selection) ([]*Node, error),
) (*Node, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	item := find(slug)
	if item == nil {
		return nil, nil
	}
	nodes, err := read(ctx, []*Item{item}, selected(ctx))
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// mapSlice converts each item of a slice.
func mapSlice[A, B any](items []A, convert func(A) B) []B {
	converted := make([]B, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}
