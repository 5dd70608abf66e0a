package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"palmares/internal/dev/check"
)

// privateHosts are not public addresses, in every spelling.
var privateHosts = []string{
	"127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[::127.0.0.1]",
	"[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1]", "[FE80::1%25eth0]",
	"169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "168.63.129.16", "100.100.100.200", "192.0.0.192",
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]",
	"100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "[::]", "[::ffff:0.0.0.0]",
	"224.0.0.1", "239.255.255.250", "[ff02::1]", "[ff0e::1]", "255.255.255.255", "240.0.0.1",
	"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1", "[2001:db8::1]", "[3fff::1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::7f00:1]", // NAT64
	"[2002:7f00:1::]", "[2002:a00:1::1]", // 6to4
	"[2001:0:7f00:1::]", "[::ffff:0:127.0.0.1]", "[100::1]", "[4000::1]", // Teredo, SIIT, nobody's
}

func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	w := New(Config{})
	for _, host := range privateHosts {
		got, err := w.checkURL("https://" + host + "/hook")
		check.Equal[error](t, err, errPrivateAddress, "%s: %q", host, got)
		check.Try(w.checkURL("https://"+strings.ToUpper(host)+":8443")).Fails(t, "%s with a port", host)
		address := strings.ReplaceAll(strings.Trim(host, "[]"), "%25", "%")
		check.True(t, !w.policy().MayDial(netip.MustParseAddr(address)), "%s: got MayDial true, want false", address)
	}
	for _, address := range []string{"8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "11.0.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		check.True(t, w.policy().MayDial(netip.MustParseAddr(address)), "%s: got MayDial false, want true", address)
	}
}

// With Loopback, this machine is allowed, but no other private address.
func TestLoopback(t *testing.T) {
	t.Parallel()
	w := New(Config{Loopback: true})
	for _, address := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "8.8.8.8"} {
		check.True(t, w.policy().MayDial(netip.MustParseAddr(address)), "%s: got MayDial false, want true", address)
	}
	for _, address := range []string{"10.0.0.1", "169.254.169.254", "0.0.0.0", "::", "::127.0.0.1", "64:ff9b::7f00:1"} {
		check.True(t, !w.policy().MayDial(netip.MustParseAddr(address)), "%s: got MayDial true, want false", address)
	}
	for _, valid := range []string{"http://localhost:8080/x", "http://LOCALHOST", "http://127.0.0.1", "http://[::1]:99", "https://localhost", "https://hooks.example"} {
		_, err := w.checkURL(valid)
		check.Equal(t, err, nil, valid)
	}
	for _, invalid := range []string{"http://hooks.example", "http://8.8.8.8", "http://localhost.example", "http://10.0.0.1", "https://10.0.0.1"} {
		check.Try(w.checkURL(invalid)).Fails(t, invalid)
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	w := New(Config{})
	for text, want := range map[string]string{
		"https://hooks.example":                   "https://hooks.example",
		" HTTPS://Hooks.Example/Path?q=1#part \n": "https://Hooks.Example/Path?q=1",
		"https://hooks.example:8443/":             "https://hooks.example:8443/",
		"https://hooks.example.":                  "https://hooks.example.",
		"https://bücher.example/ä":                "https://b%C3%BCcher.example/%C3%A4",
		"https://8.8.8.8/":                        "https://8.8.8.8/",
		"https://[2606:4700::1111]/":              "https://[2606:4700::1111]/",
		"https://7-zip.0x":                        "https://7-zip.0x",
	} {
		got := check.Try(w.checkURL(text)).OK(t, text)
		check.Equal(t, got, want, text)
	}
	for _, text := range []string{
		"", "hooks.example", "//hooks.example", "https:", "https://", "https:///x", "https:hooks.example", "https://:443", "https://?x",
		"http://hooks.example", "ftp://hooks.example", "javascript:alert(1)", "file:///etc/passwd", "gopher://hooks.example", "unix:///x",
		"http://localhost", "http://127.0.0.1",
		"https://user@hooks.example", "https://user:password@hooks.example", "https://hooks.example@127.0.0.1", "https://@hooks.example",
		`https://hooks.example\@127.0.0.1/`, "https://hooks.example%00/", "https://hooks\n.example", "https://hooks .example", "https://%31%32%37.0.0.1",
		"https://2130706433", "https://0x7f000001", "https://0X7F.1", "https://017700000001", "https://0177.0.0.1", "https://127.1", "https://127.0.0.1.",
		"https://0x7f.0.0.0x1", "https://127.0.0.01", "https://256.256.256.256", "https://09.1.1.08", "https://１２７.0.0.1", "https://①②⑦.0.0.1", "https://99999999999999999999999",
		"https://hooks.example:0", "https://hooks.example:65536", "https://hooks.example:x", "https://hooks.example:-1",
		"https://[::1", "https://[::1]x", "https://[127.0.0.1]", "https://[fe80::1%eth0]",
		"https://hooks.example/" + strings.Repeat("a", maxURL),
	} {
		got, err := w.checkURL(text)
		check.Fails(t, err, "%.60q: %.60q", text, got)
	}
}

