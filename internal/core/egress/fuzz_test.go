package egress

import (
	"net/netip"
	"palmares/internal/dev/check"
	"testing"
)

// FuzzURL checks that an accepted URL is https, names nobody, has no private address, and is
// its own normal form.
func FuzzURL(f *testing.F) {
	for _, address := range []string{
		"https://example.com/hook?x=1#y", " https://example.com", "https://127.0.0.1", "https://[::1]:443/", "https://[::ffff:10.0.0.1]", "https://2130706433",
		"https://0x7f.1", "https://user@example.com", "http://example.com", "https://example.com:0", "https:///x", "https://169.254.169.254", "https://[fe80::1%25eth0]/", "HTTPS://EXAMPLE.com.",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := Policy{}.CheckURL(address)
		if err != nil {
			return
		}
		check.Equal(t, u.Scheme, "https", address)
		check.Equal(t, u.User, nil, address)
		check.True(t, u.Hostname() != "", "%q: got %s, want an https URL of a host", address, u)
		check.Equal(t, u.Fragment, "", address)
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
			if ip = ip.WithZone("").Unmap(); ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
				t.Errorf("%q: got %s, want no private address", address, ip)
			}
		}
		again := check.Try((Policy{}).CheckURL(u.String())).OK(t, address)
		check.Equal(t, again.String(), u.String(), "%q: from %q", address, u)
	})
}
