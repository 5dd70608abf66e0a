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

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

const (
	ana      = "ana@example.com"
	password = "hunter2/#?"
	link     = "https://palmares.example/sign-in?token=SECRETTOKEN&x=1"
	code     = "4711-0815"
	from     = "palmarès <letters@palmares.example>"
)

// secrets are in no log line of a Mailer that sends.
var secrets = []string{ana, "hunter2", "SECRETTOKEN", code, "A private subject", "A private text"}

func private(to string) Message {
	return Message{To: to, Subject: "A private subject", Text: "A private text\n" + link + "\n" + code, HTML: "<p>A private text", Link: link, Code: code}
}

// logged is what a Mailer wrote to its log.
type logged struct{ testkit.Log }

func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

// newMailer has a log that is searched for secrets in the end.
func newMailer(t *testing.T, cfg Config) (*Mailer, *logged) {
	t.Helper()
	log := &logged{}
	cfg.From, cfg.Log = from, slog.New(slog.NewJSONHandler(log, nil))
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, secret := range secrets {
			if !m.Prints() && log.count(secret) > 0 {
				t.Errorf("%q is in the log: %s", secret, log)
			}
		}
	})
	return m, log
}

// run delivers until the test ends, or stop is called.
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

// selfSigned is a certificate of 127.0.0.1, and who trusts it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(certificate)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: authorities}
}

// withUser puts a user into a server's address.
func withUser(address, password string) string {
	return strings.Replace(address, "://", "://mailer:"+strings.NewReplacer("/", "%2F", "#", "%23", "?", "%3F").Replace(password)+"@", 1)
}

// parts reads a letter back: its header, and its bodies by their type.
func parts(t *testing.T, raw string) (netmail.Header, map[string]string) {
	t.Helper()
	letter, err := netmail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	kind, params, err := mime.ParseMediaType(letter.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s, %v", kind, err)
	}
	bodies := map[string]string{}
	for reader := multipart.NewReader(letter.Body, params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return letter.Header, bodies
		}
		if err != nil {
			t.Fatal(err)
		}
		if encoding := part.Header.Get("Content-Transfer-Encoding"); encoding != "quoted-printable" {
			t.Fatalf("the encoding is %q", encoding)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		kind, params, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if !strings.EqualFold(params["charset"], "utf-8") {
			t.Errorf("the charset is %q", params["charset"])
		}
		bodies[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
}