// Proxies of the environment are not used: they would connect for us.
func TestNoProxy(t *testing.T) {
	transport := New(Config{}).transport.(*http.Transport)
	check.True(t, transport.Proxy == nil, "got a proxy, want none")
}

// nameServer is a DNS server that resolves every name to the same addresses.
type nameServer struct {
	net.PacketConn
	mu        sync.Mutex
	addresses []netip.Addr
}

func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn := check.Try(net.ListenPacket("udp", "127.0.0.1:0")).OK(t)
	s := &nameServer{PacketConn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go s.serve()
	return s
}

func (s *nameServer) resolveTo(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = nil
	for _, address := range addresses {
		s.addresses = append(s.addresses, netip.MustParseAddr(address))
	}
}

func (s *nameServer) serve() {
	question := make([]byte, 1_500)
	for {
		n, from, err := s.ReadFrom(question)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(question[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		m.Answers = s.answers(m.Questions[0])
		if answer, err := m.Pack(); err == nil {
			_, _ = s.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) answers(q dnsmessage.Question) (all []dnsmessage.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	for _, address := range s.addresses {
		switch {
		case q.Type == dnsmessage.TypeA && address.Is4():
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case q.Type == dnsmessage.TypeAAAA && address.Is6():
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	return all
}

// resolver returns a resolver that queries only this server.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.LocalAddr().String())
	}}
}

// A name that resolves to a public address at first and to a private one when we
// connect is blocked. If it resolves to several addresses, the private ones are skipped.
func TestDNSRebinding(t *testing.T) {
	t.Parallel()
	const name = "hooks.example"
	const blocked = "blocked: the host name resolves to a private network address"
	names := startNameServer(t)
	s := newSQLiteFixture(t)
	s.freezeClock()
	s.resolver = names.resolver()
	s.transport = s.newTransport()
	r := newReceiver(t)
	e := s.add(NewEndpoint{URL: "https://" + name})
	e.URL = "http://" + name + r.URL[strings.LastIndexByte(r.URL, ':'):]
	delivered := 0
	for _, test := range []struct {
		to       []string
		loopback bool // which stands in for a public address
		response string
	}{
		{[]string{"127.0.0.1"}, true, ""}, // to show that it could arrive
		{[]string{"127.0.0.1"}, false, blocked},
		{[]string{"::ffff:127.0.0.1"}, false, blocked},
		{[]string{"::1"}, false, blocked},
		{[]string{"0.0.0.0"}, false, blocked}, // which also leads to this machine
		{[]string{"::"}, false, blocked},
		{[]string{"10.0.0.1"}, true, blocked},
		{[]string{"169.254.169.254"}, true, blocked},
		{[]string{"64:ff9b::7f00:1"}, false, blocked},
		{[]string{"2002:7f00:1::"}, false, blocked},
		{[]string{"127.0.0.1", "::1", "10.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"}, false, blocked},
		{[]string{"10.0.0.1", "169.254.169.254", "127.0.0.1"}, true, ""},
		{[]string{"127.0.0.1", "10.0.0.1"}, true, ""},
		{[]string{"fd00:ec2::254", "127.0.0.1"}, true, ""},
		{[]string{"10.0.0.1", "fd00:ec2::254", "192.168.1.1"}, true, blocked},
		{nil, true, "the host name could not be resolved"},
	} {
		names.resolveTo("93.184.216.34")
		before := check.Try(s.resolver.LookupHost(t.Context(), name)).OK(t)
		check.Must(t, len(before), 1, before)
		check.Must(t, before[0], "93.184.216.34")
		names.resolveTo(test.to...)
		s.Loopback = test.loopback
		s.transport.CloseIdleConnections()
		s.clock.advance(testWindow)
		attempt := check.Try(s.Test(t.Context(), e)).OK(t, test.to)
		check.Equal(t, attempt.Response, test.response, test.to)
		check.Equal(t, attempt.Delivered, test.response == "", test.to)
		if test.response == "" {
			delivered++
		}
	}
	check.Equal(t, len(r.all()), delivered, "requests")
}

// FuzzRetryAfter checks that a receiver can postpone its events for at most a day, and that
// seconds and dates mean the same.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "120", "-1", "99999999999999999999", "Wed, 18 Nov 2026 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "1.5", " 5"} {
		f.Add(value, uint16(120))
	}
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string, seconds uint16) {
		wait := func(value string) time.Duration { return retryAfter(http.Header{"Retry-After": {value}}, now) }
		got := wait(value)
		check.True(t, got >= 0 && got <= maxWait, "%q: got %s, want at most %s", value, got, maxWait)
		want := time.Duration(seconds) * time.Second
		check.Equal(t, wait(strconv.Itoa(int(seconds))), want, "%d", seconds)
		check.Equal(t, wait(now.Add(want).Format(http.TimeFormat)), want)
	})
}
