// Package text normalizes, compares and splits strings, and rounds numbers, in the
// same way for every part of the program.
package text

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"golang.org/x/text/unicode/norm"
)

// ligatures replaces letters that Unicode does not decompose. French readers expect
// to find "cœur" under "coeur".
var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d")

// Fold returns s in lower case and without accents. Both sorting and searching use
// it.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var folded strings.Builder
	folded.Grow(len(s))
	valid := strings.ToValidUTF8(s, string(utf8.RuneError)) // norm stops decomposing after some invalid bytes
	for _, r := range norm.NFKD.String(valid) {
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
// below a hundredth, so that x.xx5 rounds away from zero whatever the order of summation.
const rounding = 1e-7

// Round rounds to two decimals, and halves away from zero.
func Round(number float64) float64 {
	return math.Round(number*100+math.Copysign(rounding, number))/100 + 0 // adding 0 makes -0 positive
}

// Mean returns sum/n rounded to two decimals, or nil if n is 0.
func Mean(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	mean := Round(sum / float64(n))
	return &mean
}

// maxCompared is the number of characters compared; the rest is ignored.
const maxCompared = 100

// Costs of the kinds of similarity: a prefix ranks between one typo and two.
const (
	costTypo   = 2
	costPrefix = 3
	costInside = 5
)

// Index holds names prepared for repeated calls to Similar.
type Index struct{ names []prepared }

type prepared struct {
	text    string
	length  int    // in characters
	letters uint64 // the set of letters, to rule out most names quickly
}

func prepare(name string) prepared {
	text := Truncate(normalize(name), maxCompared)
	return prepared{text, utf8.RuneCountInString(text), letterSet(text)}
}

// NewIndex prepares names.
func NewIndex(names []string) *Index {
	x := &Index{names: make([]prepared, len(names))}
	for i, name := range names {
		x.names[i] = prepare(name)
	}
	return x
}

// Similar returns at most limit of the names that resemble wanted, best first.
func Similar(wanted string, names []string, limit int) (similar []string) {
	for _, i := range NewIndex(names).Similar(wanted, limit) {
		similar = append(similar, names[i])
	}
	return similar
}

// Similar returns the positions of at most limit names that resemble wanted,
// best first. Case, accents and punctuation are ignored.
func (x *Index) Similar(wanted string, limit int) []int {
	target := prepare(Truncate(wanted, maxCompared))
	if target.length == 0 {
		return nil
	}
	type match struct{ at, cost, lengthDifference int }
	var matches []match
	for i, name := range x.names {
		if cost, ok := target.similarity(name); ok {
			matches = append(matches, match{i, cost, abs(name.length - target.length)})
		}
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.lengthDifference, b.lengthDifference),
			cmp.Compare(x.names[a.at].text, x.names[b.at].text), cmp.Compare(a.at, b.at))
	})
	var best []int
	for _, m := range matches[:min(limit, len(matches))] {
		best = append(best, m.at)
	}
	return best
}

// Nearest returns the name that someone most likely meant: one with the same words in
// another order, one that resembles it, or one with the same stem. It returns "" if
// there is none.
func Nearest(wanted string, names []string) string {
	words := sortedWords(wanted)
	for _, name := range names {
		if words != "" && sortedWords(name) == words {
			return name
		}
	}
	if similar := Similar(wanted, names, 1); similar != nil {
		return similar[0]
	}
	nearest, longest := "", minStem-1
	target := []rune(prepare(Truncate(wanted, maxCompared)).text)
	for _, name := range names {
		text := []rune(prepare(name).text)
		stem := 0
		for stem < min(len(target), len(text)) && target[stem] == text[stem] {
			stem++
		}
		if stem > longest && stem >= min(len(target), len(text))-1 {
			nearest, longest = name, stem
		}
	}
	return nearest
}

// minStem is the number of characters at the start of two names that makes them
// related, such as "coding" and "code".
const minStem = 3

func sortedWords(name string) string {
	words := strings.Split(prepare(Truncate(name, maxCompared)).text, "-")
	slices.Sort(words)
	return strings.Join(words, "-")
}

