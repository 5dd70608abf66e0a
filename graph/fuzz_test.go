package graph

import (
	"encoding/base64"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/journal"
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

// FuzzSyncToken checks that an accepted sync token is the only spelling of its content, and
// that a token is read as it was issued.
func FuzzSyncToken(f *testing.F) {
	issued := syncToken{8, 1_800_000_000_000_000, "code"}
	f.Add(issued.String(), 8, int64(1), "code")
	f.Add(issued.String()+"=", 1, int64(-1), "")
	f.Add("", 0, int64(1), "a b c")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 6)), 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-6-len("9 1 ")))
	f.Add("AAAA", 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-5-len("9 1 ")))
	f.Add(strings.ToUpper(issued.String()), -1, int64(0), "a b")
	f.Fuzz(func(t *testing.T, text string, release int, at int64, category string) {
		if token, ok := parseSyncToken(text); ok && (token.String() != text || token.release < 1) {
			t.Errorf("%q: got %+v, which is %q, want the same token", text, token, token)
		}
		token := syncToken{release, at, category}
		got, ok := parseSyncToken(token.String())
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

// FuzzNodeID checks that an identifier is split without losing a part of it, and that those
// of another kind are rejected.
func FuzzNodeID(f *testing.F) {
	for _, id := range []string{"tool/plume", "category/", "release/8", "release/08", "evt_42", "evt_042", "tool/a@8", "comparison/a/b"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		prefix, key, ok := parseNodeID(id)
		switch {
		case !ok:
		case prefix == journal.IDPrefix:
			if number, valid := journal.ParseID(key); !valid || key != id || journal.ID(number) != id {
				t.Errorf("%q: got event %q, want the identifier", id, key)
			}
		case prefix+key != id || key == "":
			t.Errorf("%q: got %q and %q, want its parts", id, prefix, key)
		}
	})
}
