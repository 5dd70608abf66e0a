package release

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Places are the places of items in a list. They remain valid when an item is removed.
type Places[Item any] struct {
	// Of returns the place of an item: truth values, numbers, which may be nil, and texts.
	// The list is sorted by the first one, then by the second, and so on.
	Of         func(Item) []any
	like       []any // values of the same types
	descending int   // which of them is in descending order; -1 for none
}

// Seek returns a function that compares items with a place, or false if the list cannot
// have this place.
func (p Places[Item]) Seek(place []any) (compare func(Item) int, ok bool) {
	valid := slices.EqualFunc(place, p.like, func(value, like any) bool {
		_, isNumber := like.(float64)
		return reflect.TypeOf(value) == reflect.TypeOf(like) || value == nil && isNumber
	})
	return func(item Item) int {
		for i, value := range p.Of(item) {
			c := compareValues(value, place[i])
			if i == p.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}, valid
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
