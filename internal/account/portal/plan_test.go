package portal

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/account/billing"
)

func TestPlanPage(t *testing.T) {
	t.Parallel()
	sells := func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", Store: cfg.Store, Log: cfg.Log})
	}
	s := onSQLite(t, sells)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	ana := s.account("ana@example.com")
	wantPage(t, b.get("/account/plan"), 200, "You have the <strong>Developer</strong> plan", "99 EUR", "Subscribe to Pro")
	wantNot(t, b.get("/account/plan"), "Card, invoices")

	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).ExecX(t.Context())
	for name, c := range map[string]struct {
		plan, status string
		behind       time.Duration // since when a payment is due; 0 for none
		cancels      bool
		says, not    []string
	}{
		"subscribed":           {"pro", "active", 0, false, []string{"<strong>Pro</strong>", "It renews on 1 April 2026", "Card, invoices"}, []string{"Subscribe to Pro", "failed", "It ends"}},
		"ends with its period": {"pro", "active", 0, true, []string{"<strong>Pro</strong>", "It ends on 1 April 2026", "Card, invoices"}, []string{"It renews", "Subscribe to Pro"}},
		"payment failed":       {"pro", "past_due", 48 * time.Hour, false, []string{"Your last payment failed", "Pro goes on until 20 March 2026", "<strong>Pro</strong>", "Card, invoices"}, []string{"not paid", "It renews"}},
		"not paid in a week":   {"developer", "past_due", 8 * 24 * time.Hour, false, []string{"Your subscription is not paid", "<strong>Developer</strong>", "Card, invoices"}, []string{"Pro goes on until", "Subscribe to Pro"}},
		"unpaid":               {"developer", "unpaid", 0, false, []string{"Your subscription is not paid", "<strong>Developer</strong>", "Card, invoices"}, []string{"Subscribe to Pro"}},
		"first payment":        {"developer", "incomplete", 0, false, []string{"first payment is not through"}, []string{"Subscribe to Pro", "not paid"}},
		"closed":               {"developer", "canceled", 0, true, []string{"<strong>Developer</strong>", "Subscribe to Pro", "Card, invoices"}, []string{"It ends", "not paid"}},
	} {
		t.Run(name, func(t *testing.T) {
			update := s.db.Write.Customer.Update().SetStatus(c.status).SetCancels(c.cancels).SetPeriodEnd(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)).ClearPastDueSince()
			if c.behind > 0 {
				update.SetPastDueSince(noon.Add(-c.behind))
			}
			update.ExecX(t.Context())
			s.db.Write.Account.UpdateOne(ana).SetPlan(planOf(c.plan)).ExecX(t.Context())
			page := b.get("/account/plan")
			wantPage(t, page, 200, c.says...)
			wantNot(t, page, c.not...)
			if due := strings.Contains(b.get(home).text, "Your last payment failed"); due != (name == "payment failed") {
				t.Errorf("told on the page of keys: %v", due)
			}
		})
	}

}

// What an operator has set, and what is paid for beside it, contradict neither
// each other nor us.
func TestPlanSetByHand(t *testing.T) {
	t.Parallel()
	s := onSQLite(t, func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", Store: cfg.Store, Log: cfg.Log})
	})
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	ana := s.account("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetPeriodEnd(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)).ExecX(t.Context())
	for name, c := range map[string]struct {
		plan, status string
		says, not    []string
		refused      string
	}{
		"Pro":                          {"pro", "canceled", []string{"It was set by us, and costs you nothing"}, []string{"beside it", "write to us"}, "there is nothing to pay"},
		"Pro beside a subscription":    {"pro", "active", []string{"It was set by us. Your subscription goes on beside it, and renews on 1 April 2026", "Card, invoices"}, []string{"costs you nothing", "write to us"}, "there is nothing to pay"},
		"Pro beside a failed payment":  {"pro", "past_due", []string{"Your subscription goes on beside it", "Card, invoices"}, []string{"Pro goes on until", "costs you nothing"}, "there is nothing to pay"},
		"Developer":                    {"developer", "canceled", []string{"It was set by us. To have Pro, write to us"}, []string{"costs you nothing", "beside it"}, "write to us"},
		"Developer beside one":         {"developer", "active", []string{"Your subscription goes on beside it", "To have Pro, write to us", "Card, invoices"}, []string{"costs you nothing", "not paid"}, "write to us"},
		"Developer beside a first one": {"developer", "incomplete", []string{"write to us"}, []string{"This page shows Pro as soon as it is"}, "write to us"},
	} {
		s.db.Write.Customer.Update().SetStatus(c.status).SetPastDueSince(noon.Add(-time.Hour)).ExecX(t.Context())
		s.db.Write.Account.UpdateOne(ana).SetPlan(planOf(c.plan)).SetPlanByHand(true).ExecX(t.Context())
		t.Run(name, func(t *testing.T) {
			page := b.get("/account/plan")
			wantPage(t, page, 200, c.says...)
			wantNot(t, page, append(c.not, "Subscribe to Pro")...)
			refused := b.post("/account/plan/subscribe")
			wantPage(t, refused, 400, c.refused)
			if c.plan == "developer" {
				wantNot(t, refused, "nothing to pay", "costs you nothing")
			}
			wantNot(t, b.get(home), "Your last payment failed")
		})
	}
}

// Who comes back from paying is not told that nothing was changed.
func TestBackFromPayingAsStripeFails(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(away.Close)
	s := onSQLite(t, func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", APIBase: away.URL, Store: cfg.Store, Log: cfg.Log})
	})
	b := s.signIn("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(s.account("ana@example.com").ID).SetEmail("ana@example.com").ExecX(t.Context())
	back := b.get("/account/plan/done")
	wantGo(t, back, "/account/plan")
	page := b.get(back.to())
	wantPage(t, page, 200, "Your payment may take a minute to show here.")
	wantPage(t, page, 200, "Your payment is being confirmed")
	wantNot(t, page, "Nothing was changed", "Subscribe to Pro")
	wantPage(t, b.get("/account/plan"), 200, "Subscribe to Pro") // for who did not pay
	if !strings.Contains(s.log.String(), "came back from Stripe") {
		t.Error("the log does not tell")
	}
}

func TestNothingIsSold(t *testing.T) {
	t.Parallel()
	b := onSQLite(t).signIn("ana@example.com")
	wantPage(t, b.get("/account/plan"), 200, "Subscription is not open on this server")
	wantNot(t, b.get("/account/plan"), "Subscribe to Pro")
	wantPage(t, b.post("/account/plan/subscribe"), 404, "not open")
	wantPage(t, b.post("/account/plan/manage"), 404, "not open")
	wantGo(t, b.get("/account/plan/done"), "/account/plan")
}

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
