// Package client finds out where requests come from.
package client

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Address returns the address that a request comes from: its peer, or the
// one in X-Forwarded-For if the peer is a trusted proxy. The list is read from
// the right, because everything left of the first address that is not a trusted
// proxy may be forged.
func Address(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer := parseAddress(r.RemoteAddr)
	forwarded := strings.Join(r.Header["X-Forwarded-For"], ",")
	if forwarded == "" || !within(peer, trusted) {
		return peer
	}
	client := peer
	for _, text := range slices.Backward(strings.Split(forwarded, ",")) {
		client = parseAddress(strings.TrimSpace(text))
		if !client.IsValid() {
			return peer // ignore a malformed list
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

// ParseNetworks parses addresses and networks separated by commas.
func ParseNetworks(list string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if address, err := netip.ParseAddr(item); err == nil {
			address = address.Unmap().WithZone("") // the form of parseAddress
			networks = append(networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("must be addresses or networks such as 10.0.0.0/8, separated by commas (got %q)", item)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func within(address netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

// Network returns the network whose requests are counted together, as text: an
// IPv4 address, or the /64 network of an IPv6 address.
func Network(address netip.Addr) string {
	if address.Is4() || !address.IsValid() {
		return address.String()
	}
	network, _ := address.Prefix(64) // an IPv6 address has more bits
	return network.String()
}

// WiderNetwork returns the larger network that contains it, as providers assign
// them: one customer with a /48 network has 65,536 /64 networks.
func WiderNetwork(address netip.Addr) string {
	bits := 48
	if address.Is4() {
		bits = 24
	}
	wider, _ := address.Prefix(bits) // an address has more bits
	return wider.String()
}
