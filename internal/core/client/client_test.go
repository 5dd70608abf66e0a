package client

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"palmares/internal/dev/check"
)

func TestAddress(t *testing.T) {
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
		{"10.0.0.1:4711", []string{"203.0.113.9\r\nX: y"}, "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		check.Equal(t, Address(r, trusted).String(), c.want, "%s, %q", c.peer, c.forwarded)
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
		check.Equal(t, [2]string{Network(parsed), WiderNetwork(parsed)}, want, address)
	}
	network, wider := Network(netip.Addr{}), WiderNetwork(netip.Addr{})
	check.True(t, network != "" && wider != "", "invalid address: got %q and %q, want no empty names", network, wider)
}

// FuzzAddress checks that X-Forwarded-For only counts from trusted proxies, and that
// nothing that a caller writes into it changes the address that the nearest proxy reports.
func FuzzAddress(f *testing.F) {
	f.Add("10.0.0.1:1234", "203.0.113.7", "198.51.100.1")
	f.Add("10.0.0.1:1234", "1.2.3.4, [2001:db8::1]:80, 10.2.0.1", "x")
	f.Add("192.0.2.1:9", "10.0.0.1", "")
	f.Add("[::ffff:10.0.0.1%eth0]:1", "::ffff:1.2.3.4", ",,")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, remote, forwarded, forged string) {
		address := func(header string) netip.Addr {
			return Address(&http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {header}}}, trusted)
		}
		peer, got := parseAddress(remote), address(forwarded)
		check.Equal(t, got.Zone(), "", forwarded)
		check.True(t, !got.Is4In6(), "%q: got %s, want its plain form", forwarded, got)
		check.True(t, within(peer, trusted) || got == peer, "%q from %q: got %s, want the peer, which is no proxy", forwarded, remote, got)
		again := address(forged + "," + forwarded)
		check.True(t, within(got, trusted) || again == got, "%q before %q: got %s, want %s", forged, forwarded, again, got)
		check.True(t, Network(got) != "" && WiderNetwork(got) != "", "%s: got no network, want one", got)
	})
}

func TestParseNetworks(t *testing.T) {
	for list, want := range map[string]string{
		"":                                  "[] <nil>",
		" 10.1.2.3/8, ,192.0.2.7":           "[10.0.0.0/8 192.0.2.7/32] <nil>",
		"::1,fe80::1%eth0,::ffff:192.0.2.7": "[::1/128 fe80::1/128 192.0.2.7/32] <nil>",
		"10.0.0.0/8,proxy":                  `[] must be addresses or networks such as 10.0.0.0/8, separated by commas (got "proxy")`,
	} {
		networks, err := ParseNetworks(list)
		check.Equal(t, fmt.Sprint(networks, " ", err), want, list)
	}
}
