package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/countbatch"
	"palmares/ent/usage"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

var (
	someDay  = quota.DayOf(time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC))
	somebody = quota.Address(netip.MustParseAddr("203.0.113.9"))
	account  = quota.Hashed(7 << 60)
)

// server counts like a server that starts on a day.
type server struct {
	*Ledger
	counter *quota.Counter
	log     *strings.Builder
}

func start(t *testing.T, s *store.Store, addresses bool, day quota.Day) server {
	t.Helper()
	counter, log := quota.NewCounter(), &strings.Builder{}
	ledger := New(s, counter, addresses, slog.New(slog.NewTextHandler(log, nil)))
	check.OK(t, ledger.Load(t.Context(), day))
	return server{ledger, counter, log}
}

// count counts requests as the gate does.
func (s server) count(subject quota.Subject, day quota.Day, key, endpoint string, n int) {
	for range n {
		s.counter.Take(context.Background(), subject, day, 0)
	}
	for range -n {
		s.counter.Refund(context.Background(), subject, day)
	}
	if subject.IsAccount() {
		s.Add(Call{day, subject, key, endpoint}, n)
	}
}

func (s server) want(t *testing.T, when string, subject quota.Subject, day quota.Day, want int) {
	t.Helper()
	check.Equal(t, s.counter.Count(t.Context(), subject, day), want, "%s: on %s", when, day)
}

// wantRows checks the stored counts of accounts.
func wantRows(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	var got []string
	for _, row := range s.Write.Usage.Query().Order(usage.BySubject(), usage.ByDay(), usage.ByKey(), usage.ByEndpoint()).AllX(t.Context()) {
		got = append(got, fmt.Sprint(row.Day, " ", row.Key, " ", row.Endpoint, " ", row.Requests))
	}
	check.DeepEqual(t, got, want, "rows")
}

// Servers that write the counts of the same accounts neither deadlock nor lose any.
func TestConcurrentLedgers(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		const servers, rounds, accounts = 3, 10, 30
		var all sync.WaitGroup
		for range servers {
			server := start(t, s, false, someDay)
			all.Go(func() {
				for range rounds {
					for n := range accounts {
						server.Add(Call{someDay, quota.Account(n), "key", "/graphql"}, 1)
					}
					server.Write(t.Context())
				}
				check.Equal(t, server.log.Len(), 0, server.log)
			})
		}
		all.Wait()
		check.Equal(t, s.Read.Usage.Query().Where(usage.Requests(servers*rounds)).CountX(t.Context()), accounts, "accounts with requests: %d", servers*rounds)
	})
}

// A restarted server continues from the counts that were written.
func TestCountsSurviveRestart(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		server := start(t, s, true, someDay)
		server.count(somebody, someDay, "", "", 40)
		server.count(account, someDay, "key1", "/mcp", 4)
		server.count(account, someDay, "key2", "/mcp", 3)
		server.count(quota.Account(9), someDay, "key3", "/mcp", 2)
		server.Write(t.Context())
		server.count(somebody, someDay, "", "", 3)
		server.count(somebody, someDay, "", "", -1)
		server.count(account, someDay, "key2", "/mcp", -1)
		server.Write(t.Context())
		server.count(somebody, someDay, "", "", 50) // lost: the server is killed
		server.count(account, someDay, "", "", 50)

		for range 3 { // each merges the batches left by the previous one
			server = start(t, s, true, someDay)
			server.want(t, "restarted", somebody, someDay, 42)
			server.want(t, "restarted", account, someDay, 6)
			server.want(t, "restarted", quota.Account(9), someDay, 2)
		}
		check.Equal(t, s.Read.CountBatch.Query().Where(countbatch.Day(someDay.String())).CountX(t.Context()), 1, "batches")
		server = start(t, s, false, someDay)
		server.want(t, "addresses are in Redis", somebody, someDay, 0)
		server.want(t, "addresses are in Redis", account, someDay, 6)
	})
}

