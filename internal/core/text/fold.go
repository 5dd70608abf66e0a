// Package text compares and presents text and numbers the same way in every
// part of the program.
package text

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ligatures are letters that Unicode does not decompose. French readers look
// for "cœur" under "coeur".
var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d")

// Fold returns s in lower case and without accents. Sorting and searching both
// use it, so that they agree.
func Fold(s string) string {
	if isASCII(s) {
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

// SortKey folds s and truncates it at a character boundary to at most limit
// bytes, because index entries have a maximum size.
func SortKey(s string, limit int) string {
	key := Fold(s)
	if len(key) <= limit {
		return key
	}
	for limit > 0 && !utf8.RuneStart(key[limit]) {
		limit--
	}
	return key[:limit]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// rounding is far above the floating-point error of a sum of scores and far
// below a hundredth, so that x.xx5 rounds up whatever the order of summation.
const rounding = 1e-7

// Mean returns sum/n rounded to two decimals, or nil without values.
func Mean(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	mean := math.Round(sum/float64(n)*100+rounding) / 100
	return &mean
}
