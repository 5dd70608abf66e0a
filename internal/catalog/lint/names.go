package lint

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"palmares/internal/catalog/record"
	"palmares/internal/core/text"
)

const (
	// minSimilar is the length from which names that differ by one letter are similar:
	// short names often do.
	minSimilar = 5
	// maxCompared is the number of characters of a name that are compared.
	maxCompared = 60
	// maxNeighbors limits how many earlier names a name is compared with for each of its
	// letters, so that the time grows in proportion to the catalog.
	maxNeighbors = 8
)

// name is the name of a tool.
type name struct {
	place
	text string
	key  string // without case, accents, spaces and punctuation
}

func newName(at place, s string) name {
	key := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text.Fold(text.Truncate(s, maxCompared)))
	return name{at, s, key}
}

// checkNames finds similar names. Two names differ by one letter, or by two that are
// swapped, only if they are the same after removing one letter from either or both. So it
// sorts all names without each of their letters, and compares neighbors.
func (c *checker) checkNames() {
	type variant struct {
		hash uint64
		name int
	}
	var variants []variant
	seed := maphash.MakeSeed()
	first := map[string]name{}
	for i, n := range c.names {
		if n.key == "" { // for example, an emoji
			continue
		}
		if same, taken := first[n.key]; taken {
			c.addSimilar(n, same)
			continue
		}
		first[n.key] = n
		if utf8.RuneCountInString(n.key) < minSimilar {
			continue
		}
		variants = append(variants, variant{maphash.String(seed, n.key), i})
		for at, r := range n.key {
			if !unicode.IsDigit(r) { // names that differ in a digit are not similar
				variants = append(variants, variant{maphash.String(seed, n.key[:at]+n.key[at+utf8.RuneLen(r):]), i})
			}
		}
	}
	slices.SortFunc(variants, func(a, b variant) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name)) })
	variants = slices.Compact(variants) // a double letter gives the same variant twice
	reported := map[[2]int]bool{}
	for i, v := range variants {
		for j := i - 1; j >= max(0, i-maxNeighbors) && variants[j].hash == v.hash; j-- {
			pair := [2]int{variants[j].name, v.name}
			if c.compared++; !reported[pair] && differByOne(c.names[pair[0]].key, c.names[pair[1]].key) {
				reported[pair] = true
				c.addSimilar(c.names[pair[1]], c.names[pair[0]])
			}
		}
	}
}

func (c *checker) addSimilar(n, other name) {
	c.addPair(n.place, other.place, "name", SimilarName, "%s is similar to %s, the name of %s; is it the same tool?",
		record.Quote(n.text), record.Quote(other.text), other.place)
}

// differByOne reports whether two different keys differ by one letter, or by two adjacent
// letters that are swapped.
func differByOne(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	start := 0
	for start < len(x) && x[start] == y[start] {
		start++
	}
	end := 0
	for end < len(x)-start && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	x, y = x[start:len(x)-end], y[start:len(y)-end]
	if len(y) == 1 {
		return len(x) <= 1
	}
	return len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
}
