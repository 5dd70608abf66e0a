package quota

import (
	"log/slog"
	"testing"
	"time"

	"palmares/ent/countbatch"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// jumps are how far a wrong clock is off.
var jumps = map[string]time.Duration{
	"hours ahead":   20 * time.Hour,
	"hours behind":  -20 * time.Hour,
	"a year ahead":  365 * 24 * time.Hour,
	"a year behind": -365 * 24 * time.Hour,
}

// noon is on the day that tests count on.
var noon = someDay.End().Add(-12 * time.Hour)

// wrongDay is the day that a clock shows which is off by a jump.
func wrongDay(jump time.Duration) Day { return DayOf(noon.Add(jump)) }

// wantCount takes one request and compares the day's count with it.
func wantCount(t *testing.T, s Store, day Day, want int) {
	t.Helper()
	if got := s.Take(t.Context(), somebody, day, 0); got != want {
		t.Errorf("%s: got count %d, want %d", day, got, want)
	}
}

// One request on a wrong day does not end the daily reset.
func TestResetAfterAWrongDay(t *testing.T) {
	for name, jump := range jumps {
		t.Run(name, func(t *testing.T) {
			c := NewCounter()
			wantCount(t, c, someDay, 1)
			wantCount(t, c, wrongDay(jump), 1)
			wantCount(t, c, someDay, 2)
			for day := someDay + 2; day < someDay+10; day++ {
				wantCount(t, c, day, 1)
				wantCount(t, c, day, 2)
			}
		})
	}
}

func TestClockJumpsOftenAndReturns(t *testing.T) {
	c := NewCounter()
	for i := range 100 {
		wantCount(t, c, someDay, i+1)
		wantCount(t, c, someDay+Day(1000+i), 1)
		wantCount(t, c, someDay-Day(1000+i), 1)
	}
	c.GiveBack(t.Context(), somebody, someDay+50)
	if got := c.count(somebody, someDay+51); got != 0 {
		t.Errorf("got count %d on a day without requests, want 0", got)
	}
	wantCount(t, c, someDay, 101)
}

func TestMemoryOfAllDaysIsBounded(t *testing.T) {
	const most = maxSubjects / shards
	s := &shard{}
	for day := someDay; day < someDay+4; day++ {
		s.add(Account(7), s.on(day), 90)
		for i := range Subject(most) {
			s.add(i<<32+1<<40, s.on(day), 1)
		}
		total := 0
		for _, d := range s.days {
			total += len(d.counts)
		}
		if total > 2*most {
			t.Errorf("got %d subjects in memory, want at most %d", total, 2*most)
		}
		if got := s.peek(Account(7), day); got != 90 {
			t.Errorf("got count %d for the largest count, want 90", got)
		}
		if got := s.peek(Account(7), day-1); day > someDay && got != 90 {
			t.Errorf("got count %d for the day before, want 90", got)
		}
	}
}

func TestTakeDoesNotAllocate(t *testing.T) {
	c := NewCounter()
	for _, day := range []Day{someDay, someDay + 1} {
		c.Take(t.Context(), somebody, day, 0)
	}
	day := someDay
	got := testing.AllocsPerRun(1000, func() {
		day = 2*someDay + 1 - day
		c.Take(t.Context(), somebody, day, 0)
	})
	if got != 0 {
		t.Errorf("got %v allocations for each request, want 0", got)
	}
}

// ledgerOnDay is a server that starts on a day.
func ledgerOnDay(t *testing.T, s *store.Store, day Day) (*Ledger, *Counter) {
	t.Helper()
	counter := NewCounter()
	ledger := NewLedger(s, counter, true, dropFormer, slog.New(slog.DiscardHandler))
	if err := ledger.Load(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	return ledger, counter
}

// Counts survive a wrong clock, wherever in its course the server restarts.
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
					if got := c.count(somebody, day); got != n {
						t.Errorf("%s: got %d of the address, want %d", when, got, n)
					}
					if got := c.count(Account(acc.ID), day); got != n {
						t.Errorf("%s: got %d of the account, want %d", when, got, n)
					}
				}
				ledger, counter := ledgerOnDay(t, s, someDay)
				count(counter, someDay, 5)
				ledger.Write(t.Context())
				count(counter, wrong, 3) // the clock jumps
				ledger.Write(t.Context())
				if _, err := ledger.merge(t.Context(), wrong); err != nil {
					t.Fatal(err)
				}

				ledger, counter = ledgerOnDay(t, s, wrong) // it restarts while the clock is wrong,
				want(counter, "restarted on the wrong day", wrong, 3)
				count(counter, wrong, 1)
				ledger.Write(t.Context())
				want(counter, "set right", someDay, 5) // and is set right
				count(counter, someDay, 2)
				ledger.Write(t.Context())

				_, counter = ledgerOnDay(t, s, someDay)
				want(counter, "restarted on the right day", someDay, 7)
				want(counter, "jumps again", wrong, 4)
				_, counter = ledgerOnDay(t, s, someDay+3)
				want(counter, "three days later", someDay+3, 0)
			})
		})
	}
}

// Once the clock is trusted, other days go: those before, and those that a
// wrong clock left in the future.
func TestTidyDeletesOtherDays(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ledger, counter := ledgerOnDay(t, s, someDay)
		for _, day := range []Day{someDay - 365, someDay - 2, someDay - 1, someDay, someDay + 1, someDay + 2, someDay + 365} {
			counter.Take(t.Context(), somebody, day, 0)
			ledger.Write(t.Context())
		}
		if err := Tidy(t.Context(), s, someDay); err != nil {
			t.Fatal(err)
		}
		var got []string
		s.Read.CountBatch.Query().Order(countbatch.ByDay()).Select(countbatch.FieldDay).ScanX(t.Context(), &got)
		if want := []string{(someDay - 1).String(), someDay.String(), (someDay + 1).String()}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("got batches of %v, want of %v", got, want)
		}
	})
}

// A server with a wrong clock does not disturb the others' counts in Redis.
func TestRedisWithAWrongClock(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, time.Minute)
	want := 0
	for _, jump := range jumps {
		wantCount(t, stores[0], someDay, want+1)
		if day := wrongDay(jump); day != someDay {
			wantCount(t, stores[1], day, 1)
			wantCount(t, stores[1], day, 2)
			stores[1].GiveBack(t.Context(), somebody, day)
		}
		wantCount(t, stores[1], someDay, want+2)
		want += 2
	}
	wantCount(t, stores[0], someDay+1000, 1)
	server.Stop() // the right day is still known without Redis
	for _, s := range stores {
		if got := s.(*Redis).local.count(somebody, someDay); got < want-1 {
			t.Errorf("got count %d without Redis, want at least %d", got, want-1)
		}
	}
}

// A full table of epochs makes room for the current day, not for a wrong one.
func TestBirthsForgetOtherDays(t *testing.T) {
	b := births{}
	for i := range Subject(maxSubjects / shards) {
		b[change{someDay + 365*Day(i%2), i}] = 1
	}
	b.changed(change{someDay, somebody}, taken{count: slack + 1, birth: 7})
	if want := maxSubjects/shards/2 + 1; len(b) != want || b[change{someDay, 0}] != 1 || b[change{someDay, somebody}] != 7 {
		t.Errorf("got %d epochs, want %d, all of the current day", len(b), want)
	}
}