func TestUsageByKeyAndEndpoint(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		server := start(t, s, true, someDay)
		server.Write(t.Context())
		server.count(account, someDay, "key1", "/api/v1/tools", 2)
		server.count(account, someDay, "key2", "/graphql", 1)
		server.count(account, someDay, "key2", "/graphql", -1) // a response without changes is free
		server.Write(t.Context())
		server.count(account, someDay, "key1", "/api/v1/tools", 1)
		server.count(account, someDay+1, "", "/graphql", 5)
		server.Write(t.Context())
		server.Write(t.Context())
		wantRows(t, s, "2026-11-15 key1 /api/v1/tools 3", "2026-11-16  /graphql 5")
	})
}

// A batch that is written again counts once, with its rows.
func TestBatchCountsOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for _, addresses := range []bool{true, false} {
			server := start(t, s, addresses, someDay)
			server.count(somebody, someDay, "", "", 5)
			server.count(account, someDay, "key", "/mcp", 5)
			for _, b := range server.collect() {
				for range 3 {
					check.OK(t, server.write(t.Context(), b))
				}
			}
		}
		server := start(t, s, true, someDay)
		server.want(t, "written again", somebody, someDay, 5)
		server.want(t, "written again", account, someDay, 10)
	})
}

// A database outage loses nothing, and is logged once.
func TestCountsSurviveAnOutage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		server := start(t, s, true, someDay)
		rename := func(from, to string) {
			check.Try(s.Write.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)).OK(t)
		}
		rename("usages", "elsewhere")
		const writes = 50
		for range writes {
			server.count(somebody, someDay, "", "", 1)
			server.count(account, someDay, "key", "/mcp", 1)
			server.Write(t.Context())
		}
		check.Equal(t, len(server.pending), 1, "pending batches")
		rename("elsewhere", "usages")
		server.Write(t.Context())
		restarted := start(t, s, true, someDay)
		restarted.want(t, "after the outage", somebody, someDay, writes)
		restarted.want(t, "after the outage", account, someDay, writes)
		for _, line := range []string{"writing request counts failed, will retry", "writing request counts works again"} {
			check.Equal(t, strings.Count(server.log.String(), line), 1, "lines: %q", line)
		}
	})
}

// The memory is limited while nothing can be written, but no request of an account is
// lost. More rows are written than fit a statement.
func TestMemoryDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	server := start(t, s, false, someDay)
	for i := range maxCalls + 1_000 {
		server.Add(Call{someDay, account, "key", fmt.Sprint(i)}, 1)
	}
	check.Equal(t, len(server.calls), maxCalls+1, "counts")
	check.Equal(t, server.calls[Call{Day: someDay, Subject: account}], 1_000, "requests without a key")
	server.calls = map[Call]int{}
	for i := range maxRows + 1 {
		server.Add(Call{someDay, account, "key", fmt.Sprint(i)}, 1)
	}
	server.Write(t.Context())
	start(t, s, false, someDay).want(t, "written", account, someDay, maxRows+1)
}

// Counts survive a wrong clock, even if the server restarts in the meantime.
func TestCountsSurviveAWrongClock(t *testing.T) {
	for name, wrong := range map[string]quota.Day{"ahead": someDay + 1, "behind": someDay - 1, "a year ahead": someDay + 365, "a year behind": someDay - 365} {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				count := func(server server, day quota.Day, n int) {
					server.count(somebody, day, "", "", n)
					server.count(account, day, "key", "/mcp", n)
					server.Write(t.Context())
				}
				want := func(server server, when string, day quota.Day, n int) {
					t.Helper()
					server.want(t, when, somebody, day, n)
					server.want(t, when, account, day, n)
				}
				server := start(t, s, true, someDay)
				count(server, someDay, 5)
				count(server, wrong, 3) // the clock jumps
				check.Try(server.merge(t.Context(), wrong)).OK(t)

				server = start(t, s, true, wrong) // a restart while the clock is wrong
				want(server, "restarted on the wrong day", wrong, 3)
				count(server, wrong, 1)
				want(server, "clock corrected", someDay, 5)
				count(server, someDay, 2)

				server = start(t, s, true, someDay)
				want(server, "restarted on the right day", someDay, 7)
				want(server, "jumps again", wrong, 4)
				want(start(t, s, true, someDay+3), "three days later", someDay+3, 0)
			})
		})
	}
}

