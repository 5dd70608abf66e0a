package quota

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

var someDay = DayOf(time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC))

var somebody = Address(netip.MustParseAddr("203.0.113.9"))

// jumps are how far off a wrong clock is.
var jumps = map[string]time.Duration{
	"hours ahead":   20 * time.Hour,
	"hours behind":  -20 * time.Hour,
	"a year ahead":  365 * 24 * time.Hour,
	"a year behind": -365 * 24 * time.Hour,
}

// noon is noon on someDay.
var noon = someDay.End().Add(-12 * time.Hour)

// wrongDay is the day that a clock shows when it is off by a jump.
func wrongDay(jump time.Duration) Day { return DayOf(noon.Add(jump)) }

// wantCount counts one request and checks the day's count.
func wantCount(t *testing.T, s Store, day Day, want int) {
	t.Helper()
	check.Equal(t, s.Take(t.Context(), somebody, day, 0), want, "%s: count", day)
}

// take counts several requests, and returns the last count.
func take(t *testing.T, s Store, subject Subject, times, limit int) (last int) {
	t.Helper()
	for range times {
		last = s.Take(t.Context(), subject, someDay, limit)
	}
	return last
}

// grants sends many concurrent requests to each store, and returns how many are
// granted.
func grants(stores []Store, subject Subject, day func() Day, limit, each int) int {
	var granted atomic.Int64
	var all sync.WaitGroup
	for _, s := range stores {
		for range 50 {
			all.Go(func() {
				for range each / 50 {
					if s.Take(context.Background(), subject, day(), limit) <= limit {
						granted.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	return int(granted.Load())
}

func today() Day { return someDay }

func TestExactUnderConcurrency(t *testing.T) {
	c := NewCounter()
	check.Equal(t, grants([]Store{c, c, c, c}, Account(1), today, 100, 1000), 100, "of 4 × 1,000 granted")
	c.Refund(t.Context(), Account(1), someDay)
	check.Equal(t, grants([]Store{c}, Account(1), today, 100, 50), 1, "granted after one refund")
}

// When midnight passes under load, each day has its own full quota.
func TestMidnightUnderLoad(t *testing.T) {
	c := NewCounter()
	var taken atomic.Int64
	passing := func() Day {
		if taken.Add(1) > 2000 {
			return someDay + 1
		}
		return someDay
	}
	check.Equal(t, grants([]Store{c, c, c, c}, Account(1), passing, 100, 1000), 200, "granted on two days")
	// A clock that steps back, or forward again, finds each day's count
	// unchanged.
	for _, day := range []Day{someDay, someDay + 1, someDay} {
		check.Equal(t, c.Take(t.Context(), Account(1), day, 100), 101, "%s: count", day)
	}
	check.Equal(t, c.Take(t.Context(), Account(1), someDay+2, 100), 1, "count on a new day")
}

// fill gives one subject a count of 90 on a day, and many others a count of 1.
func fill(s *shard, day Day, subjects int) {
	on := s.on(day)
	on.counts[Account(7)] = tally{granted: 90}
	for i := range Subject(subjects) {
		s.makeRoom(on)
		on.counts[i<<32+1<<40] = tally{granted: 1}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := &shard{}
	on := s.on(someDay)
	fill(s, someDay, 2*maxSubjects/shardCount)
	got := len(on.counts)
	check.True(t, got <= maxSubjects/shardCount, "got %d subjects in memory, want at most %d", got, maxSubjects/shardCount)
	check.Equal(t, on.counts[Account(7)].count(), 90, "count for the largest count")
}

// One request on a wrong day does not stop the daily reset.
func TestResetAfterWrongDay(t *testing.T) {
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

func TestClockJumpsBackAndForth(t *testing.T) {
	c := NewCounter()
	for i := range 100 {
		wantCount(t, c, someDay, i+1)
		wantCount(t, c, someDay+Day(1000+i), 1)
		wantCount(t, c, someDay-Day(1000+i), 1)
	}
	c.Refund(t.Context(), somebody, someDay+50)
	check.Equal(t, c.get(key{someDay + 51, somebody}).count(), 0, "count on a day without requests")
	wantCount(t, c, someDay, 101)
}

func TestMemoryOfAllDaysIsBounded(t *testing.T) {
	const most = maxSubjects / shardCount
	s := &shard{}
	for day := someDay; day < someDay+4; day++ {
		fill(s, day, most)
		total := 0
		for _, d := range s.days {
			total += len(d.counts)
		}
		check.True(t, total <= 2*most, "got %d subjects in memory, want at most %d", total, 2*most)
		check.Equal(t, s.peek(Account(7), day).count(), 90, "largest count")
		got := s.peek(Account(7), day-1).count()
		check.True(t, day <= someDay || got == 90, "largest count of the day before: got %d, want 90", got)
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
	check.Equal(t, got, 0, "allocations per request")
}

func TestDecide(t *testing.T) {
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	midnight := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now          time.Time
		limit, count int
		want         Decision
	}{
		{noon, 100, 1, Decision{true, 99, midnight, 12 * time.Hour}},
		{noon, 100, 100, Decision{true, 0, midnight, 12 * time.Hour}},
		{noon, 100, 101, Decision{false, 0, midnight, 12 * time.Hour}},
		{noon, 0, 1_000_000, Decision{true, 0, midnight, 12 * time.Hour}},
		{noon.Add(-1), 100, 1, Decision{true, 99, midnight, 12*time.Hour + time.Second}},
		{midnight.Add(-time.Millisecond), 100, 101, Decision{false, 0, midnight, time.Second}},
	} {
		check.Equal(t, Decide(c.now, DayOf(c.now), c.limit, c.count), c.want, "%v, %d of %d", c.now, c.count, c.limit)
	}
	day := DayOf(midnight)
	check.Equal(t, day.String(), "2026-11-16")
	check.Equal(t, DayOf(midnight.Add(-1)), day-1)
	check.Equal(t, DayOf(noon.In(time.FixedZone("", -12*3600))).String(), "2026-11-15")
}

func TestSubjects(t *testing.T) {
	same := [][2]string{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:db8::2"},
		{"2001:db8:0:0:ffff::", "2001:db8::"},
	}
	for _, pair := range same {
		check.Equal(t, Address(netip.MustParseAddr(pair[0])), Address(netip.MustParseAddr(pair[1])), pair)
	}
	for subject, account := range map[Subject]bool{
		Account(0): true, Account(1<<32 - 1): true, Account(0) - 1: false, Account(1<<32-1) + 1: false,
		Hashed(0): true, Hashed(1<<64 - 1): true, Hashed(7).refunds(): false, Hashed(7).mark("a"): false,
		Address(netip.MustParseAddr("255.255.255.255")): false,
	} {
		if got := subject.IsAccount(); got != account {
			t.Errorf("%x: got an account: %t, want %t", uint64(subject), got, account)
		}
	}
	for what, got := range map[string][2]Subject{
		"IPv4":    {Address(netip.MustParseAddr("192.0.2.1")), 1<<32 | 0xC0000201},
		"IPv6":    {Address(netip.MustParseAddr("2001:db8:1:2:3::")), 0x20010DB800010002},
		"account": {Account(1), 2<<32 | 1},
		"hash":    {Hashed(1 << 63), 0x1800000000000000},
		"refunds": {Account(1).refunds(), 1<<62 | 2<<32 | 1},
	} {
		check.Equal(t, got[0], got[1], what)
	}
	seen := map[Subject]string{Account(1): "account 1", Account(2): "account 2"}
	for _, text := range []string{"0.0.0.1", "0.0.0.2", "192.0.2.1", "2001:db8::", "2001:db8:0:1::", "::1", "fe80::"} {
		subject := Address(netip.MustParseAddr(text))
		other, ok := seen[subject]
		check.True(t, !ok, "got the subject of %s for %s, want another", other, text)
		seen[subject] = text
	}
}
