package release

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"palmares/internal/core/params"
)

// Place is where an item is in a list. It remains valid when the item is removed.
type Place struct {
	Rank    int     `json:"r,omitzero"` // in a search
	Missing bool    `json:"m,omitzero"` // there is no number
	Number  float64 `json:"n,omitzero"`
	Text    string  `json:"t,omitzero"`
	Slug    string  `json:"s,omitzero"`
}

// compare returns how two places are ordered: by rank, by number or text, and by slug. Only
// numbers and texts can be in descending order; missing numbers are always the last.
func (a Place) compare(b Place, descending bool) int {
	if c := cmp.Compare(a.Rank, b.Rank); c != 0 {
		return c
	}
	if a.Missing != b.Missing {
		if a.Missing {
			return 1
		}
		return -1
	}
	c := cmp.Compare(a.Number, b.Number)
	if c == 0 {
		c = strings.Compare(a.Text, b.Text)
	}
	if descending {
		c = -c
	}
	return cmp.Or(c, strings.Compare(a.Slug, b.Slug))
}

// Places are the places of the items of a list.
type Places[Item any] struct {
	of         func(Item) Place
	descending bool
}

// cursor is a place in one list and order, as clients have it.
type cursor struct {
	List  string `json:"l"`
	Place Place  `json:"p"`
}

const maxCursorLength = 2_000

// Cursor returns the place of an item as a text, for a list with a name.
func (p Places[Item]) Cursor(list string, item Item) string { return cursor{list, p.of(item)}.encode() }

func (c cursor) encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers are finite
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeCursor(text, list string) (place Place, ok bool) {
	var c cursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	ok = err == nil && len(data) <= maxCursorLength && json.Unmarshal(data, &c) == nil && c.List == list
	return c.Place, ok && params.IsText(c.Place.Text) && params.IsText(c.Place.Slug)
}

// Seek returns a function that compares items with the place of a cursor, or false if the
// cursor is not of this list.
func (p Places[Item]) Seek(list, text string) (compare func(Item) int, ok bool) {
	place, ok := decodeCursor(text, list)
	return func(item Item) int { return p.of(item).compare(place, p.descending) }, ok
}