// Tidy deletes what is over, from a wrong clock or of deleted accounts, and merges old
// usage by day. Servers may tidy at the same time.
func TestTidy(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		create := func(email string) *ent.AccountCreate {
			return s.Write.Account.Create().SetEmail(email).SetPlan("developer")
		}
		create("ana@example.com").SetSubject(int64(account)).ExecX(t.Context())
		older := quota.Account(create("ben@example.com").SaveX(t.Context()).ID)
		deleted := quota.Hashed(8 << 60)
		server := start(t, s, true, someDay)
		for _, day := range []quota.Day{someDay - 365, someDay - 2, someDay - 1, someDay, someDay + 1, someDay + 2, someDay + 365} {
			server.count(somebody, day, "", "", 1)
		}
		for _, day := range []quota.Day{someDay - 36, someDay - 35, someDay, someDay + 1, someDay + 2} {
			server.count(older, day, "", "/mcp", 1)
			server.count(older, day, "key", "/mcp", 2)
		}
		server.count(account, someDay-37, "key", "/mcp", 7)
		server.count(deleted, someDay-1, "key", "/mcp", 1)
		server.count(deleted, someDay, "key", "/mcp", 1)
		server.Write(t.Context())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { check.Equal(t, Tidy(t.Context(), s, someDay), nil) })
		}
		all.Wait()
		server.count(older, someDay-36, "key", "/mcp", 2) // a server that could not write for long
		server.Write(t.Context())
		check.OK(t, Tidy(t.Context(), s, someDay))
		wantRows(t, s,
			"2026-10-10   5", "2026-10-11  /mcp 1", "2026-10-11 key /mcp 2", "2026-11-15  /mcp 1", "2026-11-15 key /mcp 2", "2026-11-16  /mcp 1", "2026-11-16 key /mcp 2",
			"2026-10-09   7", "2026-11-15 key /mcp 1")
		var days []string
		s.Read.CountBatch.Query().Order(countbatch.ByDay()).Select(countbatch.FieldDay).ScanX(t.Context(), &days)
		check.DeepEqual(t, days, []string{"2026-11-14", "2026-11-15", "2026-11-16"}, "batches of days")
	})
}

// Counting allocates nothing.
func TestAllocations(t *testing.T) {
	ledger, call := New(nil, quota.NewCounter(), false, slog.New(slog.DiscardHandler)), Call{someDay, account, "key", "/api/v1/tools/{slug}"}
	ledger.Add(call, 1)
	check.Equal(t, testing.AllocsPerRun(100, func() { ledger.Add(call, 1) }), 0, "allocations")
}

func BenchmarkAdd(b *testing.B) {
	ledger := New(nil, quota.NewCounter(), false, slog.New(slog.DiscardHandler))
	call := Call{someDay, account, "0123456789ab", "/api/v1/tools/{slug}"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ledger.Add(call, 1)
		}
	})
}

// FuzzCounts checks that stored counts are read as they were written, and that other bytes
// are an error or counts.
func FuzzCounts(f *testing.F) {
	f.Add(encode(map[quota.Subject]int{1: 5, 1 << 40: -3}), uint64(7), 9)
	f.Add([]byte{1, 2, 3}, uint64(0), -1)
	f.Fuzz(func(t *testing.T, data []byte, subject uint64, count int) {
		read := map[quota.Subject]int{}
		if decode(data, read) == nil {
			again := map[quota.Subject]int{}
			err := decode(encode(read), again)
			check.True(t, err == nil && maps.Equal(again, read), "%x: got %v and %v after writing, want %v", data, again, err, read)
		}
		again := map[quota.Subject]int{}
		check.OK(t, decode(encode(map[quota.Subject]int{quota.Subject(subject): count}), again), subject)
		check.Equal(t, again[quota.Subject(subject)], count, subject)
	})
}