func (p prepared) similarity(name prepared) (cost int, ok bool) {
	typos := p.typosAllowed()
	// A typo changes at most two letters of the set and one of the length.
	if abs(p.length-name.length) <= typos && bits.OnesCount64(p.letters^name.letters) <= 2*typos {
		distance := levenshtein.ComputeDistance(p.text, name.text)
		if distance == 2 && swapped(p.text, name.text) {
			distance = 1
		}
		if distance <= typos {
			cost, ok = distance*costTypo, true
		}
	}
	if ok && cost <= costPrefix {
		return cost, true
	}
	short, long := p, name
	if len(short.text) > len(long.text) {
		short, long = long, short
	}
	switch {
	case short.letters&^long.letters != 0:
	case short.length >= 2 && strings.HasPrefix(long.text, short.text):
		return costPrefix, true
	case short.length >= 3 && !ok && strings.Contains(long.text, short.text):
		return costInside, true
	}
	return cost, ok
}

// swapped reports whether two strings differ by one pair of adjacent characters,
// which counts as one typo.
func swapped(a, b string) bool {
	x, y := []rune(a), []rune(b)
	for i := range min(len(x), len(y)) - 1 {
		if x[i] != y[i] {
			return x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
		}
	}
	return false
}

// typosAllowed increases with the length: short names are often only one typo
// apart.
func (p prepared) typosAllowed() int {
	switch {
	case p.length <= 2:
		return 0
	case p.length <= 4:
		return 1
	case p.length <= 8:
		return 2
	}
	return 3
}

// normalize folds a name and joins its words with single dashes, as slugs do.
func normalize(name string) string {
	words := strings.FieldsFunc(Fold(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// letterSet returns a bit set of letters. Rare letters share bits, so a few more
// names than necessary are compared in full.
func letterSet(text string) (set uint64) {
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
			set |= 1 << (r - 'a')
		case r >= '0' && r <= '9':
			set |= 1 << (26 + r - '0')
		default:
			set |= 1 << (36 + uint(r)%28)
		}
	}
	return set
}

// LowerFirst returns a label as it is written within a sentence.
func LowerFirst(label string) string {
	first, size := utf8.DecodeRuneInString(label)
	return string(unicode.ToLower(first)) + label[size:]
}

// Truncate returns the first characters of a string.
func Truncate(s string, characters int) string {
	for i := range s {
		if characters == 0 {
			return s[:i]
		}
		characters--
	}
	return s
}

func abs(n int) int { return max(n, -n) }

// maxWord is the length in characters to which Words truncates a word.
const maxWord = 40

// elisions are the French words that lose their last vowel before an
// apostrophe. Like their full forms, they carry no meaning for a search.
var elisions = map[string]bool{
	"c": true, "d": true, "j": true, "l": true, "m": true, "n": true, "qu": true, "s": true, "t": true,
}

// Words returns the words of s in order, folded. A word is a run of letters and
// digits, so hyphens and apostrophes separate words. Elided words are omitted:
// "l'agent" only has the word "agent".
func Words(s string) []string {
	var words []string
	for field := range strings.FieldsSeq(s) {
		words = appendWords(words, Fold(field)) // Fold is faster if it sees ASCII only
	}
	return words
}

func appendWords(words []string, folded string) []string {
	start, length := -1, 0 // of the current word, in bytes and in characters
	end := 0               // where its first maxWord characters end
	for i, r := range folded {
		if isWordPart(r) {
			if start < 0 {
				start, length = i, 0
			}
			if length++; length <= maxWord {
				end = i + utf8.RuneLen(r)
			}
			continue
		}
		if start >= 0 && !(isApostrophe(r) && elisions[folded[start:end]]) {
			words = append(words, folded[start:end])
		}
		start = -1
	}
	if start >= 0 {
		words = append(words, folded[start:end])
	}
	return words
}

// isWordPart accepts marks too: Fold removes accents, and the remaining marks are
// the vowels of scripts such as Devanagari.
func isWordPart(r rune) bool {
	if r < unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !isApostrophe(r)
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'’‘ʼ", r) }
