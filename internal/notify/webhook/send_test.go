package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	hang := func(r *http.Request) { <-r.Context().Done() }
	for name, test := range map[string]struct {
		answer    func(w http.ResponseWriter, r *http.Request)
		delivered bool
		status    int
		said      string
	}{
		"200":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "thanks") }, true, 200, "thanks"},
		"204":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, true, 204, ""},
		"299":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, true, 299, ""},
		"400":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, false, 400, ""},
		"500":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, "oh no") }, false, 500, "oh no"},
		"silent":      {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, false, 0, "no response in time"},
		"closing":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 0, "the connection was closed before a response"},
		"endless":     {func(w http.ResponseWriter, r *http.Request) { pour(w, strings.Repeat("x", 4096), 0) }, true, 200, strings.Repeat("x", shownBytes)},
		"endless 500": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); pour(w, "x", time.Millisecond) }, false, 500, ""},
		"dripping":    {func(w http.ResponseWriter, r *http.Request) { pour(w, "x", 20*time.Millisecond) }, true, 200, ""},
		"closing midway": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
		}, true, 200, "half"},
		"long header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) }, false, 0, "the connection failed"},
		"early hints": {func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				w.WriteHeader(http.StatusEarlyHints)
			}
			w.WriteHeader(201)
		}, true, 201, ""},
	} {
		r := newReceiver(t)
		r.answers(func(_ int, w http.ResponseWriter, req *http.Request) { test.answer(w, req) })
		// Each has a database of its own: there are more than an account may test in a minute.
		s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
		s.timing.attempt = wait.Limit
		if slices.Contains([]string{"silent", "endless 500", "dripping"}, name) { // they never end
			s.timing.attempt = 5 * time.Second
		}
		e := s.add(Wish{URL: r.URL})
		all.Go(func() {
			attempt, err := s.Test(t.Context(), e)
			if err != nil {
				t.Error(err)
				return
			}
			if attempt.Delivered != test.delivered || attempt.Status != test.status || !strings.HasPrefix(attempt.Answer, test.said) || len(attempt.Answer) > shownBytes {
				t.Errorf("%s: %d %v %q", name, attempt.Status, attempt.Delivered, attempt.Answer)
			}
		})
	}
	all.Wait()
}

// pour answers until nobody reads.
func pour(w http.ResponseWriter, text string, every time.Duration) {
	for {
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(every)
	}
}

func TestBadTLS(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	roots := x509.NewCertPool()
	s.TLS = &tls.Config{RootCAs: roots}
	s.client = s.newClient()
	now := time.Now()
	good := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	expired := certificate(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	unknown := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	roots.AddCert(good.Leaf)
	roots.AddCert(expired.Leaf)
	for name, test := range map[string]struct {
		config    *tls.Config
		delivered bool
		answer    string
	}{
		"good":        {&tls.Config{Certificates: []tls.Certificate{good}}, true, ""},
		"expired":     {&tls.Config{Certificates: []tls.Certificate{expired}}, false, "the TLS certificate is not valid or the handshake failed"},
		"self-signed": {&tls.Config{Certificates: []tls.Certificate{unknown}}, false, "the TLS certificate is not valid or the handshake failed"},
		"old":         {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS11}, false, "the TLS certificate is not valid or the handshake failed"},
		"none":        {nil, false, "the TLS certificate is not valid or the handshake failed"},
	} {
		r := newUnstarted(t)
		r.EnableHTTP2 = true
		r.Config.ErrorLog = log.New(io.Discard, "", 0)
		if test.config == nil {
			r.Start()
		} else {
			r.TLS = test.config
			r.StartTLS()
		}
		e := s.add(Wish{URL: "https://" + r.Listener.Addr().String()})
		attempt, err := s.Test(t.Context(), e)
		if err != nil || attempt.Delivered != test.delivered || attempt.Answer != test.answer {
			t.Errorf("%s: %+v %v", name, attempt, err)
		}
		_ = s.Remove(t.Context(), e)
	}
}

func certificate(t *testing.T, from, to time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Nobody is there, or nobody has that name.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	closed := newReceiver(t)
	closed.Close()
	for address, want := range map[string]string{closed.URL: "the connection was refused", "https://nobody.invalid": "the host name could not be resolved"} {
		attempt, err := s.Test(t.Context(), s.add(Wish{URL: address}))
		if err != nil || attempt.Answer != want || attempt.Status != 0 || attempt.Delivered {
			t.Errorf("%s: %+v, %v", address, attempt, err)
		}
	}
}

// 410 disables, and the owner is told; also when one is tried again.
func TestGone(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		mail := s.withMail()
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		tell(t, db, 2)
		r.answersStatus(500)
		s.sendDue(e)
		s.clock.pass(6 * time.Second)
		r.answersStatus(410)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateDisabled || e.Why == "" || len(s.waiting(e)) != 0 {
			t.Errorf("%s %s, %d wait", e.State, e.Why, len(s.waiting(e)))
		}
		s.sendDue(e)
		if letter := mail.Wait(t, ownerEmail); !strings.Contains(letter, "410") || !strings.Contains(letter, fmt.Sprintf("/account/webhooks/%d", e.ID)) {
			t.Error(letter)
		}
		r.forget()
		tell(t, db, 2)
		s.clock.pass(time.Hour)
		s.sendDue(e)
		if len(r.all()) != 0 || mail.Count(ownerEmail) != 1 {
			t.Errorf("%d came, %d letters", len(r.all()), mail.Count(ownerEmail))
		}
	})
}

func TestFirstBytes(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"a\x00b\x1b[31m\x7fc\n\td":       "ab[31mc\n\td",
		"\xff\xfe":                       "�",
		strings.Repeat("é", 400):         strings.Repeat("é", 150),
		"x" + strings.Repeat("é", 400):   "x" + strings.Repeat("é", 149),
		"xx" + strings.Repeat("€", 400):  "xx" + strings.Repeat("€", 99),
		"xyz" + strings.Repeat("😀", 400): "xyz" + strings.Repeat("😀", 74),
	} {
		if got := firstBytes([]byte(said)); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q: got %q", said, got)
		}
	}
}

// What a receiver says, whatever it is, can be kept by both databases.
func TestBinaryAnswer(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		everything := make([]byte, 256)
		for i := range everything {
			everything[i] = byte(i)
		}
		r.answers(func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(everything) })
		if _, err := s.Test(t.Context(), s.add(Wish{URL: r.URL})); err != nil {
			t.Error(err)
		}
	})
}

// A receiver may tell all that it knows, as pages for debugging do.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newReceiver(t)
	e := s.add(Wish{URL: r.URL})
	former := e.Secret
	if _, err := s.Rotate(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e = s.find(e.ID)
	r.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		fmt.Fprintf(w, "SECRET=%s OLD=%s", e.Secret, former)
	})
	background(t, s.Run)
	tell(t, s.Store, 3)
	if _, err := s.Test(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var all []*ent.Attempt
	eventually(t, "attempts are written down", func() bool { all = s.attempts(e); return len(all) >= 5 })
	key, old := strings.TrimPrefix(e.Secret, secretPrefix), strings.TrimPrefix(former, secretPrefix)
	text := s.logs.String() + fmt.Sprintf("%v %v", all, e)
	for _, secret := range []string{key, old, key[10:20], old[10:20]} {
		if strings.Contains(text, secret) {
			t.Error("a secret is kept:", text)
		}
	}
	if !strings.Contains(all[0].Answer, "SECRET=whsec_(secret) OLD=whsec_(secret)") {
		t.Errorf("%q", all[0].Answer)
	}
}
