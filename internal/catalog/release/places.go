package release

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"palmares/internal/core/params"
)

// Places are the places of items in a list. They remain valid when an item is removed.
type Places[Item any] struct {
	// of returns the place of an item: truth values, numbers, which may be nil, and texts.
	// The list is sorted by the first one, then by the second, and so on.
	of         func(Item) []any
	like       []any // values of the same types
	descending int   // which of them is in descending order; -1 for none
}

// cursor is a place in one list and order, as clients have it.
type cursor struct {
	List  string `json:"l"`
	Place []any  `json:"p"`
}

const maxCursorLength = 2_000

// Cursor returns the place of an item as a text, for a list with a name.
func (p Places[Item]) Cursor(list string, item Item) string { return cursor{list, p.of(item)}.encode() }

func (c cursor) encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // a place only has truth values, numbers and texts
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeCursor(text, list string) (place []any, ok bool) {
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	ok = err == nil && len(data) <= maxCursorLength && json.Unmarshal(data, &c) == nil && c.List == list
	for _, value := range c.Place {
		if text, isText := value.(string); isText {
			ok = ok && params.IsText(text)
		}
	}
	return c.Place, ok
}

// Seek returns a function that compares items with the place of a cursor, or false if the
// cursor is not of this list.
func (p Places[Item]) Seek(list, text string) (compare func(Item) int, ok bool) {
	place, ok := decodeCursor(text, list)
	ok = ok && slices.EqualFunc(place, p.like, func(value, like any) bool {
		_, isNumber := like.(float64)
		return reflect.TypeOf(value) == reflect.TypeOf(like) || value == nil && isNumber
	})
	return func(item Item) int {
		for i, value := range p.of(item) {
			c := compareValues(value, place[i])
			if i == p.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}, ok
}

// compareValues compares two values of the same type.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case bool:
		if a == b.(bool) {
			return 0
		} else if a {
			return 1
		}
		return -1
	}
	x, _ := a.(float64)
	y, _ := b.(float64)
	return cmp.Compare(x, y)
}
