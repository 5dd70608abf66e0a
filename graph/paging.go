package graph

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// list is a list that is read by page or as a Relay connection.
type list[Item, Node any] struct {
	err    error  // why the list cannot be read
	name   string // identifies the list and its order in cursors
	items  []Item // all of them, in order
	places release.Places[Item]
	nodes  func([]Item) []Node
}

const maxPage = 1_000_000

const badCursor lang.Message = "%s must be a cursor from this list in the same sort order." // shown on pages too

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
	total := len(l.items)
	readerFrom(ctx).total = total
	meta := &model.PageInfoByNumber{Total: total, Page: number, Limit: limit, Pages: (total + limit - 1) / limit}
	start := min((number-1)*limit, total)
	return l.nodes(l.items[start:min(start+limit, total)]), meta, nil
}

// Scan is shared by executions that read the pages of a list one after another, so
// that the list is filtered and sorted only once. They may differ only in the part that
// they select.
type Scan struct {
	release  *release.Release
	lists    map[string]any // by the name of a root field in the response
	searches map[searched]release.Relevance
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

// connection returns the requested part as a Relay connection.
func (l *list[Item, Node]) connection(ctx context.Context, p paging) (c connection[Node], err error) {
	items, info, err := l.part(p)
	if err != nil {
		return c, err
	}
	c = connection[Node]{info: info, total: len(l.items), nodes: l.nodes(items)}
	c.setCursors(ctx, len(items), func(i int) string { return l.cursor(items[i]) })
	r := readerFrom(ctx)
	if r.total = c.total; info.HasNextPage && info.EndCursor != nil {
		r.next = *info.EndCursor
	}
	return c, nil
}

func (l *list[Item, Node]) cursor(item Item) string { return l.places.Cursor(l.name, item) }

// connectionOf returns the requested part of the list of an object that has siblings.
func connectionOf[Parent comparable, Item, Node any](
	ctx context.Context, siblings *model.Siblings[Parent], parent Parent, p paging,
	listOf func(Parent) *list[Item, Node],
) (c connection[Node], err error) {
	l := listOf(parent)
	items, info, err := l.part(p)
	if err != nil {
		return c, err
	}
	c = connection[Node]{info: info, total: len(l.items)}
	c.nodes = childrenOf(ctx, siblings, parent, func(sibling Parent) []Item {
		items, _, _ := listOf(sibling).part(p)
		return items
	}, l.nodes)
	c.setCursors(ctx, len(items), func(i int) string { return l.cursor(items[i]) })
	return c, nil
}

// paging is the part of a connection that is requested.
type paging struct {
	first  *int
	after  *string
	last   *int
	before *string
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
	compare, valid := l.places.Seek(l.name, text)
	if !valid {
		return 0, problem.New(problem.BadInput, string(badCursor), argument)
	}
	return sort.Search(len(l.items), func(i int) bool { return compare(l.items[i]) >= bound }), nil
}

// setCursors sets the cursors of a connection's items: of all of them only if the field
// being resolved selects edges.
func (c *connection[Node]) setCursors(ctx context.Context, count int, cursor func(int) string) {
	if count > 0 {
		start, end := cursor(0), cursor(count-1)
		c.info.StartCursor, c.info.EndCursor = &start, &end
	}
	if selects(ctx, "edges") {
		for i := range count {
			c.cursors = append(c.cursors, cursor(i))
		}
	}
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

// distinct sorts values and removes duplicates.
func distinct[V cmp.Ordered](values []V) []V {
	slices.Sort(values)
	return slices.Compact(values)
}

// bySlug returns the object with a slug, or nil.
func bySlug[Item, Node any](slug string, find func(slug string) *Item, create func([]*Item) []*Node) (*Node, error) {
	if err := params.CheckSlug("slug", slug); err != nil {
		return nil, err
	}
	if item := find(slug); item != nil {
		return create([]*Item{item})[0], nil
	}
	return nil, nil
}
