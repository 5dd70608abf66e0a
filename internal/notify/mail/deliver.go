package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/wneessen/go-mail/smtp"
)

var (
	errNoSTARTTLS = errors.New("no STARTTLS is offered")
	errNoAuth     = errors.New("neither AUTH PLAIN nor AUTH LOGIN is offered")
	errNoSMTPUTF8 = errors.New("no SMTPUTF8 is offered")
)

// deliver makes one attempt at a letter. The library's own client would take
// a letter for lost that only the farewell failed for, and knows no limit for
// the whole: so the steps are taken here.
func (m *Mailer) deliver(ctx context.Context, l *letter) error {
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	client, _, hangUp, err := m.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	return m.hand(ctx, client, l)
}

// connect comes as far as a letter can be handed over, or ctx ends.
func (m *Mailer) connect(ctx context.Context) (client *smtp.Client, got Reached, hangUp func(), err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(m.server.host, m.server.port))
	if err != nil {
		return nil, got, nil, failure(ctx, connecting, err)
	}
	// Whatever waits for the server when ctx ends then fails.
	forget := context.AfterFunc(ctx, func() { _ = conn.Close() })
	hangUp = func() {
		forget()
		_ = conn.Close()
	}
	client, at, err := m.introduce(conn, &got)
	if err != nil {
		err = failure(ctx, at, err) // before hanging up, which is no reason
		hangUp()
		return nil, got, nil, err
	}
	return client, got, hangUp, nil
}

// introduce says who we are, and tells at which step that failed.
func (m *Mailer) introduce(conn net.Conn, got *Reached) (client *smtp.Client, at step, err error) {
	if m.server.implicitTLS {
		conn = tls.Client(conn, m.server.tls)
	}
	if client, err = smtp.NewClient(conn, m.server.host); err != nil {
		return nil, connecting, err
	}
	// The sender's domain is a name that a server can look up; this machine's
	// may be anything.
	if err := client.Hello(domainOf(m.from.Address)); err != nil {
		return nil, connecting, err
	}
	if got.Encrypted, err = m.server.encrypt(client); err != nil {
		return nil, encrypting, err
	}
	if got.Encrypted && m.server.user != "" { // a password goes nowhere without TLS
		if err := m.server.signIn(client); err != nil {
			return nil, signingIn, err
		}
		got.SignedIn = true
	}
	return client, step{}, nil
}

// encrypt asks for TLS where it is not there already. Only this machine may
// do without.
func (s *server) encrypt(client *smtp.Client) (bool, error) {
	if s.implicitTLS {
		return true, nil
	}
	if offered, _ := client.Extension("STARTTLS"); !offered {
		if !s.loopback {
			return false, errNoSTARTTLS
		}
		return false, nil
	}
	return true, client.StartTLS(s.tls)
}

func (s *server) signIn(client *smtp.Client) error {
	_, mechanisms := client.Extension("AUTH")
	offered := strings.Fields(strings.ToUpper(mechanisms))
	switch {
	case slices.Contains(offered, "PLAIN"):
		return client.Auth(smtp.PlainAuth("", s.user, s.password, s.host, false))
	case slices.Contains(offered, "LOGIN"):
		return client.Auth(smtp.LoginAuth(s.user, s.password, s.host, false))
	}
	return errNoAuth
}

// hand gives the letter to a server that is ready for it.
func (m *Mailer) hand(ctx context.Context, client *smtp.Client, l *letter) error {
	// Asked for without need, it would keep the letter from older servers.
	client.SkipSMTPUTF8(isASCII(l.to))
	if offered, _ := client.Extension("SMTPUTF8"); !offered && !isASCII(l.to) {
		return failure(ctx, namingRecipient, errNoSMTPUTF8)
	}
	if err := client.Mail("<" + m.from.Address + ">"); err != nil {
		return failure(ctx, namingSender, err)
	}
	if err := client.Rcpt("<" + l.to + ">"); err != nil {
		return failure(ctx, namingRecipient, err)
	}
	body, err := client.Data()
	if err != nil {
		return failure(ctx, handingOver, err)
	}
	if _, err := body.Write(l.raw); err != nil {
		return failure(ctx, handingOver, err)
	}
	if err := body.Close(); err != nil {
		return failure(ctx, handingOver, err)
	}
	_ = client.Quit() // the server has the letter, whatever it answers now
	m.Sent.Add(1)
	return nil
}
