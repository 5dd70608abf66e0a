package quota

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/ent/countbatch"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

var somebody = Address(netip.MustParseAddr("203.0.113.9"))

func ledgerOn(t *testing.T, s *store.Store) (*Ledger, *Counter) {
	t.Helper()
	counter := NewCounter()
	ledger := NewLedger(s, counter, true, dropFormer, slog.New(slog.DiscardHandler))
	if err := ledger.Load(t.Context(), someDay); err != nil {
		t.Fatal(err)
	}
	return ledger, counter
}

// Servers that write the counts of the same accounts do not wait for each other
// crosswise, which PostgreSQL would end as a deadlock.
func TestLedgersAtOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		var accounts []Subject
		for n := range 30 {
			a := s.Write.Account.Create().SetEmail(fmt.Sprintf("a%d@example.com", n)).SetPlan("developer").SaveX(t.Context())
			accounts = append(accounts, Account(a.ID))
		}
		const servers, rounds = 3, 10
		said := &lockedBuffer{}
		var all sync.WaitGroup
		for range servers {
			counter := NewCounter()
			ledger := NewLedger(s, counter, false, dropFormer, slog.New(slog.NewTextHandler(said, nil)))
			all.Go(func() {
				for range rounds {
					for _, a := range accounts {
						counter.Take(t.Context(), a, someDay, 0)
					}
					ledger.Write(t.Context())
				}
			})
		}
		all.Wait()
		if said.String() != "" {
			t.Error(said)
		}
		for _, row := range s.Read.Usage.Query().AllX(t.Context()) {
			if row.Requests != servers*rounds {
				t.Errorf("account %d had %d requests", row.AccountID, row.Requests)
			}
		}
	})
}

func take(t *testing.T, s Store, who Subject, times, quota int) (last int) {
	t.Helper()
	for range times {
		last = s.Take(t.Context(), who, someDay, quota)
	}
	return last
}

// What was written down is there after a restart, and what was not is not.
func TestCountsSurvive(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account, err := s.Write.Account.Create().SetEmail("a@example.com").SetPlan("developer").Save(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ledger, counter := ledgerOn(t, s)
		take(t, counter, somebody, 40, 100)
		take(t, counter, Account(account.ID), 7, 1000)
		ledger.Write(t.Context())
		take(t, counter, somebody, 3, 100)
		counter.GiveBack(t.Context(), somebody, someDay)
		counter.GiveBack(t.Context(), Account(account.ID), someDay)
		ledger.Write(t.Context())
		take(t, counter, somebody, 50, 100) // and then it is killed

		for restart := range 3 { // each merges what the one before left
			_, counter = ledgerOn(t, s)
			if n := counter.count(somebody, someDay); n != 42 {
				t.Errorf("restart %d: the address had %d", restart, n)
			}
			if n := counter.count(Account(account.ID), someDay); n != 6 {
				t.Errorf("restart %d: the account had %d", restart, n)
			}
		}
		if n, err := s.Read.CountBatch.Query().Where(countbatch.Day(someDay.String())).Count(t.Context()); err != nil || n != 1 {
			t.Errorf("%d batches, %v", n, err)
		}
	})
}

// A batch whose fate is unknown is written again, and counts once.
func TestABatchCountsOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account, err := s.Write.Account.Create().SetEmail("a@example.com").SetPlan("developer").Save(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ledger, _ := ledgerOn(t, s)
		b := batch{"once", someDay, map[Subject]int{somebody: 5, Account(account.ID): 5, Account(99_999): 1}}
		for range 3 {
			if err := ledger.write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		_, counter := ledgerOn(t, s)
		if a, b := counter.count(somebody, someDay), counter.count(Account(account.ID), someDay); a != 5 || b != 5 {
			t.Errorf("counted %d and %d", a, b)
		}
	})
}

// A database that is away loses nothing.
func TestCountsWait(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ledger, counter := ledgerOn(t, s)
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE count_batches RENAME TO elsewhere"); err != nil {
			t.Fatal(err)
		}
		for range maxBehind + 5 {
			take(t, counter, somebody, 1, 0)
			ledger.Write(t.Context())
			if len(ledger.behind) > maxBehind {
				t.Fatalf("%d batches wait", len(ledger.behind))
			}
		}
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE elsewhere RENAME TO count_batches"); err != nil {
			t.Fatal(err)
		}
		ledger.Write(t.Context())
		_, counter = ledgerOn(t, s)
		if n := counter.count(somebody, someDay); n != maxBehind+5 {
			t.Errorf("%d are left", n)
		}
	})
}

// dropFormer ignores the requests of deleted accounts.
func dropFormer(context.Context, *ent.Tx, int, string, int) error { return nil }
