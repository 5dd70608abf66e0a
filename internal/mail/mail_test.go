package mail

import (
	"bytes"
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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palmares/internal/problem"
	"palmares/internal/testdb"
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
type logged struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

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
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never happened: " + what)
		}
	}
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

func TestLettersArrive(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	for name, test := range map[string]struct {
		options testdb.SMTPOptions
		tls     *tls.Config
	}{
		"plain on loopback":              {},
		"STARTTLS":                       {testdb.SMTPOptions{TLS: serverTLS}, clientTLS},
		"STARTTLS of this machine's own": {testdb.SMTPOptions{TLS: serverTLS}, nil},
		"TLS":                            {testdb.SMTPOptions{TLS: serverTLS, ImplicitTLS: true}, clientTLS},
		"STARTTLS and PLAIN":             {testdb.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, clientTLS},
		"STARTTLS and LOGIN":             {testdb.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password, Login: true}, clientTLS},
		"TLS and PLAIN":                  {testdb.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, clientTLS},
	} {
		t.Run(name, func(t *testing.T) {
			server := testdb.StartSMTPWith(t, test.options)
			url := server.URL
			if test.options.User != "" {
				url = withUser(url, password)
			}
			m, log := newMailer(t, Config{URL: url, TLS: test.tls})
			if m.Prints() {
				t.Error("it would print")
			}
			msg := Message{To: ana, Subject: "Été, and a long subject that goes on for more than one line of a letter's header, as it may", Text: "Bonjour, ça va ?\n.\n" + strings.Repeat("long ", 300) + "\n", HTML: "<p>ça & là</p>\n"}
			if err := m.Send(t.Context(), msg); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			header, bodies := parts(t, server.Wait(t, ana))
			if bodies["text/plain"] != msg.Text || bodies["text/html"] != msg.HTML {
				t.Errorf("the bodies are %q", bodies)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
			if err != nil || subject != msg.Subject {
				t.Errorf("the subject is %q, %v", subject, err)
			}
			if sender, err := header.AddressList("From"); err != nil || *sender[0] != (netmail.Address{Name: "palmarès", Address: "letters@palmares.example"}) {
				t.Errorf("from %v, %v", sender, err)
			}
			if to, err := header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != ana {
				t.Errorf("to %v, %v", to, err)
			}
			if date, err := header.Date(); err != nil || time.Since(date).Abs() > time.Minute {
				t.Errorf("of %s, %v", date, err)
			}
			if id := header.Get("Message-ID"); !strings.HasSuffix(id, "@palmares.example>") || len(id) < 30 {
				t.Errorf("the id is %s", id)
			}
			if header.Get("Auto-Submitted") != "auto-generated" || header.Get("User-Agent") != "" || header.Get("X-Mailer") != "" {
				t.Errorf("the header is %v", header)
			}
			if log.String() != "" || server.Count(ana) != 1 {
				t.Errorf("%d letters, and the log has %s", server.Count(ana), log)
			}
		})
	}
}

