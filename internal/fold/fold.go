// Package fold brings text to the form in which it is compared: lower case,
// without accents. Orders and searches share it, so that they agree.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ligatures and letters whose decomposition Unicode leaves to the language;
// a French reader looks for "cœur" under "coeur".
var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d")

// Text folds s.
func Text(s string) string {
	if isPlain(s) {
		return strings.ToLower(s)
	}
	var folded strings.Builder
	folded.Grow(len(s))
	for _, r := range norm.NFKD.String(s) {
		if !unicode.Is(unicode.Mn, r) {
			folded.WriteRune(unicode.ToLower(r))
		}
	}
	return ligatures.Replace(folded.String())
}

// Key folds s and cuts it, between characters, to at most limit bytes: what
// an index entry can hold.
func Key(s string, limit int) string {
	key := Text(s)
	if len(key) <= limit {
		return key
	}
	for limit > 0 && !utf8.RuneStart(key[limit]) {
		limit--
	}
	return key[:limit]
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
