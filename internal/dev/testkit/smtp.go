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

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// SMTPServer is a mail server on loopback.
type SMTPServer struct {
	URL string

	options SMTPOptions
	address string
	stop    func()

	mu       sync.Mutex
	received map[string][]string // emails by address
	read     map[string]int      // how many of them Wait has returned
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
	s := &SMTPServer{options: options, address: "127.0.0.1:0", received: map[string][]string{}, read: map[string]int{}}
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
	listener := check.Try(net.Listen("tcp", s.address)).OK(t)
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

// Stop stops the server. The emails it has received remain available.
func (s *SMTPServer) Stop() { s.stop() }

// Wait returns the next email to an address as raw text, and fails the test if
// none arrives.
func (s *SMTPServer) Wait(t testing.TB, to string) (email string) {
	t.Helper()
	to = strings.ToLower(to)
	wait.Until(t, "an email to "+to+" arrives", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.read[to] == len(s.received[to]) {
			return false
		}
		email = s.received[to][s.read[to]]
		s.read[to]++
		return true
	})
	return email
}

// Count returns the number of emails to an address, including those that Wait
// returned.
func (s *SMTPServer) Count(to string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.received[strings.ToLower(to)])
}

func (s *SMTPServer) deliver(to, email string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = strings.ToLower(to)
	s.received[to] = append(s.received[to], email)
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
