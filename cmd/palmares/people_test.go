package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
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

// startClosed starts a public server that sends no mail.
func startClosed(t *testing.T) *server {
	t.Helper()
	return of(blackbox.ServeClosed(t))
}

// It signs nobody in, and its log has no link.
func TestClosedSignUp(t *testing.T) {
	t.Parallel()
	s := startClosed(t)
	page := s.call(t, http.MethodGet, "/login", "")
	if text := readAll(t, page.Body); page.StatusCode != 200 || !strings.Contains(text, "Signing in is disabled") || strings.Contains(text, `id="email"`) {
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
	t.Parallel()
	r := runs(t, palmares(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0", "--stripe-secret-key", "sk_test_geheim"))
	if r.code != 1 || !strings.Contains(r.err, "STRIPE_WEBHOOK_SECRET: is missing") || strings.Contains(r.err, "geheim") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	bare := startServer(t, testkit.SQLite(t))
	if got := bare.call(t, http.MethodPost, "/billing/stripe", `{}`); got.StatusCode != 404 {
		t.Errorf("events without Stripe: %d", got.StatusCode)
	}
}

// Pages that are somebody's own are not open to other origins.
func TestPagesAreNotShared(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo")
	for path, open := range map[string]bool{"/api/v1/stats": true, "/healthz": true, "/login": false, "/account": false, "/assets/x": false, "/": false} {
		got := s.call(t, http.MethodGet, path, "")
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); (allowed == "*") != open {
			t.Errorf("%s allows %q", path, allowed)
		}
	}
}

// mockWith is Stripe's own mock, but for some answers.
func mockWith(t *testing.T, mock string, answers map[string]string) string {
	t.Helper()
	behind, err := url.Parse(mock)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(behind))
	for what, answer := range answers {
		mux.HandleFunc(what, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// noneThere is a list of Stripe's with nothing in it.
const noneThere = `{"object":"list","data":[]}`

func TestBillingCommands(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	without := runs(t, palmares(t, cfg, "billing", "setup"))
	if without.code != 1 || without.err != "palmares: STRIPE_SECRET_KEY is not set.\n" {
		t.Errorf("without a key: exit %d: %s", without.code, without.err)
	}
	mock := testkit.StartStripeMock(t)
	at := func(base string, args ...string) result {
		return runs(t, palmares(t, cfg, append([]string{"--stripe-secret-key", "sk_test_123", "--stripe-api-base", base}, args...)...))
	}
	// Its one price is in dollars, whatever is asked for.
	wrong := at(mock, "billing", "setup")
	if wrong.code != 1 || !strings.Contains(wrong.err, "is not 99 EUR per month before tax. Archive it first") {
		t.Errorf("another price: exit %d: %s", wrong.code, wrong.err)
	}
	fresh := at(mockWith(t, mock, map[string]string{"GET /v1/prices": noneThere, "GET /v1/billing_portal/configurations": noneThere}), "billing", "setup")
	for _, want := range []string{"is made: 99 EUR a month", "The page for cards, invoices and cancelling is made", "customer.subscription.updated"} {
		if fresh.code != 0 || !strings.Contains(fresh.out, want) {
			t.Errorf("it does not say %q: exit %d: %s%s", want, fresh.code, fresh.out, fresh.err)
		}
	}
	if synced := at(mock, "billing", "sync"); synced.code != 0 {
		t.Errorf("nobody to read: exit %d: %s", synced.code, synced.err)
	}
}

// Who loses Pro by a command is told, as by an event.
func TestBillingSyncTells(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	db := testkit.Open(t, cfg)
	ana := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("pro").SaveX(t.Context())
	db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetStatus("active").ExecX(t.Context())
	smtp := testkit.StartSMTP(t)
	stripe := mockWith(t, testkit.StartStripeMock(t), map[string]string{"GET /v1/subscriptions": noneThere})
	synced := runs(t, palmares(t, cfg, "--stripe-secret-key", "sk_test_123", "--stripe-api-base", stripe, "--smtp-url", smtp.URL, "billing", "sync"))
	if synced.code != 0 || !strings.Contains(synced.out, "cus_1  ana@example.com") {
		t.Errorf("exit %d: %s%s", synced.code, synced.out, synced.err)
	}
	if smtp.Count("ana@example.com") == 0 {
		t.Fatal("nobody was told before the command ended")
	}
	if letter := smtp.Wait(t, "ana@example.com"); !strings.Contains(letter, "has ended") {
		t.Errorf("not the letter that Pro has ended: %s", letter)
	}
}
