package model

import (
	"strconv"

	"palmares/internal/catalog/release"
)

// View is the release that an operation reads. Objects are made from it and read it
// when their fields are written.
type View struct {
	*release.Release
	Pinned bool // the operation selects its release, and identifiers include it
}

// Global identifiers are readable: a type, a slash and the slug or number. In an
// operation with @asOf, they also name the release, as in tool/plume@41, so that
// client caches keep releases apart. The identifiers of events never change. A tool has
// the same identifier when it is active and when it is retired.
const (
	ToolPrefix       = "tool/"
	CategoryPrefix   = "category/"
	ComparisonPrefix = "comparison/"
	ReleasePrefix    = "release/"
)

// ID returns the identifier of an object.
func (v *View) ID(prefix, key string) string {
	if !v.Pinned {
		return prefix + key
	}
	return prefix + key + "@" + strconv.Itoa(v.Number())
}

// Siblings are the objects that one place in an operation selects, such as the tools of
// a page. What a field reads from the database for one of them, it reads for all of them
// with one statement; and the objects that a field links them to are siblings again.
type Siblings[Item any] struct {
	*View
	Items []Item
	read  map[any]any
}

func newSiblings[Item any](v *View, items []Item) *Siblings[Item] {
	return &Siblings[Item]{View: v, Items: items, read: map[any]any{}}
}

// Once returns what a field needs of all siblings. It calls read the first time.
func Once[Item, Value any](s *Siblings[Item], field any, read func() (Value, error)) (Value, error) {
	if known, ok := s.read[field].(Value); ok {
		return known, nil
	}
	value, err := read()
	if err == nil {
		s.read[field] = value
	}
	return value, err
}

// made is Once for what is in memory.
func made[Item, Value any](s *Siblings[Item], field string, create func() Value) Value {
	value, _ := Once(s, field, func() (Value, error) { return create(), nil })
	return value
}
