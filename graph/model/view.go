package model

import (
	"strconv"
	"strings"

	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
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

// ParseID splits an identifier into its prefix and a slug or number. If it names a release,
// this must be the one that is read.
func (v *View) ParseID(argument, id string) (prefix, key string, err error) {
	plain, pinned, _ := strings.Cut(id, "@")
	if _, ok := release.ParseNumber(pinned); !ok || strings.HasPrefix(id, journal.IDPrefix) {
		plain = id
	} else if !v.Pinned || pinned != strconv.Itoa(v.Number()) {
		return "", "", problem.New(problem.BadInput,
			"%s: %q is an object of release %s. "+
				"Add @asOf(release: %[3]s) to the operation, or remove @%[3]s from the identifier.",
			argument, params.Truncate(id), pinned)
	}
	prefix, key, ok := parseID(plain)
	if !ok {
		return "", "", problem.New(problem.BadInput,
			"%s: %q is not an identifier. Valid identifiers are tool/<slug>, category/<slug>, comparison/<slug>, "+
				"release/<number> and evt_<number>.",
			argument, params.Truncate(id))
	}
	return prefix, key, nil
}

// parseID splits an identifier without a release.
func parseID(id string) (prefix, key string, ok bool) {
	if number, isEvent := journal.ParseID(id); isEvent {
		return journal.IDPrefix, strconv.Itoa(number), true
	}
	prefix, key, _ = strings.Cut(id, "/")
	prefix += "/"
	switch prefix {
	case ToolPrefix, CategoryPrefix, ComparisonPrefix:
		ok = key != "" && !strings.Contains(key, "@")
	case ReleasePrefix:
		_, ok = release.ParseNumber(key)
	}
	return prefix, key, ok
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

// Map converts each item of a slice.
func Map[A, B any](items []A, convert func(A) B) []B {
	converted := make([]B, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}

// OrNil returns nil for an empty text.
func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
