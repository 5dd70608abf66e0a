package quota

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
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
		if got := Decide(c.now, DayOf(c.now), c.limit, c.count); got != c.want {
			t.Errorf("%v, %d of %d: got %+v, want %+v", c.now, c.count, c.limit, got, c.want)
		}
	}
	if day := DayOf(midnight); day.String() != "2026-11-16" || DayOf(midnight.Add(-1)) != day-1 || DayOf(noon.In(time.FixedZone("", -12*3600))).String() != "2026-11-15" {
		t.Errorf("got %s, want 2026-11-16 to start at midnight UTC", day)
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
			t.Errorf("got two subjects for %s and %s, want one", pair[0], pair[1])
		}
	}
	for subject, account := range map[Subject]bool{
		Account(0): true, Account(1<<32 - 1): true, Account(0) - 1: false, Account(1<<32-1) + 1: false,
		Address(netip.MustParseAddr("255.255.255.255")): false,
	} {
		if id, ok := subject.account(); ok != account {
			t.Errorf("%x: got account %d, %t, want %t", uint64(subject), id, ok, account)
		}
	}
	if id, ok := Account(7).account(); id != 7 || !ok {
		t.Errorf("got account %d, %t, want 7", id, ok)
	}
	for what, got := range map[string][2]Subject{
		"IPv4":    {Address(netip.MustParseAddr("192.0.2.1")), 1<<32 | 0xC0000201},
		"IPv6":    {Address(netip.MustParseAddr("2001:db8:1:2:3::")), 0x20010DB800010002},
		"account": {Account(1), 2<<32 | 1},
		"refunds": {Account(1).refunds(), 1<<62 | 2<<32 | 1},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %x, want %x, which stored counts have", what, uint64(got[0]), uint64(got[1]))
		}
	}
	seen := map[Subject]string{Account(1): "account 1", Account(2): "account 2"}
	for _, text := range []string{"0.0.0.1", "0.0.0.2", "192.0.2.1", "2001:db8::", "2001:db8:0:1::", "::1", "fe80::"} {
		subject := Address(netip.MustParseAddr(text))
		if other, ok := seen[subject]; ok {
			t.Errorf("got the subject of %s for %s, want another", other, text)
		}
		seen[subject] = text
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
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
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := ClientAddress(r, trusted); got.String() != c.want {
			t.Errorf("%s, %q: got %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

func TestNetworks(t *testing.T) {
	for address, want := range map[string][2]string{
		"192.0.2.77":           {"192.0.2.77", "192.0.2.0/24"},
		"2001:db8:1:2:3:4:5:6": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"2001:db8:1:ffff::1":   {"2001:db8:1:ffff::/64", "2001:db8:1::/48"},
		"::1":                  {"::/64", "::/48"},
	} {
		parsed := netip.MustParseAddr(address)
		if got := [2]string{Network(parsed), WiderNetwork(parsed)}; got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
	if network, wider := Network(netip.Addr{}), WiderNetwork(netip.Addr{}); network == "" || wider == "" {
		t.Errorf("invalid address: got %q and %q, want no empty names", network, wider)
	}
}
