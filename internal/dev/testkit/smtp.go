package testkit

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"palmares/internal/dev/testkit/wait"
)

// SMTPServer is a mail server on loopback.
type SMTPServer struct {
	URL string

	options SMTPOptions
	address string
	stop    func()

	mu        sync.Mutex
	delivered map[string]int
	unread    map[string][]string
	arrived   chan struct{} // closed when the next email arrives
}

// SMTPOptions configure a mail server.
type SMTPOptions struct {
	TLS            *tls.Config // offers STARTTLS
	ImplicitTLS    bool        // TLS from the first byte instead; needs TLS
	User, Password string      // required to send, if set
	Login          bool        // offers AUTH LOGIN instead of PLAIN
	UTF8           bool        // accepts non-ASCII addresses
	// Rcpt and Data may reject an email with an *smtp.SMTPError.
	Rcpt func(to string) error
	Data func(to string) error
}

// StartSMTP starts a mail server that accepts every email.
func StartSMTP(t testing.TB) *SMTPServer {
	t.Helper()
	return StartSMTPWith(t, SMTPOptions{})
}

// StartSMTPWith starts a mail server with options.
func StartSMTPWith(t testing.TB, options SMTPOptions) *SMTPServer {
	t.Helper()
	s := &SMTPServer{
		options: options, address: "127.0.0.1:0",
		delivered: map[string]int{}, unread: map[string][]string{}, arrived: make(chan struct{}),
	}
	s.Start(t)
	scheme := "smtp"
	if options.ImplicitTLS {
		scheme = "smtps"
	}
	s.URL = fmt.Sprintf("%s://%s", scheme, s.address)
	t.Cleanup(s.Stop)
	return s
}

// Start starts the server, at the same address as before.
func (s *SMTPServer) Start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	if s.options.ImplicitTLS {
		listener = tls.NewListener(listener, s.options.TLS)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &smtpSession{server: s, authenticated: s.options.User == ""}, nil
	}))
	server.Domain = "localhost"
	server.EnableSMTPUTF8 = s.options.UTF8
	server.ErrorLog = log.New(io.Discard, "", 0)
	if !s.options.ImplicitTLS {
		server.TLSConfig = s.options.TLS
	}
	go func() { _ = server.Serve(listener) }()
	s.stop = func() {
		_ = listener.Close() // the server may not have registered it yet
		_ = server.Close()
	}
}

// Stop stops the server; it keeps the emails it has received.
func (s *SMTPServer) Stop() { s.stop() }

// Wait returns the next email to an address as raw text, and fails the test if
// none arrives.
func (s *SMTPServer) Wait(t testing.TB, to string) string {
	t.Helper()
	to = strings.ToLower(to)
	deadline := time.After(wait.Limit)
	for {
		s.mu.Lock()
		arrived := s.arrived
		if emails := s.unread[to]; len(emails) > 0 {
			s.unread[to] = emails[1:]
			s.mu.Unlock()
			return emails[0]
		}
		s.mu.Unlock()
		select {
		case <-arrived:
		case <-deadline:
			t.Fatalf("no email to %s arrived", to)
		}
	}
}

// Count returns the number of emails to an address, including those that Wait
// returned.
func (s *SMTPServer) Count(to string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered[strings.ToLower(to)]
}

func (s *SMTPServer) deliver(to, email string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = strings.ToLower(to)
	s.delivered[to]++
	s.unread[to] = append(s.unread[to], email)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// smtpSession is a connection.
type smtpSession struct {
	server        *SMTPServer
	authenticated bool
	to            []string
}

func (s *smtpSession) AuthMechanisms() []string {
	switch {
	case s.server.options.User == "":
		return nil
	case s.server.options.Login:
		return []string{sasl.Login}
	}
	return []string{sasl.Plain}
}

func (s *smtpSession) Auth(mechanism string) (sasl.Server, error) {
	if mechanism == sasl.Login {
		return &loginServer{check: s.check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return s.check(user, password) }), nil
}

func (s *smtpSession) check(user, password string) error {
	if user != s.server.options.User || password != s.server.options.Password {
		return smtp.ErrAuthFailed
	}
	s.authenticated = true
	return nil
}

func (s *smtpSession) Mail(string, *smtp.MailOptions) error {
	if !s.authenticated {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if reject := s.server.options.Rcpt; reject != nil {
		if err := reject(to); err != nil {
			return err
		}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *smtpSession) Data(r io.Reader) error {
	email, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for _, to := range s.to {
		if reject := s.server.options.Data; reject != nil {
			if err := reject(to); err != nil {
				return err
			}
		}
		s.server.deliver(to, string(email))
	}
	return nil
}

func (s *smtpSession) Reset() { s.to = nil }

func (s *smtpSession) Logout() error { return nil }

// loginServer implements AUTH LOGIN, which the library lacks.
type loginServer struct {
	check     func(user, password string) error
	responses []string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response != nil {
		l.responses = append(l.responses, string(response))
	}
	switch len(l.responses) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.responses[0], l.responses[1])
}
