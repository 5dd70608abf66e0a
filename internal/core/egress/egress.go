// Package egress connects to servers that other people name: receivers of webhooks and
// the metadata documents of OAuth clients. It never reaches a private network.
package egress

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Errors of CheckURL. ErrPrivate is also the error of a connection.
var (
	ErrURL      = errors.New("the URL is not valid")
	ErrNotHTTPS = errors.New("the URL does not start with https://")
	ErrUser     = errors.New("the URL contains a user name or password")
	ErrPrivate  = errors.New("the address is in a private network")
)

// Policy says which addresses may be reached: public ones and, with Loopback, those of
// this machine.
type Policy struct{ Loopback bool }

// CheckURL validates and normalizes a URL. Host names are not resolved here, because they
// can change: Dialer checks the address of every connection.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return nil, ErrURL
	}
	if u.User != nil {
		return nil, ErrUser
	}
	u.Fragment, u.RawFragment = "", ""
	ip, err := netip.ParseAddr(u.Hostname())
	isIP := err == nil
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	if err != nil || port == 0 || !isIP && looksLikeNumber(u.Hostname()) {
		return nil, ErrURL
	}
	local := strings.EqualFold(u.Hostname(), "localhost") || isIP && ip.Unmap().IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local || !p.Loopback) {
		return nil, ErrNotHTTPS
	}
	if isIP && !p.MayDial(ip) {
		return nil, ErrPrivate
	}
	return u, nil
}

// looksLikeNumber reports whether some resolvers would read a host as an IPv4
// address, such as 2130706433 or 127.1. No public name ends like that.
func looksLikeNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || last != "" && strings.Trim(last, "0123456789") == ""
}

// Dialer returns a dialer that connects only to addresses of the current policy, no matter
// what a host name resolves to. The resolver may be nil.
func Dialer(policy func() Policy, resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, Resolver: resolver, Control: func(_, address string, _ syscall.RawConn) error {
		peer, err := netip.ParseAddrPort(address)
		if err != nil || !policy().MayDial(peer.Addr()) {
			return ErrPrivate
		}
		return nil
	}}
}

// specialNetworks are not public, in addition to those that netip recognizes.
var specialNetworks = parsePrefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "255.255.255.255/32",
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
	"168.63.129.16/32",       // metadata of Azure machines
	"2001::/23", "2002::/16", // protocols, and addresses that embed an IPv4 address
	"2001:db8::/32", "3fff::/20", // documentation
)

// globalIPv6 holds all public IPv6 addresses. Others are unassigned or embed an
// IPv4 address.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

func parsePrefixes(list ...string) (all []netip.Prefix) {
	for _, prefix := range list {
		all = append(all, netip.MustParsePrefix(prefix))
	}
	return all
}

// MayDial reports whether an address may be reached.
func (p Policy) MayDial(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if ip.IsLoopback() {
		return p.Loopback
	}
	special := slices.ContainsFunc(specialNetworks, func(network netip.Prefix) bool { return network.Contains(ip) })
	return !special && ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || globalIPv6.Contains(ip))
}
