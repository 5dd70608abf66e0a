package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/notify/webhook"
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
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}

// startWithoutMail starts a public server that cannot send email.
func startWithoutMail(t *testing.T) *server {
	t.Helper()
	return fromBlackbox(blackbox.ServeWithoutSignIn(t))
}

// On a public server without a mail server, nobody can sign in, and no links are
// logged.
func TestSignInWithoutMailServer(t *testing.T) {
	t.Parallel()
	s := startWithoutMail(t)
	page := s.call(t, http.MethodGet, "/login", "")
	if text := readAll(t, page.Body); page.StatusCode != 200 || !strings.Contains(text, "Signing in is disabled") || strings.Contains(text, `id="email"`) {
		t.Errorf("got %d %s, want 200 without a form", page.StatusCode, text)
	}
	posted := s.call(t, http.MethodPost, "/login", "email=ana@example.com")
	if posted.StatusCode != 403 {
		t.Errorf("POST /login: got %d, want 403", posted.StatusCode)
	}
	if strings.Contains(s.log.String(), "ana@example.com") {
		t.Error("got the email address in the log, want none")
	}
}

// Without the signing secret, anyone could send events on behalf of Stripe.
func TestStripeRequiresWebhookSecret(t *testing.T) {
	t.Parallel()
	r := runCmd(t, palmares(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0", "--stripe-secret-key", "sk_test_s3cret"))
	if r.code != 1 || !strings.Contains(r.err, "STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY") || strings.Contains(r.err, "s3cret") {
		t.Errorf("got exit code %d and %q, want 1 without the key", r.code, r.err)
	}
	without := startServer(t, testkit.SQLite(t))
	if got := without.call(t, http.MethodPost, "/billing/stripe", `{}`); got.StatusCode != 404 {
		t.Errorf("event without Stripe: got %d, want 404", got.StatusCode)
	}
}

// Pages from other origins may read the API, but no account pages.
func TestCORSPaths(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo")
	for path, open := range map[string]bool{"/api/v1/stats": true, "/healthz": true, "/schemas/feed/tool.json": true, "/login": false, "/account": false, "/assets/x": false, "/": false} {
		got := s.call(t, http.MethodGet, path, "")
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); (allowed == "*") != open {
			t.Errorf("%s: got Access-Control-Allow-Origin %q, want CORS: %v", path, allowed, open)
		}
	}
}

// mockWith starts a proxy to the Stripe mock that replaces some responses.
func mockWith(t *testing.T, mock string, responses map[string]string) string {
	t.Helper()
	behind, err := url.Parse(mock)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(behind))
	for pattern, body := range responses {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// emptyList is an empty list in the Stripe API.
const emptyList = `{"object":"list","data":[]}`

func TestBillingCommands(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	without := runCmd(t, palmares(t, cfg, "billing", "setup"))
	if without.code != 1 || without.err != "palmares: STRIPE_SECRET_KEY is not set.\n" {
		t.Errorf("without a key: got exit code %d and %q, want 1", without.code, without.err)
	}
	mock := testkit.StartStripeMock(t)
	billing := func(base string, args ...string) result {
		return runCmd(t, palmares(t, cfg, append([]string{"--stripe-secret-key", "sk_test_123", "--stripe-api-base", base, "billing"}, args...)...))
	}
	// The mock always returns a price in dollars.
	wrong := billing(mock, "setup")
	if wrong.code != 1 || !strings.Contains(wrong.err, "is not €99 per month plus VAT. Archive it first") {
		t.Errorf("price in dollars: got exit code %d and %q, want 1", wrong.code, wrong.err)
	}
	created := billing(mockWith(t, mock, map[string]string{"GET /v1/prices": emptyList, "GET /v1/billing_portal/configurations": emptyList}), "setup")
	for _, want := range []string{"Price created: ", "(€99 per month plus VAT)", "Customer portal created: ", "customer.subscription.updated"} {
		if created.code != 0 || !strings.Contains(created.out, want) {
			t.Errorf("got exit code %d: %s%s, want 0 and %q", created.code, created.out, created.err, want)
		}
	}
	if synced := billing(mock, "sync"); synced.code != 0 {
		t.Errorf("sync without customers: got exit code %d and %q, want 0", synced.code, synced.err)
	}
}

// An account that loses Pro in a sync is notified by email.
func TestBillingSyncSendsEmail(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	db := testkit.Open(t, cfg)
	ana := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("pro").SaveX(t.Context())
	db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetStatus("active").ExecX(t.Context())
	smtp := testkit.StartSMTP(t)
	stripe := mockWith(t, testkit.StartStripeMock(t), map[string]string{"GET /v1/subscriptions": emptyList})
	synced := runCmd(t, palmares(t, cfg, "--stripe-secret-key", "sk_test_123", "--stripe-api-base", stripe, "--smtp-url", smtp.URL, "billing", "sync"))
	if synced.code != 0 || !strings.Contains(synced.out, "cus_1  ana@example.com") {
		t.Errorf("got exit code %d: %s%s, want 0 and the customer", synced.code, synced.out, synced.err)
	}
	if smtp.Count("ana@example.com") == 0 {
		t.Fatal("got no email before the command ended, want one")
	}
	if email := smtp.Wait(t, "ana@example.com"); !strings.Contains(email, "has ended") {
		t.Errorf("got %s, want an email about the end of Pro", email)
	}
}

// Expired data is deleted, unless the clocks of server and database differ.
func TestCleanUpComparesClocks(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var output bytes.Buffer
		log := slog.New(slog.NewTextHandler(&output, nil))
		p := &services{store: db, log: log, hooks: webhook.New(webhook.Config{Store: db, Log: log})}
		acc := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("developer").SaveX(t.Context())
		now := time.Now().UTC()
		expires := func(id string, at time.Time) {
			db.Write.Session.Create().SetID(id).SetAccountID(acc.ID).SetExpiresAt(at).ExecX(t.Context())
		}
		expires("expired", now.Add(-time.Minute))
		expires("valid", now.Add(24*time.Hour))
		db.Write.CountBatch.Create().SetID("old").SetDay(quota.DayOf(now.AddDate(0, 0, -3)).String()).SetCounts([]byte{}).ExecX(t.Context())
		db.Write.BillingEvent.Create().SetID("evt_old").SetType("invoice.paid").SetAppliedAt(now.AddDate(0, 0, -91)).ExecX(t.Context())
		remaining := func() int {
			return db.Write.Session.Query().CountX(t.Context()) + db.Write.BillingEvent.Query().CountX(t.Context()) + db.Write.CountBatch.Query().CountX(t.Context())
		}
		if db.Describe() == "PostgreSQL" {
			for _, wrong := range []time.Time{now.AddDate(1, 0, 0), now.AddDate(-1, 0, 0), now.Add(2 * time.Hour)} {
				p.cleanUp(t.Context(), wrong)
				if got := remaining(); got != 4 {
					t.Errorf("%s: got %d rows, want 4", wrong, got)
				}
			}
			if got := strings.Count(output.String(), "cleanup skipped"); got != 3 {
				t.Errorf("got %d warnings, want 3", got)
			}
		}
		p.cleanUp(t.Context(), now)
		if got := remaining(); got != 1 {
			t.Errorf("got %d rows, want only the valid session", got)
		}
	})
}
