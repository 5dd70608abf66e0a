package near

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Index is names made ready to be compared with what many people write.
type Index struct{ names []ready }

// ready is a name with what tells most of them apart at a glance.
type ready struct {
	text    string // as it is compared
	length  int    // in characters
	letters uint64
}

// NewIndex makes names ready.
func NewIndex(names []string) *Index {
	x := &Index{names: make([]ready, len(names))}
	for i, name := range names {
		text := plain(name)
		x.names[i] = ready{text, utf8.RuneCountInString(text), lettersOf(text)}
	}
	return x
}

// match is a name that is near.
type match struct {
	at        int // where it stands among the names
	text      string
	cost, off int // off is by how much the lengths differ
}

func (m match) compare(other match) int {
	return cmp.Or(cmp.Compare(m.cost, other.cost), cmp.Compare(m.off, other.off), cmp.Compare(m.text, other.text), cmp.Compare(m.at, other.at))
}

// Nearest tells where at most so many names stand that are near to the wanted
// one, the nearest first. Case, accents and what stands between words do not
// count.
func (x *Index) Nearest(wanted string, most int) []int {
	sought := newTarget(wanted)
	if len(sought.runes) == 0 || most <= 0 {
		return nil
	}
	var found []match // never more than asked for: the beginning of all names may be wanted
	for i := range x.names {
		cost, off, near := sought.compare(&x.names[i])
		if !near {
			continue
		}
		m := match{i, x.names[i].text, cost, off}
		place, _ := slices.BinarySearchFunc(found, m, match.compare)
		if place < most {
			found = slices.Insert(found[:min(len(found), most-1)], place, m)
		}
		if len(found) == most { // with more slips than the last of them nobody gets in
			sought.slips = min(sought.slips, found[most-1].cost/costEdit)
		}
	}
	places := make([]int, len(found))
	for i, m := range found {
		places[i] = m.at
	}
	return places
}
