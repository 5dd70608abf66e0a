package mail

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

const (
	ana      = "ana@example.com"
	password = "hunter2/#?"
	link     = "https://palmares.example/sign-in?token=SECRETTOKEN&x=1"
	code     = "4711-0815"
	from     = "palmarès <mail@palmares.example>"
)

// secrets must not be logged by a Mailer that sends emails.
var secrets = []string{ana, "hunter2", "SECRETTOKEN", code, "A private subject", "A private text"}

func private(to string) Message {
	return Message{To: to, Subject: "A private subject", Text: "A private text\n" + link + "\n" + code, HTML: "<p>A private text", Link: link, Code: code}
}

// logged records the log of a Mailer.
type logged struct{ testkit.Log }

func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

// newMailer returns a Mailer whose log is checked for secrets after the test.
func newMailer(t *testing.T, cfg Config) (*Mailer, *logged) {
	t.Helper()
	log := &logged{}
	cfg.From, cfg.Log = from, slog.New(slog.NewJSONHandler(log, nil))
	m := check.Try(New(cfg)).OK(t)
	t.Cleanup(func() {
		for _, secret := range secrets {
			check.True(t, m.LogsOnly() || log.count(secret) <= 0, "got %q in the log, want no secrets: %s", secret, log)
		}
	})
	return m, log
}

// trust sets which certificates a Mailer accepts; nil changes nothing.
func trust(m *Mailer, config *tls.Config) {
	if config != nil {
		m.server.tls = config.Clone()
		m.server.tls.ServerName = m.server.host
	}
}

// run runs a Mailer until the test ends or stop is called.
func run(t *testing.T, m *Mailer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	wait.Until(t, what, is)
}

// selfSigned returns a server with a certificate for 127.0.0.1, and a client that
// trusts it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key := check.Try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).OK(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der := check.Try(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)).OK(t)
	certificate := check.Try(x509.ParseCertificate(der)).OK(t)
	authorities := x509.NewCertPool()
	authorities.AddCert(certificate)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: authorities}
}

// withUser adds a user and a password to a URL.
func withUser(address, password string) string {
	return strings.Replace(address, "://", "://mailer:"+strings.NewReplacer("/", "%2F", "#", "%23", "?", "%3F").Replace(password)+"@", 1)
}

// parts parses an email into its header and its bodies by content type.
func parts(t *testing.T, raw string) (netmail.Header, map[string]string) {
	t.Helper()
	message := check.Try(netmail.ReadMessage(strings.NewReader(raw))).OK(t, "in %s", raw)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	check.OK(t, err)
	check.Must(t, kind, "multipart/alternative")
	bodies := map[string]string{}
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return message.Header, bodies
		}
		check.OK(t, err)
		check.Must(t, part.Header.Get("Content-Transfer-Encoding"), "quoted-printable", "encoding")
		body := check.Try(io.ReadAll(quotedprintable.NewReader(part))).OK(t)
		kind, params, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		check.True(t, strings.EqualFold(params["charset"], "utf-8"), "got charset %q, want utf-8", params["charset"])
		bodies[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
}
