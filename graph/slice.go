package graph

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"palmares/graph/model"
	"palmares/internal/core/problem"
)

// slice is what a Relay connection is asked for, checked.
type slice struct {
	list     string // which list and order: a cursor is good for its own only
	order    order
	size     int
	backward bool
	after    []any // positions; nil for none
	before   []any
	more     bool // there is more than was read, if the list tells so itself
}

func newSlice(list string, o order, first *int, after *string, last *int, before *string) (*slice, error) {
	s := &slice{list: list, order: o, size: defaultSlice}
	switch {
	case first != nil && last != nil:
		return nil, problem.New(problem.BadInput, "Give first or last, not both.")
	case first != nil:
		s.size = *first
	case last != nil:
		s.size, s.backward = *last, true
	}
	name := "first"
	if s.backward {
		name = "last"
	}
	if err := checkRange(name, s.size, 0, maxSlice); err != nil {
		return nil, err
	}
	var err error
	if s.after, err = s.position("after", after); err != nil {
		return nil, err
	}
	s.before, err = s.position("before", before)
	return s, err
}

// cursor is a place in a list: its position, and which list it is of.
type cursor struct {
	List     string `json:"l"`
	Position []any  `json:"p"`
}

func (s *slice) cursor(position []any) string {
	data, err := json.Marshal(cursor{s.list, position})
	if err != nil {
		panic(err) // a position is numbers and texts of ours
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

const maxCursor = 2_000

func (s *slice) position(name string, text *string) ([]any, error) {
	if text == nil {
		return nil, nil
	}
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(*text)
	if err != nil || len(data) > maxCursor || json.Unmarshal(data, &c) != nil || !s.fits(c) {
		return nil, problem.New(problem.BadInput, "%s: is not a cursor of this list and order.", name)
	}
	return c.Position, nil
}

// fits tells whether a cursor has the shape that its order has: what it holds
// goes to the database.
func (s *slice) fits(c cursor) bool {
	if c.List != s.list || len(c.Position) != len(s.order) {
		return false
	}
	for i, value := range c.Position {
		var ok bool
		switch columnKinds[s.order[i].column] {
		case kindFlag:
			_, ok = value.(bool)
		case kindNumber:
			_, ok = value.(float64)
			ok = ok || (value == nil && s.order[i].column == "score" && c.Position[0] == true)
		default:
			var text string
			text, ok = value.(string)
			ok = ok && checkText("", text, maxCursor) == nil
		}
		if !ok {
			return false
		}
	}
	return true
}

type columnKind int

const (
	kindText columnKind = iota
	kindNumber
	kindFlag
)

var columnKinds = map[string]columnKind{"untested": kindFlag, "score": kindNumber, "price_amount": kindNumber}

// ends cuts what was read, one item more than asked for, to the slice, puts it
// into the list's own order, and tells where it stands.
func ends[Row any](s *slice, rows []Row, cursorOf func(Row) string) ([]Row, *model.PageInfo) {
	more := s.more || len(rows) > s.size
	rows = rows[:min(len(rows), s.size)]
	info := &model.PageInfo{HasNextPage: more, HasPreviousPage: s.after != nil}
	if s.backward {
		slices.Reverse(rows)
		info.HasNextPage, info.HasPreviousPage = s.before != nil, more
	}
	if len(rows) > 0 {
		start, end := cursorOf(rows[0]), cursorOf(rows[len(rows)-1])
		info.StartCursor, info.EndCursor = &start, &end
	}
	return rows, info
}

// direction is the order to read in.
func (s *slice) direction() order {
	if s.backward {
		return s.order.reversed()
	}
	return s.order
}

// numbered is a page of a list, to be read from whichever end is nearer: what
// an index must step over costs as much as what is read.
type numbered struct {
	order         order
	limit, offset int
	backward      bool
}

// pageOf is a numbered page in a list of a known length.
func pageOf(o order, total, page, limit int) numbered {
	offset := (page - 1) * limit
	p := numbered{order: o, limit: limit, offset: offset}
	if after := total - offset - limit; after < offset {
		p.order, p.backward = o.reversed(), true
		p.limit, p.offset = min(limit, total-offset), max(after, 0)
	}
	return p
}

// asOrdered puts what was read into the list's own order.
func asOrdered[Row any](p numbered, rows []Row) []Row {
	if p.backward {
		slices.Reverse(rows)
	}
	return rows
}

// meta says where a numbered page stands.
func meta(total, page, limit int) *model.PageInfoByNumber {
	return &model.PageInfoByNumber{Total: total, Page: page, Limit: limit, Pages: (total + limit - 1) / limit}
}
