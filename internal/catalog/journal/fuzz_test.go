package journal_test

import (
	"testing"

	"palmares/internal/catalog/journal"
)

// FuzzID checks that an event has only one ID, and that the ID of a batch leads to its first
// event.
func FuzzID(f *testing.F) {
	for _, id := range []string{"evt_1", "evt_01", "evt_-1", "evt_9223372036854775808", "EVT_1", "batch_7_00"} {
		f.Add(id, 7)
	}
	f.Fuzz(func(t *testing.T, id string, number int) {
		if parsed, ok := journal.ParseID(id); ok && journal.ID(parsed) != id || !ok && parsed != 0 {
			t.Errorf("%q: got %d and %t, want the number of this ID alone", id, parsed, ok)
		}
		if parsed, ok := journal.ParseID(journal.ID(number)); ok != (number > 0) || ok && parsed != number {
			t.Errorf("%d: got %d and %t, want the same number", number, parsed, ok)
		}
		batch := journal.BatchID([]int{number, len(id)})
		if first, ok := journal.ParseBatchID(batch); !ok || first != number {
			t.Errorf("%s: got %d and %t, want %d", batch, first, ok, number)
		}
	})
}
