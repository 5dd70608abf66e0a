package release

import (
	"encoding/base64"
	"strings"
	"testing"
)

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
