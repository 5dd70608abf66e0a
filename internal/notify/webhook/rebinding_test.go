package webhook

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"palmares/internal/dev/testkit"
)

// nameServer is a DNS server whose names stand for what it was told last.
type nameServer struct {
	net.PacketConn
	mu     sync.Mutex
	stands netip.Addr
}

func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{PacketConn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go s.serve()
	return s
}

func (s *nameServer) standsFor(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands = netip.MustParseAddr(address)
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

func (s *nameServer) answers(q dnsmessage.Question) []dnsmessage.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case q.Type == dnsmessage.TypeA && s.stands.Is4():
		return []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: s.stands.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && s.stands.Is6():
		return []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: s.stands.As16()}}}
	}
	return nil
}

// resolver asks this server alone.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.LocalAddr().String())
	}}
}

// A name that stood for an address of everybody's when it was looked up, and
// for one of ours when it is dialled, gains nothing.
func TestRebinding(t *testing.T) {
	t.Parallel()
	const name = "hooks.example"
	names := startNameServer(t)
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	s.resolver = names.resolver()
	s.client = s.newClient()
	r := newReceiver(t)
	e := s.add(Wish{URL: "https://" + name})
	e.URL = "http://" + name + r.URL[strings.LastIndexByte(r.URL, ':'):]
	for _, turn := range []struct {
		to       string
		loopback bool
		answer   string
	}{
		{"127.0.0.1", true, ""}, // so it would arrive
		{"127.0.0.1", false, "blocked: the host name resolves to a private network address"},
		{"::ffff:127.0.0.1", false, "blocked: the host name resolves to a private network address"},
		{"::1", false, "blocked: the host name resolves to a private network address"},
		{"10.0.0.1", true, "blocked: the host name resolves to a private network address"},
		{"169.254.169.254", true, "blocked: the host name resolves to a private network address"},
	} {
		names.standsFor("93.184.216.34")
		if before, err := s.resolver.LookupHost(t.Context(), name); err != nil || len(before) != 1 || before[0] != "93.184.216.34" {
			t.Fatal(before, err)
		}
		names.standsFor(turn.to)
		s.Loopback = turn.loopback
		s.client.CloseIdleConnections()
		attempt, err := s.Test(t.Context(), e)
		if err != nil || attempt.Answer != turn.answer || attempt.Delivered != (turn.answer == "") {
			t.Errorf("%s: %+v, %v", turn.to, attempt, err)
		}
	}
	if got := len(r.all()); got != 1 {
		t.Errorf("%d came through", got)
	}
}