// An address beyond ASCII goes to a server in the form that it takes.
func TestAddressesBeyondASCII(t *testing.T) {
	old, new := testdb.StartSMTP(t), testdb.StartSMTPWith(t, testdb.SMTPOptions{UTF8: true})
	for _, test := range []struct {
		server *testdb.SMTPServer
		to, as string
	}{
		{old, "ana@bücher.example", "ana@xn--bcher-kva.example"},
		{old, "señora@example.com", ""},
		{new, "señora@bücher.example", "señora@xn--bcher-kva.example"},
	} {
		m, _ := newMailer(t, Config{URL: test.server.URL})
		err := m.Send(t.Context(), private(test.to))
		if test.as == "" {
			if problem.Of(err).Code != problem.BadInput {
				t.Errorf("%s: %v", test.to, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v, %v", test.to, err, errors.Unwrap(err))
		}
		parts(t, test.server.Wait(t, test.as))
	}
}

func TestRefusals(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	// A server's words may repeat what it was told.
	refuse := func(code int) func(to string) error {
		return func(to string) error {
			return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 7, 1}, Message: "<" + to + "> has " + link}
		}
	}
	for name, test := range map[string]struct {
		options   testdb.SMTPOptions
		tls       *tls.Config
		password  string
		elsewhere bool
		code      problem.Code
		sentence  string
		cause     string
	}{
		"wrong password":         {testdb.SMTPOptions{TLS: serverTLS, User: "mailer", Password: "other"}, clientTLS, password, false, problem.Internal, signingIn.refused, `"535 5.7.8"`},
		"no way to sign in":      {testdb.SMTPOptions{TLS: serverTLS}, clientTLS, password, false, problem.Internal, signingIn.refused, errNoAuth.Error()},
		"wrong certificate":      {testdb.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The mail server's certificate is not to be trusted.", "x509"},
		"wrong certificate, TLS": {testdb.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The mail server's certificate is not to be trusted.", "x509"},
		"no STARTTLS":            {testdb.SMTPOptions{}, nil, "", true, problem.Internal, encrypting.refused, errNoSTARTTLS.Error()},
		"recipient refused":      {testdb.SMTPOptions{Rcpt: refuse(550)}, nil, "", false, problem.BadInput, namingRecipient.refused, `"550 5.7.1"`},
		"letter refused":         {testdb.SMTPOptions{Data: refuse(554)}, nil, "", false, problem.Internal, handingOver.refused, `"554 5.7.1"`},
		"sender refused":         {testdb.SMTPOptions{User: "mailer", Password: password}, nil, password, false, problem.Internal, namingSender.refused, `"502 5.7.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := testdb.StartSMTPWith(t, test.options)
			url := server.URL
			if test.password != "" {
				url = withUser(url, test.password)
			}
			m, log := newMailer(t, Config{URL: url, TLS: test.tls})
			m.retryAfter = []time.Duration{time.Millisecond}
			if test.elsewhere {
				m.server.loopback = false
			}
			err := m.Send(t.Context(), private(ana))
			if p := problem.Of(err); err == nil || p.Code != test.code || p.Error() != test.sentence || errors.Unwrap(err) == nil {
				t.Errorf("%v, with %v", err, errors.Unwrap(err))
			}
			stop := run(t, m)
			if !m.Post(private(ana)) {
				t.Fatal("it was not queued")
			}
			eventually(t, "the letter is given up", func() bool { return log.count(`"level":"ERROR"`) > 0 })
			stop()
			if log.count("\n") != 1 || log.count("a…@example.com") != 1 || log.count(test.cause) != 1 || server.Count(ana) != 0 {
				t.Errorf("the log has %s", log)
			}
		})
	}
}

// scripted is a server that offers AUTH without TLS, takes every letter, and
// hangs up instead of saying goodbye. It returns what it was told.
func scripted(t *testing.T) (address string, heard func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	log := &logged{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go converse(conn, log)
		}
	}()
	return "smtp://" + listener.Addr().String(), log.String
}

func converse(conn net.Conn, heard io.Writer) {
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "220 ready\r\n")
	command := make([]byte, 1<<16)
	for inLetter := false; ; {
		n, err := conn.Read(command)
		if err != nil {
			return
		}
		_, _ = heard.Write(command[:n])
		switch said := string(command[:n]); {
		case inLetter && !strings.HasSuffix(said, "\r\n.\r\n"):
			continue
		case strings.HasPrefix(said, "EHLO"):
			_, _ = fmt.Fprint(conn, "250-hello\r\n250 AUTH PLAIN LOGIN CRAM-MD5\r\n")
		case strings.HasPrefix(said, "DATA"):
			inLetter = true
			_, _ = fmt.Fprint(conn, "354 go on\r\n")
		case strings.HasPrefix(said, "QUIT"):
			return
		default:
			inLetter = false
			_, _ = fmt.Fprint(conn, "250 fine\r\n")
		}
	}
}

func TestNoPasswordWithoutTLS(t *testing.T) {
	url, heard := scripted(t)
	m, _ := newMailer(t, Config{URL: withUser(url, password)})
	// The letter arrives although the server does not say goodbye.
	if err := m.Send(t.Context(), private(ana)); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	if told := heard(); strings.Contains(told, "AUTH") || !strings.Contains(told, "RCPT TO:<"+ana+">") || !strings.Contains(told, "QUIT") {
		t.Errorf("it was told\n%s", told)
	}
}

func TestNothingWithoutTLSElsewhere(t *testing.T) {
	url, heard := scripted(t)
	m, _ := newMailer(t, Config{URL: withUser(url, password)})
	m.server.loopback = false
	if err := m.Send(t.Context(), private(ana)); problem.Of(err).Message != encrypting.refused {
		t.Errorf("%v, with %v", err, errors.Unwrap(err))
	}
	if told := heard(); strings.Count(told, "\n") != 1 || !strings.HasPrefix(told, "EHLO palmares.example") {
		t.Errorf("it was told\n%s", told)
	}
}

func TestTemporaryRefusal(t *testing.T) {
	var mu sync.Mutex
	attempts := 0
	server := testdb.StartSMTPWith(t, testdb.SMTPOptions{Rcpt: func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if attempts++; attempts < 3 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, time.Hour}
	run(t, m)
	m.Post(private(ana))
	parts(t, server.Wait(t, ana))
	if attempts != 3 || log.count(`"level":"WARN"`) != 1 || log.count("\n") != 1 {
		t.Errorf("%d attempts, and the log has %s", attempts, log)
	}
}

func TestServerComesUp(t *testing.T) {
	server := testdb.StartSMTP(t)
	server.Stop()
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, time.Second}
	run(t, m)
	m.Post(private(ana))
	eventually(t, "the server is missed", func() bool { return log.count("connection refused") == 1 })
	server.Start(t)
	server.Wait(t, ana)
	if log.count("ERROR") != 0 {
		t.Errorf("the log has %s", log)
	}
}

func TestGivenUpAfterTheLastAttempt(t *testing.T) {
	server := testdb.StartSMTP(t)
	server.Stop()
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{time.Millisecond, time.Millisecond}
	run(t, m)
	m.Post(private(ana))
	eventually(t, "the letter is given up", func() bool { return log.count("a letter is given up") == 1 })
	eventually(t, "its place is free", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.held == 0 && len(m.waiting) == 0
	})
}

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestServerNeverAnswers(t *testing.T) {
	for _, scheme := range []string{"smtp", "smtps"} {
		m, _ := newMailer(t, Config{URL: scheme + "://" + silent(t)})
		m.limit = 100 * time.Millisecond
		start := time.Now()
		err := m.Send(t.Context(), private(ana))
		if p := problem.Of(err); p.Code != problem.Unavailable || p.Message != "The mail server took too long." {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took < m.limit || took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		m.limit = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := m.Send(ctx, private(ana)); !isTemporary(err) {
			t.Errorf("%v", err)
		}
		cancel()
	}
}

// Letters that wait for another attempt are in nobody's way, and have their
// last one when the server ends.
func TestWaitingLettersAreInNobodysWay(t *testing.T) {
	var mu sync.Mutex
	busy := true
	server := testdb.StartSMTPWith(t, testdb.SMTPOptions{Rcpt: func(to string) error {
		mu.Lock()
		defer mu.Unlock()
		if busy && strings.HasPrefix(to, "slow") {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{time.Hour}
	stop := run(t, m)
	const slow = 3 * workerCount
	for i := range slow {
		m.Post(private(fmt.Sprintf("slow%d@example.com", i)))
	}
	m.Post(private(ana))
	server.Wait(t, ana)
	eventually(t, "the others wait", func() bool { return log.count("waits for another attempt") == slow })
	mu.Lock()
	busy = false
	mu.Unlock()
	stop()
	for i := range slow {
		if to := fmt.Sprintf("slow%d@example.com", i); server.Count(to) != 1 {
			t.Errorf("%s was sent %d letters", to, server.Count(to))
		}
	}
}

func TestQueue(t *testing.T) {
	server := testdb.StartSMTP(t)
	m, log := newMailer(t, Config{URL: server.URL})
	for i := range queueLength {
		if !m.Post(private(ana)) {
			t.Fatalf("letter %d found no room", i)
		}
	}
	if m.Post(private(ana)) {
		t.Error("it took more than it holds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Run(ctx) // it has ended already: what is queued is sent all the same
	if server.Count(ana) != queueLength {
		t.Errorf("%d letters were sent", server.Count(ana))
	}
	if m.Post(private(ana)) || log.String() != "" {
		t.Errorf("a letter was taken that nobody sends; the log has %s", log)
	}
}

func TestTheEndIsBounded(t *testing.T) {
	m, log := newMailer(t, Config{URL: "smtp://" + silent(t)})
	m.grace = 100 * time.Millisecond
	const letters = 3 * workerCount
	for range letters {
		m.Post(private(ana))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	m.Run(ctx)
	if took := time.Since(start); took < m.grace || took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if log.count("a letter is given up") != letters {
		t.Errorf("the log has %s", log)
	}
}

func TestInjection(t *testing.T) {
	server := testdb.StartSMTP(t)
	m, _ := newMailer(t, Config{URL: server.URL})
	for _, subject := range []string{"Hello\r\nBcc: eve@example.com", "Hello\nBcc: eve@example.com", "Hello\rBcc: eve@example.com", "Hello\r\n\r\nBcc: eve@example.com", "Hello\x00\u2028Bcc: eve@example.com"} {
		if err := m.Send(t.Context(), Message{To: ana, Subject: subject, Text: "text", HTML: "html"}); err != nil {
			t.Fatal(err)
		}
		header, bodies := parts(t, server.Wait(t, ana))
		if header.Get("Bcc") != "" || header.Get("Subject") != "Hello Bcc: eve@example.com" || bodies["text/plain"] != "text" {
			t.Errorf("%q became %v %v", subject, header, bodies)
		}
	}
	for _, to := range []string{
		"", "ana", "@example.com", "ana@", "Ana <ana@example.com>", "<ana@example.com>", "ana@example.com, eve@example.com", "ana@example.com>\r\nRCPT TO:<eve@example.com",
		"ana@example.com\r\nBcc: eve@example.com", "ana@example.com\n", "ana\r\n@example.com", "\"ana\r\n\"@example.com", `"a b"@example.com`, "ana@example.com (c)", "ana@exa mple.com", "ana@[127.0.0.1]", "a\x00b@example.com", "ana@example.com\x7f", "\xff@example.com",
	} {
		if err := m.Send(t.Context(), private(to)); problem.Of(err).Code != problem.BadInput {
			t.Errorf("%q: %v", to, err)
		}
		if m.Post(private(to)) {
			t.Errorf("%q was queued", to)
		}
	}
	if server.Count("eve@example.com") != 0 {
		t.Error("somebody else was sent a letter")
	}
}

func TestPrinting(t *testing.T) {
	m, log := newMailer(t, Config{})
	if !m.Prints() {
		t.Fatal("it would send")
	}
	stop := run(t, m)
	if !m.Post(private(ana)) {
		t.Error("it was not taken")
	}
	if err := m.Send(t.Context(), Message{To: ana, Subject: "Bare", Text: "text"}); err != nil {
		t.Error(err)
	}
	if m.Post(private("nobody")) || m.Send(t.Context(), private("nobody")) == nil {
		t.Error("it took an invalid address")
	}
	stop()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []map[string]any{
		{"to": ana, "subject": "A private subject", "link": link, "code": code},
		{"to": ana, "subject": "Bare"},
	} {
		want["level"], want["msg"] = "INFO", "no mail is set up: a letter is printed here instead"
		got := map[string]any{}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, not %v", got, want)
		}
	}
}
