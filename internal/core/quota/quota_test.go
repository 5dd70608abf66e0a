package quota

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	midnight := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now          time.Time
		quota, count int
		want         Decision
	}{
		{noon, 100, 1, Decision{true, 99, midnight, 12 * time.Hour}},
		{noon, 100, 100, Decision{true, 0, midnight, 12 * time.Hour}},
		{noon, 100, 101, Decision{false, 0, midnight, 12 * time.Hour}},
		{noon, 0, 1_000_000, Decision{true, 0, midnight, 12 * time.Hour}},
		{midnight.Add(-time.Millisecond), 100, 101, Decision{false, 0, midnight, time.Second}},
	} {
		if got := Decide(c.now, DayOf(c.now), c.quota, c.count); got != c.want {
			t.Errorf("%v %d of %d: %+v", c.now, c.count, c.quota, got)
		}
	}
	if day := DayOf(midnight); day.String() != "2026-11-16" || DayOf(midnight.Add(-1)) != day-1 || DayOf(noon.In(time.FixedZone("", -12*3600))).String() != "2026-11-15" {
		t.Errorf("%s begins wrongly", day)
	}
}

var someDay = DayOf(time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC))

// grants lets many callers ask at once, and counts who is answered.
func grants(stores []Store, subject Subject, day func() Day, quota, each int) int {
	var granted atomic.Int64
	var all sync.WaitGroup
	for _, s := range stores {
		for range 50 {
			all.Go(func() {
				for range each / 50 {
					if s.Take(context.Background(), subject, day(), quota) <= quota {
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
	if n := grants([]Store{c, c, c, c}, Account(1), today, 100, 1000); n != 100 {
		t.Errorf("%d of 4 × 1,000 were answered, not 100", n)
	}
	c.GiveBack(t.Context(), Account(1), someDay)
	if n := grants([]Store{c}, Account(1), today, 100, 50); n != 1 {
		t.Errorf("%d were answered for the one given back", n)
	}
}

// Midnight passes while everybody asks: each day has its own quota, whole.
func TestMidnight(t *testing.T) {
	c := NewCounter()
	var asked atomic.Int64
	passing := func() Day {
		if asked.Add(1) > 2000 {
			return someDay + 1
		}
		return someDay
	}
	if n := grants([]Store{c, c, c, c}, Account(1), passing, 100, 1000); n != 200 {
		t.Errorf("%d were answered on two days, not 200", n)
	}
	// A clock that steps back finds the day as it was, and so does one that
	// goes on.
	for _, day := range []Day{someDay, someDay + 1, someDay} {
		if count := c.Take(t.Context(), Account(1), day, 100); count != 101 {
			t.Errorf("%s: counted as %d", day, count)
		}
	}
	if count := c.Take(t.Context(), Account(1), someDay+2, 100); count != 1 {
		t.Errorf("a new day begins with %d", count)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := &shard{}
	on := s.on(someDay)
	s.add(Account(7), on, 90)
	for i := range Subject(2 * maxSubjects / shards) {
		s.add(i<<32+1<<40, on, 1)
	}
	if len(on.counts) > maxSubjects/shards {
		t.Errorf("%d subjects are kept", len(on.counts))
	}
	if on.counts[Account(7)] != 90 {
		t.Error("who was counted most is forgotten before who was counted once")
	}
}

func TestSubjects(t *testing.T) {
	same := [][2]string{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:db8::2"},
		{"2001:db8:0:0:ffff::", "2001:db8::"},
	}
	for _, pair := range same {
		if Address(netip.MustParseAddr(pair[0])) != Address(netip.MustParseAddr(pair[1])) {
			t.Errorf("%s and %s are two", pair[0], pair[1])
		}
	}
	seen := map[Subject]string{Account(1): "account 1", Account(2): "account 2"}
	for _, text := range []string{"0.0.0.1", "0.0.0.2", "192.0.2.1", "2001:db8::", "2001:db8:0:1::", "::1", "fe80::"} {
		subject := Address(netip.MustParseAddr(text))
		if other, twice := seen[subject]; twice {
			t.Errorf("%s is counted as %s", text, other)
		}
		seen[subject] = text
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for _, c := range []struct {
		peer  string
		heard []string
		want  string
	}{
		{"192.0.2.1:4711", nil, "192.0.2.1"},
		{"192.0.2.1:4711", []string{"203.0.113.9"}, "192.0.2.1"},
		{"10.0.0.1:4711", nil, "10.0.0.1"},
		{"10.0.0.1:4711", []string{""}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[::ffff:10.0.0.1]:4711", []string{"203.0.113.9"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"198.51.100.7, 203.0.113.9"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"198.51.100.7", "203.0.113.9"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"198.51.100.7, 203.0.113.9, 10.2.3.4"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"10.9.9.9, 10.2.3.4"}, "10.9.9.9"},
		{"10.0.0.1:4711", []string{"203.0.113.9:1234"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"[2001:db8::7]:1234"}, "2001:db8::7"},
		{"10.0.0.1:4711", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"10.0.0.1:4711", []string{"fe80::1%eth0"}, "fe80::1"},
		{"10.0.0.1:4711", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"[2001:db8:1::5]:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[fe80::2%lo]:80", []string{"203.0.113.9"}, "fe80::2"},
		{"10.0.0.1:4711", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"unknown, 203.0.113.9"}, "203.0.113.9"},
		{"10.0.0.1:4711", []string{"203.0.113.9,"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"1.2.3.4.5"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"'; DROP TABLE accounts"}, "10.0.0.1"},
		{"10.0.0.1:4711", []string{"203.0.113.9\r\nX: y"}, "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.heard}}
		if got := ClientAddress(r, trusted); got.String() != c.want {
			t.Errorf("%s, %q: %s, not %s", c.peer, c.heard, got, c.want)
		}
	}
}
