package search

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// vocabulary holds all indexed words, sorted.
type vocabulary struct {
	words []string
}

// prefix stands for all words that start with it: words[from:to].
type prefix struct {
	text     string
	from, to int
}

func (p prefix) size() int { return p.to - p.from }

func (v *vocabulary) all() prefix { return prefix{"", 0, len(v.words)} }

// starting returns the words within a prefix that start with a longer one.
func (v *vocabulary) starting(within prefix, text string) prefix {
	words := v.words[within.from:within.to]
	from := sort.SearchStrings(words, text)
	to := from + sort.Search(len(words)-from, func(i int) bool { return !strings.HasPrefix(words[from+i], text) })
	return prefix{text, within.from + from, within.from + to}
}

// similar returns the words that start with a string that differs from word by at
// most one inserted, missing or wrong character, or two swapped adjacent ones.
func (v *vocabulary) similar(word string) []prefix {
	var found []prefix
	add := func(within prefix, parts ...string) {
		if p := v.starting(within, strings.Join(parts, "")); p.size() > 0 {
			found = append(found, p)
		}
	}
	add(v.all(), word)
	// Words that start with word[:i] and differ at the next character.
	for i, within := 0, v.all(); i < len(word) && within.size() > 0; {
		before := word[:i]
		_, width := utf8.DecodeRuneInString(word[i:])
		here, rest := word[i:i+width], word[i+width:]
		add(within, before, rest)
		if _, next := utf8.DecodeRuneInString(rest); next > 0 {
			add(within, before, rest[:next], here, rest[next:])
		}
		for other := range v.following(within) {
			add(other, other.text, rest)
			add(other, other.text, word[i:])
		}
		i += width
		within = v.starting(within, word[:i])
	}
	// Two prefixes have either no words in common, or one has all of the other's.
	slices.SortFunc(found, func(a, b prefix) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	last := 0
	return slices.DeleteFunc(found, func(p prefix) bool {
		if p.to <= last {
			return true
		}
		last = p.to
		return false
	})
}

// following yields the prefixes that are one character longer.
func (v *vocabulary) following(p prefix) func(yield func(prefix) bool) {
	return func(yield func(prefix) bool) {
		for at := p.from; at < p.to; {
			rest := v.words[at][len(p.text):]
			if rest == "" {
				at++ // the prefix is a word itself
				continue
			}
			_, width := utf8.DecodeRuneInString(rest)
			longer := v.starting(prefix{from: at, to: p.to}, v.words[at][:len(p.text)+width])
			if !yield(longer) {
				return
			}
			at = longer.to
		}
	}
}
