package feed_test

import (
	"testing"

	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// numbersOf are those of a release's entries, in order.
func numbersOf(t *testing.T, s *store.Store, release int) []int {
	t.Helper()
	numbers, err := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(release)).Order(journalentry.ByID()).IDs(t.Context())
	if err != nil || len(numbers) == 0 {
		t.Fatalf("%d entries, %v", len(numbers), err)
	}
	return numbers
}

// What a journal had told after a backup was made is told of nothing else when
// the backup is restored: whoever read it would take the new for the old.
func TestNumbersAfterARestoredBackup(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := testkit.Open(t, cfg)
		publish(t, s, catalogOf("2026-11-01", aTool("a")))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		backup := testkit.Copy(t, cfg)

		s = testkit.Open(t, cfg)
		publish(t, s, catalogOf("2026-11-02", aTool("a"), aTool("b"), aTool("c")))
		lost := numbersOf(t, s, 2)

		restored := testkit.Open(t, backup)
		publish(t, restored, catalogOf("2026-11-03", aTool("a"), aTool("d"), aTool("e")))
		anew := numbersOf(t, restored, 2)
		if before := numbersOf(t, restored, 1); lost[0] <= before[len(before)-1] || anew[0] <= lost[len(lost)-1] {
			t.Errorf("after %v came %v and, restored, %v", before, lost, anew)
		}
		const exact = 1 << 53 // up to which every language counts
		if anew[len(anew)-1] >= exact {
			t.Errorf("%v are too large", anew)
		}
	})
}

// Numbers go on upwards also where the clock has gone back.
func TestNumbersAheadOfTheClock(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a")))
		const ahead = 9_000_000_000_000_000
		s.Write.JournalEntry.Create().SetID(ahead).SetReleaseNumber(1).SetKind(journal.ToolCreated).SetSlug("x").ExecX(t.Context())
		publish(t, s, catalogOf("2026-11-02", aTool("a"), aTool("b")))
		expect(t, "numbers", numbersOf(t, s, 2), []int{ahead + 1, ahead + 2})
	})
}

// A program of before, which lets the database number, goes on above.
func TestNumbersOfTheDatabase(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a"), aTool("b")))
		numbers := numbersOf(t, s, 1)
		if _, err := s.Write.ExecContext(t.Context(), "INSERT INTO journal_entries (release_number, kind, slug) VALUES (1, 'tool.created', 'x')"); err != nil {
			t.Fatal(err)
		}
		after := numbersOf(t, s, 1)
		expect(t, "the next number", after[len(after)-1], numbers[len(numbers)-1]+1)
	})
}
