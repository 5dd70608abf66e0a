package client

import (
	"net/http"
	"net/netip"
	"palmares/internal/dev/check"
	"testing"
)

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
		if !within(peer, trusted) && got != peer {
			t.Errorf("%q from %q: got %s, want the peer, which is no proxy", forwarded, remote, got)
		}
		if again := address(forged + "," + forwarded); !within(got, trusted) && again != got {
			t.Errorf("%q before %q: got %s, want %s", forged, forwarded, again, got)
		}
		check.True(t, Network(got) != "" && WiderNetwork(got) != "", "%s: got no network, want one", got)
	})
}
