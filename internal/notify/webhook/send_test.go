package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// Statuses decide whether an event was delivered. TestHostileReceivers has the ways in
// which a response may not end.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	s.freezeClock()
	r, e := s.addReceiver()
	for _, c := range []struct {
		statuses  []int
		delivered bool
		response  string
	}{
		{[]int{200}, true, "thanks"}, {[]int{204}, true, ""}, {[]int{299}, true, "thanks"}, {[]int{300}, false, "elsewhere"}, {[]int{400}, false, "oh no"}, {[]int{500}, false, "oh no"},
		{[]int{103, 103, 103, 201}, true, "thanks"}, {[]int{200}, true, strings.Repeat("x", 4096)},
	} {
		r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) {
			for _, status := range c.statuses {
				w.WriteHeader(status)
			}
			fmt.Fprint(w, c.response)
		})
		s.clock.advance(testWindow)
		attempt := check.Try(s.Test(t.Context(), e)).OK(t, c.statuses)
		check.Equal(t, attempt.Delivered, c.delivered, c.statuses)
		check.Equal(t, attempt.Status, c.statuses[len(c.statuses)-1])
		check.Equal(t, attempt.Response, c.response[:min(len(c.response), shownBytes)], c.statuses)
	}
}

func TestBadTLS(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	roots := x509.NewCertPool()
	s.transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	now := time.Now()
	good := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	expired := certificate(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	unknown := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	roots.AddCert(good.Leaf)
	roots.AddCert(expired.Leaf)
	for name, test := range map[string]struct {
		config    *tls.Config
		delivered bool
		response  string
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
		e := s.add(NewEndpoint{URL: "https://" + r.Listener.Addr().String()})
		attempt := check.Try(s.Test(t.Context(), e)).OK(t, name)
		check.Equal(t, attempt.Delivered, test.delivered, name)
		check.Equal(t, attempt.Response, test.response, name)
		_ = s.Remove(t.Context(), e)
	}
}

func certificate(t *testing.T, from, to time.Time) tls.Certificate {
	t.Helper()
	key := check.Try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).OK(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der := check.Try(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)).OK(t)
	leaf := check.Try(x509.ParseCertificate(der)).OK(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	closed := newReceiver(t)
	closed.Close()
	for address, want := range map[string]string{closed.URL: "the connection was refused", "https://nobody.invalid": "the host name could not be resolved"} {
		attempt := check.Try(s.Test(t.Context(), s.add(NewEndpoint{URL: address}))).OK(t, address)
		check.Equal(t, attempt.Response, want, address)
		check.Equal(t, attempt.Status, 0, address)
		check.Equal(t, attempt.Delivered, false, address)
	}
}

// Status 410 disables the endpoint, even on a retry, and the owner gets an email.
func TestGone(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		s.publishTools(2)
		r.respondStatus(500)
		s.sendDue(e)
		s.clock.advance(6 * time.Second)
		r.respondStatus(410)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateDisabled || e.DisabledReason == "" || len(s.deliveries(e)) != 0 {
			t.Errorf("got state %s because %q and %d retries, want disabled and none", e.State, e.DisabledReason, len(s.deliveries(e)))
		}
		s.sendDue(e)
		if n := s.notices(); len(n) != 1 || n[0].Recipient != ownerEmail || !strings.Contains(n[0].Text, "410") || !strings.Contains(n[0].Text, fmt.Sprintf("/account/webhooks/%d", e.ID)) {
			t.Errorf("got %v, want an email with the reason and a link", n)
		}
		r.reset()
		s.publishTools(2)
		s.clock.advance(time.Hour)
		s.sendDue(e)
		check.Equal(t, len(r.all()), 0)
		check.Equal(t, len(s.notices()), 1)
	})
}

func TestFirstBytes(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]string{
		"a\x00b\x1b[31m\x7fc\n\td":       "ab[31mc\n\td",
		"\xff\xfe":                       "�",
		strings.Repeat("é", 400):         strings.Repeat("é", 150),
		"x" + strings.Repeat("é", 400):   "x" + strings.Repeat("é", 149),
		"xx" + strings.Repeat("€", 400):  "xx" + strings.Repeat("€", 99),
		"xyz" + strings.Repeat("😀", 400): "xyz" + strings.Repeat("😀", 74),
	} {
		got := firstBytes([]byte(response))
		check.Equal(t, got, want, "%.20q", response)
		check.True(t, utf8.ValidString(got), "%.20q: got %q, want %q", response, got, want)
	}
}

// Both databases can store any response.
func TestBinaryResponse(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r := newReceiver(t)
		everything := make([]byte, 256)
		for i := range everything {
			everything[i] = byte(i)
		}
		r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(everything) })
		_, err := s.Test(t.Context(), s.add(NewEndpoint{URL: r.URL}))
		check.Equal(t, err, nil)
	})
}

// Secrets in a response, as on a debugging page, are not stored.
func TestSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addReceiver()
	former := e.Secret
	check.Try(s.Rotate(t.Context(), e)).OK(t)
	e = s.find(e.ID)
	r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		fmt.Fprintf(w, "SECRET=%s OLD=%s", e.Secret, former)
	})
	background(t, s.Run)
	s.publishTools(3)
	check.Try(s.Test(t.Context(), e)).OK(t)
	var all []*ent.Attempt
	eventually(t, "the attempts are recorded", func() bool { all = s.attempts(e); return len(all) >= 5 })
	key, old := strings.TrimPrefix(e.Secret, secretPrefix), strings.TrimPrefix(former, secretPrefix)
	text := s.logs.String() + fmt.Sprintf("%v %v", all, e)
	for _, secret := range []string{key, old, key[10:20], old[10:20]} {
		check.Lacks(t, text, secret)
	}
	check.Contains(t, all[0].Response, "SECRET=whsec_(secret) OLD=whsec_(secret)", "want the secrets replaced")
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		secret := newSecret()
		key := check.Try(base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))).OK(t, secret)
		check.Must(t, len(key), 32, secret)
		check.MustTrue(t, strings.HasPrefix(secret, "whsec_"), "got %v", secret)
		check.Must(t, seen[secret], false, secret)
		seen[secret] = true
	}
}

