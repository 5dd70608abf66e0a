package quota

import (
	"net/netip"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

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
		if Address(netip.MustParseAddr(pair[0])) != Address(netip.MustParseAddr(pair[1])) {
			t.Errorf("got two subjects for %s and %s, want one", pair[0], pair[1])
		}
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
		if got[0] != got[1] {
			t.Errorf("%s: got %x, want %x, which stored counts have", what, uint64(got[0]), uint64(got[1]))
		}
	}
	seen := map[Subject]string{Account(1): "account 1", Account(2): "account 2"}
	for _, text := range []string{"0.0.0.1", "0.0.0.2", "192.0.2.1", "2001:db8::", "2001:db8:0:1::", "::1", "fe80::"} {
		subject := Address(netip.MustParseAddr(text))
		other, ok := seen[subject]
		check.True(t, !ok, "got the subject of %s for %s, want another", other, text)
		seen[subject] = text
	}
}
