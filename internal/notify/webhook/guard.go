package webhook

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"palmares/internal/core/problem"
)

const longestURL = 2_000

// checkURL takes an address that events may be sent to. What its name stands
// for is looked at whenever it is dialled, since it may change.
func (w *Webhooks) checkURL(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Hostname() == "" || len(text) > longestURL || u.Opaque != "" {
		return "", errNoAddress
	}
	if u.User != nil {
		return "", problem.New(problem.BadInput, "An address must not hold a user name or password: check the signature instead.")
	}
	u.Fragment, u.RawFragment = "", ""
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil && looksLikeNumber(u.Hostname()) || !validPort(u.Port()) {
		return "", errNoAddress
	}
	local := strings.EqualFold(u.Hostname(), "localhost") || err == nil && ip.Unmap().IsLoopback()
	switch {
	case u.Scheme == "https", u.Scheme == "http" && local && w.Loopback:
	default:
		return "", problem.New(problem.BadInput, "Events are sent over https only.")
	}
	if err == nil && !w.mayDial(ip) {
		return "", errForbidden
	}
	return u.String(), nil
}

// looksLikeNumber tells spellings of an IPv4 address that some resolvers take,
// such as 2130706433, 0x7f000001 or 127.1. No public name ends like that.
func looksLikeNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func validPort(port string) bool {
	number, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && number > 0
}

var errNoAddress = problem.New(problem.BadInput, "This is not an address of the form https://host/path.")

var errForbidden = problem.New(problem.BadInput, "Events are not sent to addresses of private networks.")

// newClient follows no redirects, uses no proxy, and dials no address that is
// not everybody's: also not one that a name has come to stand for.
func (w *Webhooks) newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Resolver: w.resolver, Control: func(_, address string, _ syscall.RawConn) error {
		peer, err := netip.ParseAddrPort(address)
		if err != nil || !w.mayDial(peer.Addr()) {
			return errForbidden
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        w.TLS,
			TLSHandshakeTimeout:    5 * time.Second,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // an answer is what was sent, not what it unfolds to
			MaxIdleConnsPerHost:    atOnce,
			MaxIdleConns:           1_000,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 32 << 10,
			// A connection that has died in silence is not used for long.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// forbidden are networks that are not for everybody, besides those that
// netip knows itself.
var forbidden = func() (all []netip.Prefix) {
	for _, network := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "255.255.255.255/32",
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // for documentation
		"168.63.129.16/32",       // Azure tells machines about themselves there
		"2001::/23", "2002::/16", // with an IPv4 address inside, or for protocols
		"2001:db8::/32", "3fff::/20", // for documentation
	} {
		all = append(all, netip.MustParsePrefix(network))
	}
	return all
}()

// given is what IPv6 addresses are given out of. The rest is nobody's, or has
// an IPv4 address inside.
var given = netip.MustParsePrefix("2000::/3")

// mayDial tells whether an address is one that anybody may be at.
func (w *Webhooks) mayDial(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if ip.IsLoopback() {
		return w.Loopback
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !given.Contains(ip) {
		return false
	}
	for _, network := range forbidden {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// unreachable says in our words why there was no answer.
func unreachable(err error) string {
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, errForbidden):
		return "refused: the name stands for an address of a private network"
	case errors.As(err, &dns):
		return "the name cannot be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case isTLS(err):
		return "the TLS certificate or handshake is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	}
	return "no connection"
}
