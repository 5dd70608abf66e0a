package portal

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/account/billing"
)

// till is where people pay: it knows one customer's subscriptions, or not even
// the customer.
type till struct {
	subscriptions atomic.Pointer[string] // nil where the customer is gone
}

func (c *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := c.subscriptions.Load()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case known == nil && r.URL.Path != "/v1/billing_portal/configurations":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer"}}`)
	case r.URL.Path == "/v1/subscriptions":
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s]}`, *known)
	default:
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
	}
}

func (c *till) has(subscriptions string) { c.subscriptions.Store(&subscriptions) }

// selling is a site with somebody who is a customer.
func selling(t *testing.T) (*till, *browser) {
	t.Helper()
	stripe := &till{}
	server := httptest.NewServer(stripe)
	t.Cleanup(server.Close)
	s := onSQLite(t, func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", APIBase: server.URL, Store: cfg.Store, Mail: cfg.Mail, Log: cfg.Log, ServiceName: "Palmarès"})
	})
	b := s.signIn("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(s.account("ana@example.com").ID).SetEmail("ana@example.com").ExecX(t.Context())
	return stripe, b
}

const active = `{"id":"sub_1","object":"subscription","status":"active","items":{"object":"list","data":[{"id":"si_1","current_period_end":4102444800}]}}`

// The news of a payment may be later than who has paid.
func TestBackFromPaying(t *testing.T) {
	t.Parallel()
	stripe, b := selling(t)
	stripe.has("")
	back := b.get("/account/plan/done")
	wantGo(t, back, "/account/plan")
	waiting := b.get(back.to())
	wantPage(t, waiting, 200, "Your payment is being confirmed", `href="/account/plan/done"`)
	wantNot(t, waiting, "Subscribe to Pro")

	stripe.has(active) // a moment later
	back = b.get("/account/plan/done")
	if back.to() != "/account/plan" {
		t.Errorf("to %s", back.to())
	}
	wantPage(t, b.get(back.to()), 200, "You have the <strong>Pro</strong> plan", "It renews on 1 January 2100")
	wantNot(t, b.get("/account/plan?done=paying"), "being confirmed")
}

// Who comes back from cancelling has paid nothing.
func TestBackFromManaging(t *testing.T) {
	t.Parallel()
	stripe, b := selling(t)
	stripe.has(active)
	wantGo(t, b.get("/account/plan/done"), "/account/plan")
	b.site.db.Write.Customer.Update().SetReadAt(time.Now().Add(-time.Minute)).ExecX(t.Context())
	stripe.has("")
	if back := b.get("/account/plan/back"); back.to() != "/account/plan" {
		t.Errorf("to %s", back.to())
	}
	wantPage(t, b.get("/account/plan"), 200, "You have the <strong>Developer</strong> plan", "Subscribe to Pro")
}

// A customer that is gone there without news is one no more: what is left to do
// is on the page.
func TestManagingNobody(t *testing.T) {
	t.Parallel()
	_, b := selling(t)
	got := b.post("/account/plan/manage")
	wantPage(t, got, 400, "no longer has a subscription of yours", "Subscribe to Pro")
	wantNot(t, got, "Card, invoices")
}
