package mail

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestInjection(t *testing.T) {
	server := testkit.StartSMTP(t)
	m, _ := newMailer(t, Config{URL: server.URL})
	for _, subject := range []string{"Hello\r\nBcc: eve@example.com", "Hello\nBcc: eve@example.com", "Hello\rBcc: eve@example.com", "Hello\r\n\r\nBcc: eve@example.com", "Hello\x00\u2028Bcc: eve@example.com"} {
		check.OK(t, m.Send(t.Context(), Message{To: ana, Subject: subject, Text: "text", HTML: "html"}))
		header, bodies := parts(t, server.Wait(t, ana))
		check.Equal(t, header.Get("Bcc"), "", "subject %q: %v", subject, header)
		check.Equal(t, header.Get("Subject"), "Hello Bcc: eve@example.com", "subject %q: %v", subject, header)
		check.Equal(t, bodies["text/plain"], "text", "subject %q: %v", subject, header)
	}
	for _, to := range []string{
		"", "ana", "@example.com", "ana@", "Ana <ana@example.com>", "<ana@example.com>", "ana@example.com, eve@example.com", "ana@example.com>\r\nRCPT TO:<eve@example.com",
		"ana@example.com\r\nBcc: eve@example.com", "ana@example.com\n", "ana\r\n@example.com", "\"ana\r\n\"@example.com", `"a b"@example.com`, "ana@example.com (c)", "ana@exa mple.com", "ana@[127.0.0.1]", "a\x00b@example.com", "ana@example.com\x7f", "\xff@example.com",
	} {
		check.Equal(t, problem.Of(m.Send(t.Context(), private(to))).Code, problem.BadInput, "sending to %q", to)
		check.Equal(t, problem.Of(m.Enqueue(private(to))).Code, problem.BadInput, "queuing to %q", to)
	}
	check.Equal(t, server.Count("eve@example.com"), 0, "email to an injected address")
}

func TestLogging(t *testing.T) {
	m, log := newMailer(t, Config{})
	check.MustTrue(t, m.LogsOnly(), "got LogsOnly() false, want true")
	stop := run(t, m)
	check.Equal(t, m.Enqueue(private(ana)), nil)
	check.Equal(t, m.Send(t.Context(), Message{To: ana, Subject: "Bare", Text: "text"}), nil)
	check.Fails(t, m.Enqueue(private("nobody")), "invalid address")
	check.Fails(t, m.Send(t.Context(), private("nobody")), "invalid address")
	stop()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []map[string]any{
		{"to": ana, "subject": "A private subject", "link": link, "code": code},
		{"to": ana, "subject": "Bare"},
	} {
		want["level"], want["msg"] = "INFO", "email not sent: no mail server is configured"
		got := map[string]any{}
		check.OK(t, json.Unmarshal([]byte(lines[i]), &got))
		delete(got, "time")
		check.Equal(t, fmt.Sprint(got), fmt.Sprint(want), got)
	}
}

func TestTemporaryRejection(t *testing.T) {
	var mu sync.Mutex
	attempts := 0
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if attempts++; attempts < 3 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryDelays = []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, time.Hour}
	run(t, m)
	m.Enqueue(private(ana))
	parts(t, server.Wait(t, ana))
	check.Equal(t, attempts, 3, "log %s", log)
	check.Equal(t, log.count(`"level":"WARN"`), 1, "log %s", log)
	check.Equal(t, log.count("\n"), 1, "log %s", log)
}

func TestLastAttemptFails(t *testing.T) {
	server := testkit.StartSMTP(t)
	server.Stop()
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryDelays = []time.Duration{time.Millisecond, time.Millisecond}
	run(t, m)
	m.Enqueue(private(ana))
	eventually(t, "the email fails for good", func() bool { return log.count(`"level":"ERROR"`) == 1 })
	eventually(t, "nothing is pending", func() bool { return m.Pending() == 0 })
	check.Equal(t, m.Failed.Load(), 1)
	check.Equal(t, m.Sent.Load(), 0)
}

