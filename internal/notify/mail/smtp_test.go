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
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestEmailsArrive(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	for name, test := range map[string]struct {
		options testkit.SMTPOptions
		tls     *tls.Config
	}{
		"plain on loopback":                 {},
		"STARTTLS":                          {testkit.SMTPOptions{TLS: serverTLS}, clientTLS},
		"STARTTLS, self-signed on loopback": {testkit.SMTPOptions{TLS: serverTLS}, nil},
		"TLS":                               {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true}, clientTLS},
		"STARTTLS and PLAIN":                {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, clientTLS},
		"STARTTLS and LOGIN":                {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password, Login: true}, clientTLS},
		"TLS and PLAIN":                     {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, clientTLS},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now().Truncate(time.Second) // as dates of emails are
			server := testkit.StartSMTPWith(t, test.options)
			url := server.URL
			if test.options.User != "" {
				url = withUser(url, password)
			}
			m, log := newMailer(t, Config{URL: url})
			trust(m, test.tls)
			check.True(t, !m.LogsOnly(), "got LogsOnly() true, want false")
			msg := Message{To: ana, Subject: "Été, and a long subject that does not fit on a single line of an email header, as subjects may", Text: "Bonjour, ça va ?\n.\n" + strings.Repeat("long ", 300) + "\n", HTML: "<p>ça & là</p>\n"}
			if err := m.Send(t.Context(), msg); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			header, bodies := parts(t, server.Wait(t, ana))
			check.Equal(t, bodies["text/plain"], msg.Text, "%q", bodies)
			check.Equal(t, bodies["text/html"], msg.HTML, "%q", bodies)
			subject := check.Try(new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))).OK(t)
			check.Equal(t, subject, msg.Subject)
			sender, err := header.AddressList("From")
			check.True(t, err == nil && *sender[0] == (netmail.Address{Name: "palmarès", Address: "mail@palmares.example"}), "got sender %v, %v, want %s", sender, err, from)
			to := check.Try(header.AddressList("To")).OK(t)
			check.Must(t, len(to), 1, "recipients %v", to)
			check.Equal(t, to[0].Address, ana)
			date := check.Try(header.Date()).OK(t)
			check.True(t, !date.Before(started) && !date.After(time.Now()), "got date %s, want now", date)
			id := header.Get("Message-ID")
			check.True(t, strings.HasSuffix(id, "@palmares.example>") && len(id) >= 30, "got Message-ID %s, want a long one of our domain", id)
			check.Equal(t, header.Get("Auto-Submitted"), "auto-generated", "header %v", header)
			check.Equal(t, header.Get("User-Agent"), "", "header %v", header)
			check.Equal(t, header.Get("X-Mailer"), "", "header %v", header)
			check.Equal(t, log.String(), "")
			check.Equal(t, server.Count(ana), 1)
		})
	}
}

// Servers get a non-ASCII address in a form that they accept.
func TestNonASCIIAddresses(t *testing.T) {
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
			check.Equal(t, problem.Of(err).Code, problem.BadInput, "%s: %v", test.to, err)
			continue
		}
		check.OK(t, err, "%s: %v", test.to, errors.Unwrap(err))
		parts(t, test.server.Wait(t, test.as))
	}
}