// For 24 hours after a rotation, both secrets verify events, including retries.
func TestRotationBetweenAttempts(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		old := e.Secret
		s.publishTools(0)
		s.sendDue(e)
		fresh := check.Try(s.Rotate(t.Context(), e)).OK(t).Secret
		check.MustTrue(t, fresh != old, "got %v", fresh)
		s.clock.advance(6 * time.Second)
		s.sendDue(e)
		s.clock.advance(25 * time.Hour)
		s.sendDue(e)
		got := r.all()
		check.Must(t, len(got), 3, "events")
		for i, want := range []struct{ old, fresh bool }{{true, false}, {true, true}, {false, true}} {
			if verifies(t, old, got[i]) != want.old || verifies(t, fresh, got[i]) != want.fresh {
				t.Errorf("attempt %d: got signature %s, want %+v", i+1, got[i].header.Get("webhook-signature"), want)
			}
			n := len(strings.Fields(got[i].header.Get("webhook-signature")))
			check.True(t, !want.old || want.fresh == (n == 2), "attempt %d: got %d signatures, want %+v", i+1, n, want)
			check.Equal(t, got[i].header.Get("webhook-id"), got[0].header.Get("webhook-id"), "another ID")
		}
	})
}

func verifies(t *testing.T, secret string, got *received) bool {
	t.Helper()
	hook := check.Try(standardwebhooks.NewWebhook(secret)).OK(t)
	return hook.VerifyIgnoringTimestamp(got.body, got.header) == nil
}

// refusedTest returns the error of a test event that is over the limit.
func refusedTest(t *testing.T, err error) *problem.Problem {
	t.Helper()
	check.MustTrue(t, err != nil && problem.Of(err).Code == problem.TooMany, "got %v, want the limit of test events", err)
	return problem.Of(err)
}

func TestTestEventsAreLimited(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		first, second := s.add(NewEndpoint{URL: in.URL}), s.add(NewEndpoint{URL: in.URL})
		for i := range testsPerWindow {
			e := first
			if i%2 == 1 {
				e = second
			}
			check.Try(s.Test(t.Context(), e)).OK(t)
			s.clock.advance(time.Second)
		}
		_, err := s.Test(t.Context(), first)
		got, want := refusedTest(t, err).RetryAfter, testWindow-testsPerWindow*time.Second
		check.Equal(t, got.Round(time.Second), want, "Retry-After %v", got)

		// Another server and the command line count in the same database.
		other := New(s.Config)
		other.now = s.clock.now
		_, err = other.Test(t.Context(), second)
		refusedTest(t, err)
		check.Equal(t, len(in.all()), testsPerWindow, "test events")

		// Other accounts have limits of their own.
		ben := check.Try(auth.NewAccounts(s.Store).Create(t.Context(), "ben@example.com", auth.Pro)).OK(t)
		bens := check.Try(s.Add(t.Context(), ben, NewEndpoint{URL: in.URL})).OK(t)
		_, err = s.Test(t.Context(), bens)
		check.Equal(t, err, nil, "another account")

		s.clock.advance(testWindow - testsPerWindow*time.Second)
		_, err = s.Test(t.Context(), first)
		check.Equal(t, err, nil, "a minute later")
		_, err = s.Test(t.Context(), first)
		refusedTest(t, err)
	})
}

// Concurrent requests to several servers share the limit.
func TestConcurrentTestEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		e := s.add(NewEndpoint{URL: in.URL})
		other := New(s.Config)
		other.now = s.clock.now
		var all sync.WaitGroup
		for i := range 3 * testsPerWindow {
			all.Go(func() {
				server := s.Webhooks
				if i%2 == 1 {
					server = other
				}
				_, err := server.Test(t.Context(), e)
				check.True(t, err == nil || problem.Of(err).Code == problem.TooMany, "got %v, want no error or the limit", err)
			})
		}
		all.Wait()
		check.Equal(t, len(in.all()), testsPerWindow, "test events")
		check.Equal(t, len(s.attempts(e)), testsPerWindow, "attempts")
	})
}

// Neither disconnecting nor replacing the endpoint resets the limit.
func TestTestLimitCannotBeReset(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		e := s.add(NewEndpoint{URL: in.URL})
		for range testsPerWindow / 2 {
			ctx, hangUp := context.WithCancel(t.Context())
			in.respond(func(_ int, _ http.ResponseWriter, r *http.Request) {
				hangUp()
				<-r.Context().Done()
			})
			_, err := s.Test(ctx, e)
			check.MustTrue(t, errors.Is(err, context.Canceled), "got %v, want context.Canceled", err)
		}
		in.respondStatus(http.StatusOK)
		for i := range testsPerWindow {
			check.OK(t, s.Remove(t.Context(), e))
			e = s.add(NewEndpoint{URL: in.URL})
			_, err := s.Test(t.Context(), e)
			if i < testsPerWindow/2 {
				check.OK(t, err)
				continue
			}
			refusedTest(t, err)
		}
		check.Equal(t, len(in.all()), testsPerWindow, "test events")
	})
}
