package quota

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/ent/countbatch"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// ignoreFormer discards the requests of deleted accounts.
func ignoreFormer(context.Context, *ent.Tx, int, string, int) error { return nil }

// ledgerOn returns the ledger and counter of a server that starts on a day.
func ledgerOn(t *testing.T, s *store.Store, day Day) (*Ledger, *Counter) {
	t.Helper()
	counter := NewCounter()
	ledger := NewLedger(s, counter, true, ignoreFormer, slog.New(slog.DiscardHandler))
	check.OK(t, ledger.Load(t.Context(), day))
	return ledger, counter
}

// Servers that write the counts of the same accounts do not deadlock.
func TestConcurrentLedgers(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		var accounts []Subject
		for n := range 30 {
			a := s.Write.Account.Create().SetEmail(fmt.Sprintf("a%d@example.com", n)).SetPlan("developer").SaveX(t.Context())
			accounts = append(accounts, Account(a.ID))
		}
		const servers, rounds = 3, 10
		log := &lockedBuffer{}
		var all sync.WaitGroup
		for range servers {
			counter := NewCounter()
			ledger := NewLedger(s, counter, false, ignoreFormer, slog.New(slog.NewTextHandler(log, nil)))
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
		check.Equal(t, log.String(), "", "log lines")
		for _, row := range s.Read.Usage.Query().AllX(t.Context()) {
			check.Equal(t, row.Requests, servers*rounds, "account %d: requests", row.AccountID)
		}
	})
}

// A restarted server continues from the counts that were written.
func TestCountsSurviveRestart(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account, err := s.Write.Account.Create().SetEmail("a@example.com").SetPlan("developer").Save(t.Context())
		check.OK(t, err)
		ledger, counter := ledgerOn(t, s, someDay)
		take(t, counter, somebody, 40, 100)
		take(t, counter, Account(account.ID), 7, 1000)
		ledger.Write(t.Context())
		take(t, counter, somebody, 3, 100)
		counter.Refund(t.Context(), somebody, someDay)
		counter.Refund(t.Context(), Account(account.ID), someDay)
		ledger.Write(t.Context())
		take(t, counter, somebody, 50, 100) // lost: the server is killed

		for restart := range 3 { // each merges the batches left by the previous one
			_, counter = ledgerOn(t, s, someDay)
			check.Equal(t, counter.get(key{someDay, somebody}).count(), 42, "restart %d: requests of the address", restart)
			check.Equal(t, counter.get(key{someDay, Account(account.ID)}).count(), 6, "restart %d: requests of the account", restart)
		}
		if n, err := s.Read.CountBatch.Query().Where(countbatch.Day(someDay.String())).Count(t.Context()); err != nil || n != 1 {
			t.Errorf("got %d batches and %v, want 1", n, err)
		}
	})
}

// A batch that is written again counts once, and the requests of a deleted
// account are added to its former usage.
func TestBatchCountsOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account, err := s.Write.Account.Create().SetEmail("a@example.com").SetPlan("developer").Save(t.Context())
		check.OK(t, err)
		ledger, _ := ledgerOn(t, s, someDay)
		var former []string
		ledger.former = func(_ context.Context, _ *ent.Tx, id int, day string, n int) error {
			former = append(former, fmt.Sprint(id, day, n))
			return nil
		}
		b := batch{"once", someDay, map[Subject]int{somebody: 5, Account(account.ID): 5, Account(99_999): 1}}
		for range 3 {
			check.OK(t, ledger.write(t.Context(), b))
		}
		_, counter := ledgerOn(t, s, someDay)
		if a, b := counter.get(key{someDay, somebody}).count(), counter.get(key{someDay, Account(account.ID)}).count(); a != 5 || b != 5 {
			t.Errorf("got %d and %d requests, want 5 each", a, b)
		}
		if want := fmt.Sprint(99_999, someDay.String(), 1); len(former) != 1 || former[0] != want {
			t.Errorf("got former usage %q, want %q", former, want)
		}
	})
}

// A database outage loses nothing, and is logged once.
func TestCountsSurviveAnOutage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ledger, counter := ledgerOn(t, s, someDay)
		log := &lockedBuffer{}
		ledger.log = slog.New(slog.NewTextHandler(log, nil))
		rename := func(from, to string) {
			if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
				t.Fatal(err)
			}
		}
		rename("count_batches", "elsewhere")
		const writes = 50
		for range writes {
			take(t, counter, somebody, 1, 0)
			ledger.Write(t.Context())
		}
		check.Equal(t, len(ledger.pending), 1, "pending batches")
		rename("elsewhere", "count_batches")
		ledger.Write(t.Context())
		_, counter = ledgerOn(t, s, someDay)
		check.Equal(t, counter.get(key{someDay, somebody}).count(), writes, "requests")
		for _, line := range []string{"writing quota counts failed, will retry", "writing quota counts works again"} {
			check.Equal(t, strings.Count(log.String(), line), 1, "lines: %q", line)
		}
	})
}

// Counts survive a wrong clock, even if the server restarts in the meantime.
func TestCountsSurviveAWrongClock(t *testing.T) {
	for name, jump := range jumps {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				acc := s.Write.Account.Create().SetEmail("ana@example.com").SetPlan("developer").SaveX(t.Context())
				wrong := wrongDay(jump)
				count := func(c *Counter, day Day, n int) {
					for range n {
						c.Take(t.Context(), somebody, day, 0)
						c.Take(t.Context(), Account(acc.ID), day, 0)
					}
				}
				want := func(c *Counter, when string, day Day, n int) {
					t.Helper()
					check.Equal(t, int(c.get(key{day, somebody}).count()), n, "%s: requests of the address", when)
					check.Equal(t, int(c.get(key{day, Account(acc.ID)}).count()), n, "%s: requests of the account", when)
				}
				ledger, counter := ledgerOn(t, s, someDay)
				count(counter, someDay, 5)
				ledger.Write(t.Context())
				count(counter, wrong, 3) // the clock jumps
				ledger.Write(t.Context())
				if _, err := ledger.merge(t.Context(), wrong); err != nil {
					t.Fatal(err)
				}

				ledger, counter = ledgerOn(t, s, wrong) // a restart while the clock is wrong
				want(counter, "restarted on the wrong day", wrong, 3)
				count(counter, wrong, 1)
				ledger.Write(t.Context())
				want(counter, "clock corrected", someDay, 5)
				count(counter, someDay, 2)
				ledger.Write(t.Context())

				_, counter = ledgerOn(t, s, someDay)
				want(counter, "restarted on the right day", someDay, 7)
				want(counter, "jumps again", wrong, 4)
				_, counter = ledgerOn(t, s, someDay+3)
				want(counter, "three days later", someDay+3, 0)
			})
		})
	}
}

// Tidy deletes earlier days, and days in the future that a wrong clock left.
func TestTidyDeletesOtherDays(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ledger, counter := ledgerOn(t, s, someDay)
		for _, day := range []Day{someDay - 365, someDay - 2, someDay - 1, someDay, someDay + 1, someDay + 2, someDay + 365} {
			counter.Take(t.Context(), somebody, day, 0)
			ledger.Write(t.Context())
		}
		check.OK(t, Tidy(t.Context(), s, someDay))
		var got []string
		s.Read.CountBatch.Query().Order(countbatch.ByDay()).Select(countbatch.FieldDay).ScanX(t.Context(), &got)
		if want := []string{(someDay - 1).String(), someDay.String(), (someDay + 1).String()}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("got batches of days %v, want %v", got, want)
		}
	})
}
