package quota

import (
	"net/netip"
	"testing"
)

func TestNetworks(t *testing.T) {
	for address, want := range map[string][2]string{
		"192.0.2.77":           {"192.0.2.77", "192.0.2.0/24"},
		"2001:db8:1:2:3:4:5:6": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"2001:db8:1:ffff::1":   {"2001:db8:1:ffff::/64", "2001:db8:1::/48"},
		"::1":                  {"::/64", "::/48"},
	} {
		parsed := netip.MustParseAddr(address)
		if got := [2]string{Network(parsed), WiderNetwork(parsed)}; got != want {
			t.Errorf("%s: %v, not %v", address, got, want)
		}
	}
	if one, wider := Network(netip.Addr{}), WiderNetwork(netip.Addr{}); one == "" || wider == "" {
		t.Errorf("no address: %q in %q", one, wider)
	}
}
