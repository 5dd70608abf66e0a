package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wneessen/go-mail/smtp"
	"golang.org/x/net/idna"

	"palmares/internal/core/problem"
)

// server is the mail server that accepts our emails.
type server struct {
	host, port     string
	user, password string
	implicitTLS    bool // TLS from the first byte, without STARTTLS
	loopback       bool // may be used without encryption
	tls            *tls.Config
}

// CheckURL returns an error if the URL of a mail server is not valid. The error
// does not repeat the URL, which may contain a password.
func CheckURL(address string) error {
	if address == "" {
		return nil
	}
	_, err := parseServer(address)
	return err
}

// CheckFrom returns an error if emails cannot be sent from an address.
func CheckFrom(address string) error {
	_, err := parseFrom(address)
	return err
}

var defaultPorts = map[string]string{"smtp": "587", "smtps": "465"}

func parseServer(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || defaultPorts[u.Scheme] == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must have the form smtp://user:password@host:587 or smtps://user:password@host:465; " +
			"percent-encode special characters in the user name and password, such as %2F for a slash")
	}
	s := &server{
		host: u.Hostname(), port: cmp.Or(u.Port(), defaultPorts[u.Scheme]),
		implicitTLS: u.Scheme == "smtps", loopback: isLoopback(u.Hostname()),
	}
	if port, err := strconv.ParseUint(s.port, 10, 16); err != nil || port == 0 {
		return nil, errors.New("must have a port between 1 and 65535")
	}
	if u.User != nil {
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		if s.user == "" || s.password == "" {
			return nil, errors.New("must have both a user name and a password, or neither")
		}
	}
	// A relay on this machine usually has a self-signed certificate. Without a
	// password, there is nothing to protect from it.
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.loopback && s.user == ""}
	return s, nil
}

// isLoopback does not resolve names, because a DNS response can be forged.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func parseFrom(address string) (*mail.Address, error) {
	from, err := mail.ParseAddress(address)
	if err != nil || strings.ContainsFunc(address, unicode.IsControl) {
		return nil, errors.New("must have the form name@example.com or Name <name@example.com>")
	}
	if to, err := recipient(from.Address); err != nil || to != from.Address || !isASCII(to) {
		return nil, errors.New("contains characters that not every mail server accepts")
	}
	return from, nil
}

// recipient returns a plain address with its domain in ASCII.
func recipient(address string) (string, error) {
	parsed, err := mail.ParseAddress(address)
	if err != nil {
		return "", err
	}
	if parsed.Address != address || strings.ContainsFunc(address, unicode.IsControl) {
		return "", errors.New("names, quotes and comments are not allowed")
	}
	at := strings.LastIndexByte(address, '@')
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", err
	}
	return address[:at+1] + domain, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// masked hides most of an address, as in a…@example.com.
func masked(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return "…"
	}
	_, size := utf8.DecodeRuneInString(address)
	return address[:size] + "…" + address[at:]
}

// ProbeResult reports how far a connection to the mail server got.
type ProbeResult struct {
	Encrypted bool
	SignedIn  bool // always false without a password
}

// Probe connects to the mail server and signs in, without sending an email. Its
// error is a *problem.Problem.
func (m *Mailer) Probe(ctx context.Context) (ProbeResult, error) {
	return m.connect(ctx, nil)
}

// deliver makes one attempt to send an email.
func (m *Mailer) deliver(ctx context.Context, e *email) error {
	_, err := m.connect(ctx, e)
	if err == nil {
		m.Sent.Add(1)
	}
	return err
}

