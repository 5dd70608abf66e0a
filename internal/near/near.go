// Package near finds the names that somebody may have meant: those a few
// slips of the keyboard away, and those that begin with or contain what was
// written. It knows nothing of what the names are for.
package near

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"palmares/internal/fold"
)

// longest is how much of what was written is looked at, in characters.
const longest = 100

// What a kind of likeness costs, beside an edit's 2: who wrote the beginning
// of a name is nearer than who made two slips.
const (
	costEdit   = 2
	costPrefix = 3
	costInside = 5
)

// Names are at most so many of the names that are near to the wanted one, the
// nearest first. Case, accents and what stands between words do not count.
func Names(wanted string, among []string, most int) []string {
	sought := newTarget(wanted)
	if len(sought.runes) == 0 || most <= 0 {
		return nil
	}
	type match struct {
		name      string
		cost, off int // off is by how much the lengths differ
	}
	var found []match
	for _, name := range among {
		if cost, off, near := sought.compare(name); near {
			found = append(found, match{name, cost, off})
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.off, b.off), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, min(most, len(found)))
	for _, m := range found[:min(most, len(found))] {
		names = append(names, m.name)
	}
	return names
}

// target is what was written, made ready to be compared with many names.
type target struct {
	text    string
	runes   []rune
	letters uint64
	slips   int // how many are forgiven
	// What comparing needs, kept from name to name.
	other []rune
	rows  [3][]int
}

func newTarget(wanted string) *target {
	t := &target{text: plain(cut(wanted, longest))}
	t.runes = []rune(t.text)
	t.letters = lettersOf(t.runes)
	switch n := len(t.runes); {
	case n <= 2: // everything short is one slip away
	case n <= 4:
		t.slips = 1
	case n <= 8:
		t.slips = 2
	default:
		t.slips = 3
	}
	for i := range t.rows {
		t.rows[i] = make([]int, len(t.runes)+1)
	}
	return t
}

// compare tells how near a name is.
func (t *target) compare(name string) (cost, off int, near bool) {
	text := plain(name)
	t.other = t.other[:0]
	for _, r := range text {
		t.other = append(t.other, r)
	}
	off = max(len(t.other)-len(t.runes), len(t.runes)-len(t.other))
	cost = 1 << 30
	if edits := t.edits(off); edits <= t.slips {
		cost = edits * costEdit
	}
	short, long := t.text, text
	if len(short) > len(long) {
		short, long = long, short
	}
	switch n := min(len(t.runes), len(t.other)); {
	case n >= 2 && strings.HasPrefix(long, short):
		cost = min(cost, costPrefix)
	case n >= 3 && strings.Contains(long, short):
		cost = min(cost, costInside)
	}
	return cost, off, cost < 1<<30
}

// edits is how many letters have to be put in, left out, replaced or swapped
// with their neighbour to come from one to the other; more than are forgiven,
// whatever the number, if it is that many.
func (t *target) edits(off int) int {
	const anyMore = 1 << 20
	// Most names are told apart without looking at the order of their letters:
	// an edit changes at most two of the letters that occur.
	if off > t.slips || bits.OnesCount64(t.letters^lettersOf(t.other)) > 2*t.slips {
		return anyMore
	}
	before, last, row := t.rows[0], t.rows[1], t.rows[2]
	for j := range last {
		last[j] = j
	}
	for i, b := range t.other {
		// Farther from the diagonal than the slips nothing can be near.
		from, to := max(1, i+1-t.slips), min(len(t.runes), i+1+t.slips)
		row[from-1] = anyMore
		if from == 1 {
			row[0] = i + 1
		}
		best := row[from-1]
		for j := from; j <= to; j++ {
			a := t.runes[j-1]
			cost := last[j-1]
			if a != b {
				cost++
			}
			cost = min(cost, row[j-1]+1)
			if j < i+1+t.slips { // above is within the band
				cost = min(cost, last[j]+1)
			}
			if i > 0 && j > 1 && a == t.other[i-1] && t.runes[j-2] == b {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
			best = min(best, cost)
		}
		if best > t.slips {
			return anyMore
		}
		before, last, row = last, row, before
	}
	return last[len(t.runes)]
}

// plain is a name as it is compared: folded, with one dash for whatever
// stands between its words.
func plain(name string) string {
	folded := fold.Text(name)
	if isPlain(folded) {
		return folded
	}
	words := strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// isPlain tells whether a folded name has single dashes between its words
// already, as slugs do.
func isPlain(s string) bool {
	dash := true // as if before the first letter
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			dash = false
		case c == '-' && !dash:
			dash = true
		default:
			return false
		}
	}
	return !dash
}

// lettersOf has a bit for each letter that occurs; strange ones share bits,
// which at worst lets a name through to be compared letter by letter.
func lettersOf(text []rune) (set uint64) {
	for _, r := range text {
		set |= 1 << (uint(r) % 64)
	}
	return set
}

func cut(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}
