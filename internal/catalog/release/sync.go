package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// SyncToken identifies what a client has: the documents of a category, or all, in
// a release. The time distinguishes the release from one of another database with
// the same number.
type SyncToken struct {
	Release     int
	PublishedAt int64 // in microseconds
	Category    string
}

// String returns the token with a checksum, so that a truncated or mistyped token is
// not mistaken for another.
func (t SyncToken) String() string {
	text := strconv.Itoa(t.Release) + " " + strconv.FormatInt(t.PublishedAt, 10) + " " + t.Category
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:6], text...))
}

const maxSyncToken = 1_000 // bytes

// ParseSyncToken parses a token and reports whether it is valid.
func ParseSyncToken(text string) (t SyncToken, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxSyncToken || len(data) < 6 {
		return t, false
	}
	parts := strings.SplitN(string(data[6:]), " ", 3)
	if len(parts) != 3 {
		return t, false
	}
	release, err1 := strconv.Atoi(parts[0])
	at, err2 := strconv.ParseInt(parts[1], 10, 64)
	t = SyncToken{release, at, parts[2]}
	return t, cmp.Or(err1, err2) == nil && t.Release > 0 && t.String() == text
}