// connect signs in to the mail server and sends an email, unless it is nil. It
// closes the connection when ctx ends. The library's own client has no overall
// timeout, and reports a failure if only QUIT fails.
func (m *Mailer) connect(ctx context.Context, e *email) (reached ProbeResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.attemptTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(m.server.host, m.server.port))
	if err != nil {
		return reached, failure(ctx, connecting, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client, at, err := m.handshake(conn, &reached)
	if err == nil && e != nil {
		at, err = m.transmit(client, e)
	}
	if err != nil {
		return reached, failure(ctx, at, err)
	}
	_ = client.Quit() // whatever the server replies, it has accepted the email
	return reached, nil
}

// handshake encrypts the connection and signs in. If it fails, it returns the
// step that failed.
func (m *Mailer) handshake(conn net.Conn, reached *ProbeResult) (client *smtp.Client, at step, err error) {
	if m.server.implicitTLS {
		conn = tls.Client(conn, m.server.tls)
	}
	if client, err = smtp.NewClient(conn, m.server.host); err != nil {
		return nil, connecting, err
	}
	// Servers may look up this name; the host name of this machine can be anything.
	if err := client.Hello(domainOf(m.from.Address)); err != nil {
		return nil, connecting, err
	}
	offered, _ := client.Extension("STARTTLS")
	switch {
	case m.server.implicitTLS:
	case offered:
		if err := client.StartTLS(m.server.tls); err != nil {
			return nil, encrypting, err
		}
	case !m.server.loopback:
		return nil, encrypting, errNoSTARTTLS
	default: // a server on this machine needs no TLS, but gets no password without it
		return client, step{}, nil
	}
	reached.Encrypted = true
	if m.server.user != "" {
		if err := m.server.signIn(client); err != nil {
			return nil, signingIn, err
		}
		reached.SignedIn = true
	}
	return client, step{}, nil
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

// transmit sends an email. If it fails, it returns the step that failed.
func (m *Mailer) transmit(client *smtp.Client, e *email) (at step, err error) {
	// Older servers reject SMTPUTF8, so it is used only if necessary.
	client.SkipSMTPUTF8(isASCII(e.to))
	if offered, _ := client.Extension("SMTPUTF8"); !offered && !isASCII(e.to) {
		return namingRecipient, errNoSMTPUTF8
	}
	if err := client.Mail("<" + m.from.Address + ">"); err != nil {
		return namingSender, err
	}
	if err := client.Rcpt("<" + e.to + ">"); err != nil {
		return namingRecipient, err
	}
	body, err := client.Data()
	if err != nil {
		return transmitting, err
	}
	if _, err := body.Write(e.raw); err != nil {
		return transmitting, err
	}
	return transmitting, body.Close()
}

// step is a part of a delivery, with the message for when the server rejects it.
type step struct {
	code     problem.Code
	rejected string
}

var (
	connecting      = step{problem.Internal, "The mail server rejected the connection."}
	encrypting      = step{problem.Internal, "The mail server does not support encryption, which is required."}
	signingIn       = step{problem.Internal, "The mail server rejected the user name or password."}
	namingSender    = step{problem.Internal, "The mail server rejected the sender address."}
	namingRecipient = step{problem.BadInput, "The mail server rejected this email address."}
	transmitting    = step{problem.Internal, "The mail server rejected the email."}

	errNoSTARTTLS = errors.New("the server does not offer STARTTLS")
	errNoAuth     = errors.New("the server offers neither AUTH PLAIN nor AUTH LOGIN")
	errNoSMTPUTF8 = errors.New("the server does not offer SMTPUTF8")
)

// failure explains in our own words why a delivery failed. Its code is
// Unavailable if another attempt may succeed.
func failure(ctx context.Context, at step, err error) *problem.Problem {
	var reply *textproto.Error
	var certificate *tls.CertificateVerificationError
	p := &problem.Problem{Code: problem.Unavailable, Message: "The mail server cannot be reached.", Cause: err}
	switch {
	case errors.As(err, &reply) && reply.Code >= 500,
		errors.Is(err, errNoSTARTTLS), errors.Is(err, errNoAuth), errors.Is(err, errNoSMTPUTF8):
		p.Code, p.Message = at.code, at.rejected
	case errors.As(err, &reply):
		p.Message = "The mail server does not accept emails at the moment."
	case errors.As(err, &certificate):
		p.Code, p.Message = problem.Internal, "The certificate of the mail server is not valid."
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.Message = "The mail server took too long to respond."
	}
	return p
}

// IsTemporary reports whether another attempt to send an email may succeed.
func IsTemporary(err error) bool { return problem.Of(err).Code == problem.Unavailable }

// enhancedCode matches the detailed status code in a server's reply.
var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// logAttributes describes a failed email for the log, without the text of the
// server's reply, which may repeat the address or a sign-in link.
func logAttributes(to string, err error) []any {
	var reply *textproto.Error
	var malformed textproto.ProtocolError
	p, cause := problem.Of(err), ""
	switch {
	case errors.As(err, &reply):
		cause = strings.TrimSpace(fmt.Sprintf("%d %s", reply.Code, enhancedCode.FindString(reply.Msg)))
	case errors.As(err, &malformed):
		cause = "the reply is not SMTP"
	case p.Code != problem.BadInput && p.Cause != nil:
		cause = p.Cause.Error()
	}
	return []any{"to", masked(to), "reason", p.Message, "cause", cause}
}
