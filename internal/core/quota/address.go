package quota

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddress is where a request comes from: the peer, or where the peer is
// a proxy that we trust, whoever that says it came from. Its list is read from
// the right, since everything left of the first address that is not one of our
// proxies may be made up.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer := parseAddress(r.RemoteAddr)
	if !within(peer, trusted) {
		return peer
	}
	client := peer
	said := strings.Join(r.Header["X-Forwarded-For"], ",")
	for said != "" {
		var last string
		if i := strings.LastIndexByte(said, ','); i >= 0 {
			said, last = said[:i], said[i+1:]
		} else {
			said, last = "", said
		}
		client = parseAddress(strings.TrimSpace(last))
		if !client.IsValid() {
			return peer // a list that cannot be read says nothing
		}
		if !within(client, trusted) {
			break
		}
	}
	return client
}

// parseAddress reads an address with or without a port, brackets and a zone.
func parseAddress(text string) netip.Addr {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return address.WithZone("").Unmap()
	}
	if address, err := netip.ParseAddrPort(text); err == nil {
		return address.Addr().WithZone("").Unmap()
	}
	return netip.Addr{}
}

func within(address netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// Network is the text of what is counted together: an IPv4 address, or the
// first half of an IPv6 address.
func Network(address netip.Addr) string {
	if address.Is4() || !address.IsValid() {
		return address.String()
	}
	half, _ := address.Prefix(64) // an IPv6 address has more
	return half.String()
}

// WiderNetwork is the text of the network around that, as providers hand them
// out: who has a /48 of IPv6 has 65,536 halves to come from.
func WiderNetwork(address netip.Addr) string {
	bits := 48
	if address.Is4() {
		bits = 24
	}
	wider, err := address.Prefix(bits)
	if err != nil { // of no address
		return address.String()
	}
	return wider.String()
}
