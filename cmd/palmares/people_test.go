package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palmares/internal/testdb"
)

func TestPrivateAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"http://localhost:8080":        true,
		"http://127.0.0.1:8080":        true,
		"http://[::1]:8080":            true,
		"http://[::ffff:10.0.0.1]":     true,
		"http://192.168.1.5":           true,
		"https://build.internal":       true,
		"https://palmares.test":        true,
		"http://nas":                   true,
		"https://palmares.example":     false,
		"http://palmares.example:8080": false,
		"https://203.0.113.9":          false,
		"https://localhost.example":    false,
		"https://test":                 true,
		"https://[2001:db8::1]":        false,
	} {
		if got := isPrivate(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// A public server that sends no mail signs nobody in, and its log has no link.
func TestClosedSignUp(t *testing.T) {
	s := &server{log: &testdb.Log{}, address: fmt.Sprintf("127.0.0.1:%d", testdb.FreePort(t))}
	s.cmd = palmares(t, testdb.SQLite(t), "serve", "--listen", s.address, "--public-url", "https://palmares.example")
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	testdb.WaitFor(t, s.address)
	page := s.call(t, http.MethodGet, "/login", "")
	if text := readAll(t, page.Body); page.StatusCode != 200 || !strings.Contains(text, "Sign-up is closed") || strings.Contains(text, `id="email"`) {
		t.Errorf("%d: %s", page.StatusCode, text)
	}
	asked := s.call(t, http.MethodPost, "/login", "email=ana@example.com")
	if asked.StatusCode != 403 {
		t.Errorf("asking all the same: %d", asked.StatusCode)
	}
	if strings.Contains(s.log.String(), "ana@example.com") {
		t.Error("the log has the address")
	}
}

// Without the secret of its events, anybody could be Stripe.
func TestStripeNeedsItsSecret(t *testing.T) {
	r := runs(t, palmares(t, testdb.SQLite(t), "serve", "--listen", "127.0.0.1:0", "--stripe-secret-key", "sk_test_geheim"))
	if r.code != 1 || !strings.Contains(r.err, "STRIPE_WEBHOOK_SECRET: is missing") || strings.Contains(r.err, "geheim") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	bare := startServer(t, testdb.SQLite(t))
	if got := bare.call(t, http.MethodPost, "/billing/stripe", `{}`); got.StatusCode != 404 {
		t.Errorf("events without Stripe: %d", got.StatusCode)
	}
}

// Pages that are somebody's own are not open to other origins.
func TestPagesAreNotShared(t *testing.T) {
	s := startServer(t, testdb.SQLite(t), "--demo")
	for path, open := range map[string]bool{"/api/v1/stats": true, "/healthz": true, "/login": false, "/account": false, "/assets/x": false, "/": false} {
		got := s.call(t, http.MethodGet, path, "")
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); (allowed == "*") != open {
			t.Errorf("%s allows %q", path, allowed)
		}
	}
}

func TestBillingCommands(t *testing.T) {
	cfg := testdb.SQLite(t)
	without := runs(t, palmares(t, cfg, "billing", "setup"))
	if without.code != 1 || without.err != "palmares: STRIPE_SECRET_KEY is not set.\n" {
		t.Errorf("without a key: exit %d: %s", without.code, without.err)
	}
	stripe := []string{"--stripe-secret-key", "sk_test_123", "--stripe-api-base", testdb.StartStripeMock(t)}
	// Its one price is in dollars, whatever is asked for.
	wrong := runs(t, palmares(t, cfg, append(stripe, "billing", "setup")...))
	if wrong.code != 1 || !strings.Contains(wrong.err, "is not 99 EUR a month before tax: archive it first") {
		t.Errorf("another price: exit %d: %s", wrong.code, wrong.err)
	}
	succeeds(t, palmares(t, cfg, append(stripe, "billing", "sync")...))
}
