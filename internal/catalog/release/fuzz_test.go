package release

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzCursor checks that a cursor is read as it was written, and only in its list, and that
// the text in any accepted one can be stored in a database.
func FuzzCursor(f *testing.F) {
	f.Add(cursor{"tools score_desc", Place{Number: 8.5, Slug: "plume"}}.encode(), "tools score_desc", "plume", 8.5)
	f.Add(cursor{"tools", Place{Missing: true, Slug: "a\x00"}}.encode(), "tools", "é", math.Copysign(0, -1))
	f.Add("eyJsIjoieCJ9", "x", "", 1e300)
	f.Fuzz(func(t *testing.T, text, list, slug string, number float64) {
		if place, ok := decodeCursor(text, list); ok {
			again, ok := decodeCursor(cursor{list, place}.encode(), list)
			if !ok && len(text) < maxCursorLength || ok && again != place {
				t.Errorf("%q: got %+v and %t after writing, want %+v", text, again, ok, place)
			}
			if !params.IsText(place.Text) || !params.IsText(place.Slug) {
				t.Errorf("%q: got %+v, want texts", text, place)
			}
		}
		if !params.IsText(list+slug) || number != number || number-number != 0 || len(list)+len(slug) > maxCursorLength/8 {
			return
		}
		want := Place{Number: number, Slug: slug}
		written := cursor{list, want}.encode()
		if place, ok := decodeCursor(written, list); !ok || place != want {
			t.Errorf("%q: got %+v and %t, want %+v", written, place, ok, want)
		}
		if _, ok := decodeCursor(written, list+"x"); ok {
			t.Errorf("%q: got a place in another list, want none", written)
		}
	})
}

// FuzzSyncToken checks that an accepted sync token is the only spelling of its content, and
// that a token is read as it was issued.
func FuzzSyncToken(f *testing.F) {
	issued := SyncToken{8, 1_800_000_000_000_000, "code"}
	f.Add(issued.String(), 8, int64(1), "code")
	f.Add(issued.String()+"=", 1, int64(-1), "")
	f.Add("", 0, int64(1), "a b c")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 6)), 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-6-len("9 1 ")))
	f.Add("AAAA", 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-5-len("9 1 ")))
	f.Add(strings.ToUpper(issued.String()), -1, int64(0), "a b")
	f.Fuzz(func(t *testing.T, text string, release int, at int64, category string) {
		if token, ok := ParseSyncToken(text); ok && (token.String() != text || token.Release < 1) {
			t.Errorf("%q: got %+v, which is %q, want the same token", text, token, token)
		}
		token := SyncToken{release, at, category}
		got, ok := ParseSyncToken(token.String())
		if want := release > 0 && len(token.String()) <= maxSyncToken; ok != want || ok && got != token {
			t.Errorf("%+v: got %+v and %t, want %t", token, got, ok, want)
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
			check.Equal(t, problem.Of(err).Code, problem.BadInput, "%q: %v", text, err)
			return
		}
		_, dayErr := time.Parse(time.DateOnly, asOf.Date)
		if asOf.String() != text || (asOf.Release > 0) == (asOf.Date != "") || asOf.Date != "" && dayErr != nil {
			t.Errorf("%q: got %+v, want a release or a day", text, asOf)
		}
	})
}
