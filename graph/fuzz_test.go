package graph

import (
	"math"
	"reflect"
	"testing"
	"time"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// FuzzCursor checks that a cursor is read as it was written, and only in its list, and that
// the text in any accepted one can be stored in a database.
func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor("tools score_desc", []any{8.5, "plume"}), "tools score_desc", "plume", 8.5)
	f.Add(encodeCursor("tools", []any{nil, "a\x00"}), "tools", "é", math.Copysign(0, -1))
	f.Add("eyJsIjoieCJ9", "x", "", 1e300)
	f.Fuzz(func(t *testing.T, text, list, slug string, number float64) {
		if position, ok := decodeCursor(text, list); ok {
			again, ok := decodeCursor(encodeCursor(list, position), list)
			if !ok && len(text) < maxCursorLength || ok && !reflect.DeepEqual(again, position) {
				t.Errorf("%q: got %v and %t after writing, want %v", text, again, ok, position)
			}
			for _, value := range position {
				if value, isText := value.(string); isText && !params.IsText(value) {
					t.Errorf("%q: got %q, want text", text, value)
				}
			}
		}
		if !params.IsText(list+slug) || number != number || number-number != 0 || len(list)+len(slug) > maxCursorLength/8 {
			return
		}
		written := encodeCursor(list, []any{number, slug})
		if position, ok := decodeCursor(written, list); !ok || !reflect.DeepEqual(position, []any{number, slug}) {
			t.Errorf("%q: got %v and %t, want %v and %q", written, position, ok, number, slug)
		}
		if _, ok := decodeCursor(written, list+"x"); ok {
			t.Errorf("%q: got a position in another list, want none", written)
		}
	})
}

// FuzzAsOf checks that as_of selects a release number or an existing day, and nothing else.
func FuzzAsOf(f *testing.F) {
	for _, text := range []string{"8", "08", "999999999", "1000000000", "2026-11-10", "2026-02-30", "0000-01-01", "+1", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		asOf, err := ParseAsOf(text)
		if err != nil {
			if problem.Of(err).Code != problem.BadInput {
				t.Errorf("%q: got %v, want a 400", text, err)
			}
			return
		}
		_, dayErr := time.Parse(time.DateOnly, asOf.Date)
		if asOf.String() != text || (asOf.Release > 0) == (asOf.Date != "") || asOf.Date != "" && dayErr != nil {
			t.Errorf("%q: got %+v, want a release or a day", text, asOf)
		}
	})
}
