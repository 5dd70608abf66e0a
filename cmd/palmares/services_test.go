package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// Without the signing secret, anyone could send events on behalf of Stripe.
func TestStripeRequiresWebhookSecret(t *testing.T) {
	t.Parallel()
	r := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0", "--stripe-secret-key", "sk_test_s3cret"))
	if r.Code != 1 || !strings.Contains(r.Err, "STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY") || strings.Contains(r.Err, "s3cret") {
		t.Errorf("got exit code %d and %q, want 1 without the key", r.Code, r.Err)
	}
}

// mockWith starts a proxy to the Stripe mock that replaces some responses.
func mockWith(t *testing.T, mock string, responses map[string]string) string {
	t.Helper()
	behind := check.Try(url.Parse(mock)).OK(t)
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
	without := blackbox.Run(t, blackbox.Command(t, cfg, "billing", "setup"))
	check.Equal(t, without.Code, 1, "without a key")
	check.Equal(t, without.Err, "palmares: STRIPE_SECRET_KEY is not set.\n", "without a key")
	mock := testkit.StartStripeMock(t)
	billing := func(base string, args ...string) blackbox.Result {
		return blackbox.Run(t, blackbox.Command(t, cfg, append([]string{"--stripe-secret-key", "sk_test_123", "--stripe-api-base", base, "billing"}, args...)...))
	}
	// The mock always returns a price in dollars.
	wrong := billing(mock, "setup")
	check.Equal(t, wrong.Code, 1, "price in dollars")
	check.Contains(t, wrong.Err, "is not €99 per month plus VAT. Archive it first", "price in dollars")
	created := billing(mockWith(t, mock, map[string]string{"GET /v1/prices": emptyList, "GET /v1/billing_portal/configurations": emptyList}), "setup")
	for _, want := range []string{"Price created: ", "(€99 per month plus VAT)", "Customer portal created: ", "customer.subscription.updated"} {
		check.Equal(t, created.Code, 0, created.Err)
		check.Contains(t, created.Out, want, created.Err)
	}
	synced := billing(mock, "sync")
	check.True(t, synced.Code == 0, "sync without customers: got exit code %d and %q, want 0", synced.Code, synced.Err)
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
	synced := blackbox.Run(t, blackbox.Command(t, cfg, "--stripe-secret-key", "sk_test_123", "--stripe-api-base", stripe, "--smtp-url", smtp.URL, "billing", "sync"))
	check.Equal(t, synced.Code, 0, synced.Err)
	check.Contains(t, synced.Out, "cus_1  ana@example.com", synced.Err)
	check.MustTrue(t, smtp.Count("ana@example.com") != 0, "got no email before the command ended, want one")
	check.Contains(t, smtp.Wait(t, "ana@example.com"), "has ended", "want an email about the end of Pro")
}