// silent starts a server that accepts connections and never replies.
func silent(t *testing.T) string {
	t.Helper()
	listener := check.Try(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestServerNeverReplies(t *testing.T) {
	for _, scheme := range []string{"smtp", "smtps"} {
		m, _ := newMailer(t, Config{URL: scheme + "://" + silent(t)})
		m.attemptTimeout = 100 * time.Millisecond
		err := m.Send(t.Context(), private(ana)) // returns only because of the timeout
		p := problem.Of(err)
		check.Equal(t, p.Code, problem.Unavailable)
		check.Equal(t, p.Message, "The mail server took too long to respond.")
		m.attemptTimeout = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := m.Send(ctx, private(ana)); !IsTemporary(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		cancel()
	}
}

// Emails that wait for a retry do not block others, and get a last attempt at
// shutdown.
func TestRetriesDoNotBlock(t *testing.T) {
	var mu sync.Mutex
	busy := true
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(to string) error {
		mu.Lock()
		defer mu.Unlock()
		if busy && strings.HasPrefix(to, "slow") {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryDelays = []time.Duration{time.Hour}
	stop := run(t, m)
	const slow = 3 * maxConnections
	for i := range slow {
		m.Enqueue(private(fmt.Sprintf("slow%d@example.com", i)))
	}
	m.Enqueue(private(ana))
	server.Wait(t, ana)
	eventually(t, "the others wait for a retry", func() bool { return log.count("will retry") == slow })
	mu.Lock()
	busy = false
	mu.Unlock()
	stop()
	for i := range slow {
		check.Equal(t, server.Count(fmt.Sprintf("slow%d@example.com", i)), 1, "emails")
	}
}

func TestQueue(t *testing.T) {
	server := testkit.StartSMTP(t)
	m, log := newMailer(t, Config{URL: server.URL})
	for i := range queueLength {
		check.OK(t, m.Enqueue(private(ana)), "email %d", i)
	}
	check.Is(t, m.Enqueue(private(ana)), ErrQueueFull, "full queue")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Run(ctx) // queued emails are sent although ctx has ended
	check.Equal(t, server.Count(ana), queueLength, "emails")
	check.Is(t, m.Enqueue(private(ana)), ErrQueueFull, "after shutdown")
	check.Equal(t, strings.Count(log.String(), "sending an email failed"), 2, "lost emails in the log")
}

func TestShutdownTimeout(t *testing.T) {
	m, log := newMailer(t, Config{URL: "smtp://" + silent(t)})
	m.shutdownTimeout, m.attemptTimeout = 100*time.Millisecond, time.Hour // so that only the shutdown timeout ends it
	const emails = 3 * maxConnections
	for range emails {
		m.Enqueue(private(ana))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	wait.Receive(t, "Run returns", ended)
	check.Equal(t, log.count(`"level":"ERROR"`), emails, "log: %s", log)
}

const planURL = "https://palmares.example/account/plan"

func TestTemplates(t *testing.T) {
	until := time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		msg        Message
		subject    string
		link, code string
		contains   []string
	}{
		"sign in": {SignIn(lang.English, ana, "palmares", link, code), "Your sign-in code for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email"}},
		"change address": {ConfirmEmail(lang.English, ana, "palmares", link, code), "Confirm your new email address for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email", "confirm"}},
		"address changed": {EmailChanged(lang.English, ana, "palmares", "bea@example.org"), "Your palmares email address was changed", "", "",
			[]string{"b…@example.org", "no longer sign in with this address"}},
		"account deleted": {AccountDeleted(lang.English, ana, "palmares"), "Your palmares account was deleted", "", "",
			[]string{"was deleted", "keys were revoked", "reply to this email right away"}},
		"payment failed": {PaymentFailed(lang.English, ana, "palmares", planURL, until), "Your payment for palmares Pro failed", planURL, "",
			[]string{"keep using Pro until", "9 March 2026"}},
		"Pro ended": {ProEnded(lang.English, ana, "palmares", planURL), "Your palmares Pro plan has ended", planURL, "",
			[]string{"Developer", "3 oldest API keys", "suspended", "subscribe again"}},
		"query broken": {QueryBroken(lang.English, ana, "palmares", "best-tools", "Line 1: there is no such field", planURL), "Your saved query best-tools is no longer valid", planURL, "",
			[]string{"best-tools", "Reason: Line 1: there is no such field", "410"}},
		"webhook disabled": {WebhookDisabled(lang.English, ana, "palmares", "https://hooks.example", "it is slow", planURL), "A palmares webhook endpoint was disabled", planURL, "",
			[]string{"https://hooks.example", "Reason: it is slow.", "resend"}},
	} {
		t.Run(name, func(t *testing.T) {
			msg := test.msg
			check.Equal(t, msg.To, ana)
			check.Equal(t, msg.Subject, test.subject)
			check.Equal(t, msg.Link, test.link)
			check.Equal(t, msg.Code, test.code)
			html := strings.ReplaceAll(msg.HTML, "&amp;", "&")
			for _, want := range append(test.contains, "palmares", test.link, test.code) {
				check.Contains(t, msg.Text, want)
				check.Contains(t, html, want)
			}
			check.True(t, test.link == "" || strings.Contains(html, `href="`+test.link+`"`) && strings.Contains(html, ">"+test.link+"</a>"), "got no link, want a button and its URL:\n%s", html)
			check.Lacks(t, msg.Text+html, "bea@")
			check.Lacks(t, msg.Text, "<")
			check.Lacks(t, html, "ZgotmplZ")
		})
	}
}

func TestTemplatesInFrench(t *testing.T) {
	until := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		msg            Message
		subject, wants string
	}{
		{SignIn(lang.French, ana, "palmares", link, code), "Votre code de connexion à palmares", "15 minutes"},
		{ConfirmEmail(lang.French, ana, "palmares", link, code), "Confirmez votre nouvelle adresse e-mail pour palmares", "saisissez ce code"},
		{EmailChanged(lang.French, ana, "palmares", "bea@example.org"), "Votre adresse e-mail pour palmares a été modifiée", "b…@example.org"},
		{AccountDeleted(lang.French, ana, "palmares"), "Votre compte palmares a été supprimé", "révoquées"},
		{PaymentFailed(lang.French, ana, "palmares", planURL, until), "Le paiement de palmares Pro a échoué", "1er mars 2026"},
		{ProEnded(lang.French, ana, "palmares", planURL), "Votre formule palmares Pro a pris fin", "suspendues"},
		{QueryBroken(lang.French, ana, "palmares", "best-tools", "x", planURL), "Votre requête enregistrée best-tools n’est plus valide", "410"},
		{WebhookDisabled(lang.French, ana, "palmares", "https://hooks.example", "x", planURL), "Un endpoint de webhook palmares a été désactivé", "https://hooks.example"},
	} {
		check.Equal(t, test.msg.Subject, test.subject)
		check.Contains(t, test.msg.HTML, `<html lang="fr">`)
		for _, body := range []string{test.msg.Text, test.msg.HTML} {
			check.Contains(t, body, "Bonjour,")
			check.Contains(t, body, test.wants)
			check.Lacks(t, body, "Hello")
		}
	}
}

// User input must not add HTML or headers to an email.
func TestTemplatesEscape(t *testing.T) {
	const evil = "<script>alert(1)</script>\r\n\"><img src=x onerror=y>"
	tags := regexp.MustCompile(`(?i)<script|<img|href="javascript`)
	for _, msg := range []Message{
		SignIn(lang.English, ana, evil, "javascript:alert(1)", evil), ConfirmEmail(lang.English, ana, evil, evil, evil), EmailChanged(lang.English, ana, evil, "a@"+evil),
		AccountDeleted(lang.English, ana, evil), WebhookDisabled(lang.English, ana, evil, evil, evil, evil), PaymentFailed(lang.English, ana, evil, evil, time.Now()), ProEnded(lang.English, ana, evil, "javascript:alert(1)"),
	} {
		check.Equal(t, tags.FindString(msg.HTML), "")
		check.True(t, !strings.ContainsAny(msg.Subject, "\r\n"), "got subject %q, want one line", msg.Subject)
	}
}

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
