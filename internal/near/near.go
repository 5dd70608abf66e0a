// Package near finds the names that somebody may have meant: those a few
// slips of the keyboard away, and those that begin with or contain what was
// written. It knows nothing of what the names are for.
package near

import (
	"math/bits"
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
	far        = 1 << 20 // no likeness at all
)

// Names are at most so many of the names that are near to the wanted one, the
// nearest first. Who asks of the same names again keeps an Index.
func Names(wanted string, among []string, most int) []string {
	var names []string
	for _, at := range NewIndex(among).Nearest(wanted, most) {
		names = append(names, among[at])
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
	t.letters = lettersOf(t.text)
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
func (t *target) compare(name *ready) (cost, off int, near bool) {
	off = max(name.length-len(t.runes), len(t.runes)-name.length)
	cost = far
	if edits := t.edits(name, off); edits <= t.slips {
		cost = edits * costEdit
	}
	if cost > costPrefix {
		cost = min(cost, t.within(name))
	}
	return cost, off, cost < far
}

// within is the cost of a name that begins with or contains what was written,
// or the other way round.
func (t *target) within(name *ready) int {
	short, long, few, many := t.text, name.text, t.letters, name.letters
	if len(short) > len(long) {
		short, long, few, many = long, short, many, few
	}
	if few&^many != 0 {
		return far // a letter is not there
	}
	switch n := min(len(t.runes), name.length); {
	case n >= 2 && strings.HasPrefix(long, short):
		return costPrefix
	case n >= 3 && strings.Contains(long, short):
		return costInside
	}
	return far
}

// edits is how many letters have to be put in, left out, replaced or swapped
// with their neighbour to come from one to the other; more than are forgiven,
// whatever the number, if it is that many.
func (t *target) edits(name *ready, off int) int {
	// Most names are told apart without looking at the order of their letters:
	// an edit changes at most two of the letters that occur.
	if off > t.slips || bits.OnesCount64(t.letters^name.letters) > 2*t.slips {
		return far
	}
	t.other = t.other[:0]
	for _, r := range name.text {
		t.other = append(t.other, r)
	}
	wanted, other := withoutEnds(t.runes, t.other)
	before, last, row := t.rows[0], t.rows[1], t.rows[2]
	for j := range len(wanted) + 1 {
		last[j] = j
	}
	for i, b := range other {
		// Farther from the diagonal than the slips nothing can be near.
		from, to := max(1, i+1-t.slips), min(len(wanted), i+1+t.slips)
		row[from-1] = far
		if from == 1 {
			row[0] = i + 1
		}
		best := row[from-1]
		for j := from; j <= to; j++ {
			a := wanted[j-1]
			cost := last[j-1]
			if a != b {
				cost++
			}
			cost = min(cost, row[j-1]+1)
			if j < i+1+t.slips { // above is within the band
				cost = min(cost, last[j]+1)
			}
			if i > 0 && j > 1 && a == other[i-1] && wanted[j-2] == b {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
			best = min(best, cost)
		}
		if best > t.slips {
			return far
		}
		before, last, row = last, row, before
	}
	return last[len(wanted)]
}

// withoutEnds leaves out what two texts have alike at their beginnings and
// ends: there is nothing to edit.
func withoutEnds(a, b []rune) ([]rune, []rune) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
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
func lettersOf(text string) (set uint64) {
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
