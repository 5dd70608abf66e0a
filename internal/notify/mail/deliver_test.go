package mail

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palmares/internal/core/problem"
	"palmares/internal/dev/testkit"
)

func TestLettersArrive(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	for name, test := range map[string]struct {
		options testkit.SMTPOptions
		tls     *tls.Config
	}{
		"plain on loopback":              {},
		"STARTTLS":                       {testkit.SMTPOptions{TLS: serverTLS}, clientTLS},
		"STARTTLS of this machine's own": {testkit.SMTPOptions{TLS: serverTLS}, nil},
		"TLS":                            {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true}, clientTLS},
		"STARTTLS and PLAIN":             {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, clientTLS},
		"STARTTLS and LOGIN":             {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password, Login: true}, clientTLS},
		"TLS and PLAIN":                  {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, clientTLS},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now().Truncate(time.Second) // as dates of emails are
			server := testkit.StartSMTPWith(t, test.options)
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
			if date, err := header.Date(); err != nil || date.Before(begun) || date.After(time.Now()) {
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
	old, new := testkit.StartSMTP(t), testkit.StartSMTPWith(t, testkit.SMTPOptions{UTF8: true})
	for _, test := range []struct {
		server *testkit.SMTPServer
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
		options   testkit.SMTPOptions
		tls       *tls.Config
		password  string
		elsewhere bool
		code      problem.Code
		sentence  string
		cause     string
	}{
		"wrong password":         {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: "other"}, clientTLS, password, false, problem.Internal, signingIn.refused, `"535 5.7.8"`},
		"no way to sign in":      {testkit.SMTPOptions{TLS: serverTLS}, clientTLS, password, false, problem.Internal, signingIn.refused, errNoAuth.Error()},
		"wrong certificate":      {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The mail server's certificate is not to be trusted.", "x509"},
		"wrong certificate, TLS": {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The mail server's certificate is not to be trusted.", "x509"},
		"no STARTTLS":            {testkit.SMTPOptions{}, nil, "", true, problem.Internal, encrypting.refused, errNoSTARTTLS.Error()},
		"recipient refused":      {testkit.SMTPOptions{Rcpt: refuse(550)}, nil, "", false, problem.BadInput, namingRecipient.refused, `"550 5.7.1"`},
		"letter refused":         {testkit.SMTPOptions{Data: refuse(554)}, nil, "", false, problem.Internal, handingOver.refused, `"554 5.7.1"`},
		"sender refused":         {testkit.SMTPOptions{User: "mailer", Password: password}, nil, password, false, problem.Internal, namingSender.refused, `"502 5.7.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.StartSMTPWith(t, test.options)
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
			if m.Post(private(ana)) != nil {
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