func TestRejections(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	// The reply of a server may repeat what the client sent.
	reject := func(code int) func(to string) error {
		return func(to string) error {
			return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 7, 1}, Message: "<" + to + "> has " + link}
		}
	}
	for name, test := range map[string]struct {
		options  testkit.SMTPOptions
		tls      *tls.Config
		password string
		remote   bool
		code     problem.Code
		sentence string
		cause    string
	}{
		"wrong password":         {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: "other"}, clientTLS, password, false, problem.Internal, signingIn.rejected, `"535 5.7.8"`},
		"no AUTH":                {testkit.SMTPOptions{TLS: serverTLS}, clientTLS, password, false, problem.Internal, signingIn.rejected, errNoAuth.Error()},
		"wrong certificate":      {testkit.SMTPOptions{TLS: serverTLS, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The certificate of the mail server is not valid.", "x509"},
		"wrong certificate, TLS": {testkit.SMTPOptions{TLS: serverTLS, ImplicitTLS: true, User: "mailer", Password: password}, nil, password, false, problem.Internal, "The certificate of the mail server is not valid.", "x509"},
		"no STARTTLS":            {testkit.SMTPOptions{}, nil, "", true, problem.Internal, encrypting.rejected, errNoSTARTTLS.Error()},
		"recipient rejected":     {testkit.SMTPOptions{Rcpt: reject(550)}, nil, "", false, problem.BadInput, namingRecipient.rejected, `"550 5.7.1"`},
		"email rejected":         {testkit.SMTPOptions{Data: reject(554)}, nil, "", false, problem.Internal, transmitting.rejected, `"554 5.7.1"`},
		"sender rejected":        {testkit.SMTPOptions{User: "mailer", Password: password}, nil, password, false, problem.Internal, namingSender.rejected, `"502 5.7.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.StartSMTPWith(t, test.options)
			url := server.URL
			if test.password != "" {
				url = withUser(url, test.password)
			}
			m, log := newMailer(t, Config{URL: url})
			trust(m, test.tls)
			m.retryDelays = []time.Duration{time.Millisecond}
			if test.remote {
				m.server.loopback = false
			}
			err := m.Send(t.Context(), private(ana))
			if p := problem.Of(err); err == nil || p.Code != test.code || p.Error() != test.sentence || errors.Unwrap(err) == nil {
				t.Errorf("got %v, caused by %v, want %s", err, errors.Unwrap(err), test.sentence)
			}
			stop := run(t, m)
			check.OK(t, m.Enqueue(private(ana)))
			eventually(t, "the email fails", func() bool { return log.count(`"level":"ERROR"`) > 0 })
			stop()
			check.True(t, log.count("\n") == 1 && log.count("a…@example.com") == 1 && log.count(test.cause) == 1 && server.Count(ana) == 0, "got log %s, want one masked line with %s", log, test.cause)
		})
	}
}

// scripted starts a server that offers AUTH without TLS, accepts every email and
// closes the connection on QUIT. received returns what clients sent.
func scripted(t *testing.T) (address string, received func() string) {
	t.Helper()
	listener := check.Try(net.Listen("tcp", "127.0.0.1:0")).OK(t)
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

func converse(conn net.Conn, received io.Writer) {
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "220 ready\r\n")
	command := make([]byte, 1<<16)
	for inData := false; ; {
		n, err := conn.Read(command)
		if err != nil {
			return
		}
		_, _ = received.Write(command[:n])
		switch line := string(command[:n]); {
		case inData && !strings.HasSuffix(line, "\r\n.\r\n"):
			continue
		case strings.HasPrefix(line, "EHLO"):
			_, _ = fmt.Fprint(conn, "250-hello\r\n250 AUTH PLAIN LOGIN CRAM-MD5\r\n")
		case strings.HasPrefix(line, "DATA"):
			inData = true
			_, _ = fmt.Fprint(conn, "354 go on\r\n")
		case strings.HasPrefix(line, "QUIT"):
			return
		default:
			inData = false
			_, _ = fmt.Fprint(conn, "250 fine\r\n")
		}
	}
}

func TestNoPasswordWithoutTLS(t *testing.T) {
	url, received := scripted(t)
	m, _ := newMailer(t, Config{URL: withUser(url, password)})
	// The email counts as sent although the server does not reply to QUIT.
	if err := m.Send(t.Context(), private(ana)); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	sent := received()
	check.Lacks(t, sent, "AUTH")
	check.Contains(t, sent, "RCPT TO:<"+ana+">")
	check.Contains(t, sent, "QUIT")
}

func TestRemoteServerRequiresTLS(t *testing.T) {
	url, received := scripted(t)
	m, _ := newMailer(t, Config{URL: withUser(url, password)})
	m.server.loopback = false
	err := m.Send(t.Context(), private(ana))
	check.Equal(t, problem.Of(err).Message, encrypting.rejected, errors.Unwrap(err))
	sent := received()
	check.Equal(t, strings.Count(sent, "\n"), 1, sent)
	check.True(t, strings.HasPrefix(sent, "EHLO palmares.example"), "got conversation\n%s\nwant only EHLO", sent)
}

func TestCheckURL(t *testing.T) {
	for address, want := range map[string]string{
		"smtp://mail.example.com":                          "mail.example.com:587",
		"smtps://mail.example.com/":                        "mail.example.com:465",
		"smtp://user:pa%2Fss@mail.example.com:25":          "mail.example.com:25",
		"smtp://user%40example.com:secret@[2001:db8::1]:1": "2001:db8::1:1",
	} {
		s, err := parseServer(address)
		check.True(t, err == nil && CheckURL(address) == nil && s.host+":"+s.port == want && !s.loopback && !s.tls.InsecureSkipVerify, "%s: got %v, %v, want %s", address, s, err, want)
	}
	check.Equal(t, CheckURL(""), nil)
	for _, address := range []string{
		"hunter2", "hunter2:25", "http://ana:hunter2@host", "smtp:ana:hunter2@host", "smtp://", "smtp:///hunter2", "smtp://ana:hunter2@", "smtp://ana:hunter2@:25",
		"smtp://ana:hunter2@host:port", "smtp://ana:hunter2@host:0", "smtp://ana:hunter2@host:65536", "smtp://ana:hunter2@host:-1",
		"smtp://ana:hunter2/@host", "smtp://ana:hunter2#@host", "smtp://ana:hunter2?@host", "smtp://ana:hunter2%@host", "smtp://ana:25/hunter2@host:587",
		"smtp://ana:hunter2@host/path", "smtp://ana:hunter2@host?a=b", "smtp://ana:hunter2@host#a", "smtp://ana@host", "smtp://:hunter2@host", "smtp://ana:hunter2@ho st", "smtp://ana:hunter2@host\n",
	} {
		err := CheckURL(address)
		if err == nil {
			t.Errorf("%q: got no error, want one", address)
			continue
		}
		_, fromNew := New(Config{URL: address, From: "ana@example.com"})
		for _, sentence := range []string{err.Error(), fromNew.Error()} {
			check.Lacks(t, sentence, "hunter2", address)
			check.Lacks(t, sentence, "ana", address)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "::": false, "example.com": false,
	} {
		check.Equal(t, isLoopback(host), want, "%s: %t", host, !want)
	}
}

func TestCheckFrom(t *testing.T) {
	for _, address := range []string{"ana@example.com", "Ana <ana@example.com>", "\"Ana, of palmarès\" <ana@example.com>", "Été <ana@xn--bcher-kva.example>"} {
		check.Equal(t, CheckFrom(address), nil, address)
	}
	for _, address := range []string{"", "ana", "Ana <ana>", "Ana\r\nBcc: eve@example.com <ana@example.com>", "ana@example.com\r\n", "ana@example.com, eve@example.com", "señora@example.com", "ana@bücher.example", "\"a b\"@example.com"} {
		check.Fails(t, CheckFrom(address))
	}
	check.Try(New(Config{URL: "smtp://localhost"})).Fails(t, "without a sender")
}

func TestMasked(t *testing.T) {
	for address, want := range map[string]string{
		"ana@example.com": "a…@example.com", "a@example.com": "a…@example.com", "éa@example.com": "é…@example.com",
		"a@b@example.com": "a…@example.com", "@example.com": "…", "ana": "…", "": "…",
	} {
		check.Equal(t, masked(address), want, "%q", address)
	}
}
