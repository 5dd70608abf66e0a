package quota

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/keyusage"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func newAccounts(t *testing.T, s *store.Store, n int) (ids []int) {
	t.Helper()
	for i := range n {
		ids = append(ids, s.Write.Account.Create().SetEmail(fmt.Sprintf("a%d@example.com", i)).SetPlan("developer").SaveX(t.Context()).ID)
	}
	return ids
}

// counted returns the stored counts as text.
func counted(t *testing.T, s *store.Store) (all []string) {
	t.Helper()
	rows := s.Write.KeyUsage.Query().Order(keyusage.ByAccountID(), keyusage.ByDay(), keyusage.ByKey(), keyusage.ByEndpoint()).AllX(t.Context())
	for _, row := range rows {
		all = append(all, fmt.Sprint(row.Day, " ", row.Key, " ", row.Endpoint, " ", row.Requests))
	}
	return all
}

func TestBreakdown(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account := newAccounts(t, s, 1)[0]
		b := NewBreakdown(s, slog.New(slog.DiscardHandler))
		b.Write(t.Context())
		tools, graphql := Call{someDay, account, "key1", "/api/v1/tools"}, Call{someDay, account, "key2", "/graphql"}
		b.Add(tools, 1)
		b.Add(tools, 1)
		b.Add(graphql, 1)
		b.Add(graphql, -1) // a response without changes is free
		b.Write(t.Context())
		b.Add(tools, 1)
		b.Add(Call{someDay + 1, account, "", "/graphql"}, 5)
		b.Write(t.Context())
		b.Write(t.Context())
		want := []string{someDay.String() + " key1 /api/v1/tools 3", (someDay + 1).String() + "  /graphql 5"}
		if got := counted(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Servers that write the same rows neither deadlock nor lose counts.
func TestConcurrentBreakdowns(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := newAccounts(t, s, 30)
		const servers, rounds = 3, 5
		log := &lockedBuffer{}
		var all sync.WaitGroup
		for range servers {
			b := NewBreakdown(s, slog.New(slog.NewTextHandler(log, nil)))
			all.Go(func() {
				for range rounds {
					for _, id := range accounts {
						b.Add(Call{someDay, id, "key", "/graphql"}, 1)
					}
					b.Write(t.Context())
				}
			})
		}
		all.Wait()
		sum := s.Write.KeyUsage.Query().Aggregate(ent.Sum(keyusage.FieldRequests)).IntX(t.Context())
		if want := servers * rounds * len(accounts); sum != want || log.String() != "" {
			t.Errorf("got %d requests and log %q, want %d and no warning", sum, log.String(), want)
		}
	})
}

// What cannot be written is counted by the next write.
func TestBreakdownWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	account := newAccounts(t, s, 1)[0]
	log := &lockedBuffer{}
	b := NewBreakdown(s, slog.New(slog.NewTextHandler(log, nil)))
	for i := range maxRows + 1 { // more than one statement
		b.Add(Call{someDay, account, "key", fmt.Sprintf("/%04d", i)}, 1)
	}
	tooLate, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	b.Write(tooLate)
	b.Write(tooLate)
	check.Equal(t, strings.Count(log.String(), "writing usage by endpoint failed"), 1, "warnings")
	b.Write(t.Context())
	check.Equal(t, len(counted(t, s)), maxRows+1, "rows")
}

// The memory is limited while nothing can be written.
func TestBreakdownMemory(t *testing.T) {
	b := NewBreakdown(nil, slog.New(slog.DiscardHandler))
	for i := range 2 * maxCalls {
		b.Add(Call{someDay, 1, "key", fmt.Sprint(i)}, 1)
	}
	check.Equal(t, len(b.collect()), maxCalls, "counts")
}

func TestTidyBreakdown(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		account := newAccounts(t, s, 1)[0]
		b := NewBreakdown(s, slog.New(slog.DiscardHandler))
		for _, day := range []Day{someDay - 36, someDay - 35, someDay, someDay + 1, someDay + 2} {
			b.Add(Call{day, account, "key", "/graphql"}, 1)
		}
		b.Add(Call{someDay, account + 1, "deleted", "/graphql"}, 1)
		b.Write(t.Context())
		check.OK(t, TidyBreakdown(t.Context(), s, someDay))
		var want []string
		for _, day := range []Day{someDay - 35, someDay, someDay + 1} {
			want = append(want, day.String()+" key /graphql 1")
		}
		if got := counted(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Counting allocates nothing.
func TestBreakdownAllocations(t *testing.T) {
	b, call := NewBreakdown(nil, slog.New(slog.DiscardHandler)), Call{someDay, 1, "key", "/api/v1/tools/{slug}"}
	b.Add(call, 1)
	b.collect()
	check.Equal(t, testing.AllocsPerRun(100, func() { b.Add(call, 1) }), 0, "allocations")
}

func BenchmarkBreakdown(b *testing.B) {
	breakdown := NewBreakdown(nil, slog.New(slog.DiscardHandler))
	call := Call{someDay, 1, "0123456789ab", "/api/v1/tools/{slug}"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			breakdown.Add(call, 1)
		}
	})
}
