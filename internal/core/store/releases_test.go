package store

import (
	"testing"
	"time"

	"palmares/ent"
)

// A read that started before the history was pruned must not bring pruned releases
// back.
func TestReadFromBeforePruning(t *testing.T) {
	at := time.Now()
	before := &ent.Release{ID: 5, ImportedAt: at, HistoryFrom: 1}
	pruned := &ent.Release{ID: 5, ImportedAt: at, HistoryFrom: 3}
	next := &ent.Release{ID: 6, ImportedAt: at.Add(time.Hour), HistoryFrom: 3}
	restored := &ent.Release{ID: 5, ImportedAt: at.Add(time.Minute), HistoryFrom: 1}
	for _, c := range []struct {
		name          string
		known         *ent.Release // the newest known when the read ends
		first, second *ent.Release // the newest known when it started, and the one it read
		want          bool         // whether the one it read becomes the newest known
	}{
		{"late read", pruned, before, before, false},
		{"pruning", before, before, pruned, true},
		{"pruning, then a release", pruned, pruned, next, true},
		{"late read, after a release", next, pruned, pruned, false},
		{"backup from before the pruning", pruned, pruned, before, true},
		{"another release with the same number", pruned, pruned, restored, true},
	} {
		s := &Store{}
		s.newest.Store(c.known)
		if got := s.updateNewest(c.first, c.second); got != c.want || (s.newest.Load() == c.second) != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
