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
	"palmares/internal/dev/check"
)

func enableBilling(cfg *Config) {
	cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", Store: cfg.Store, Log: cfg.Log})
}

func TestPlanPage(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t, enableBilling)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	ana := s.account("ana@example.com")
	wantPage(t, b.get("/account/plan"), 200, "You are on the <strong>Developer</strong> plan", "€99 per month plus VAT", "Subscribe to Pro")
	wantNoText(t, b.get("/account/plan"), "Manage billing")

	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).ExecX(t.Context())
	for name, c := range map[string]struct {
		plan, status string
		overdue      time.Duration // for how long a payment has been due
		cancels      bool
		texts, not   []string
	}{
		"subscribed":           {"pro", "active", 0, false, []string{"<strong>Pro</strong>", "It renews on 1 April 2026", "Manage billing"}, []string{"Subscribe to Pro", "failed", "It ends"}},
		"ends with its period": {"pro", "active", 0, true, []string{"<strong>Pro</strong>", "It ends on 1 April 2026", "Manage billing"}, []string{"It renews", "Subscribe to Pro"}},
		"payment failed":       {"pro", "past_due", 48 * time.Hour, false, []string{"Your last payment failed", "You have Pro until 20 March 2026", "<strong>Pro</strong>", "Manage billing"}, []string{"is unpaid", "It renews"}},
		"not paid in a week":   {"developer", "past_due", 8 * 24 * time.Hour, false, []string{"Your subscription is unpaid", "<strong>Developer</strong>", "Manage billing"}, []string{"You have Pro until", "Subscribe to Pro"}},
		"unpaid":               {"developer", "unpaid", 0, false, []string{"Your subscription is unpaid", "<strong>Developer</strong>", "Manage billing"}, []string{"Subscribe to Pro"}},
		"first payment":        {"developer", "incomplete", 0, false, []string{"first payment is not complete"}, []string{"Subscribe to Pro", "is unpaid"}},
		"canceled":             {"developer", "canceled", 0, true, []string{"<strong>Developer</strong>", "Subscribe to Pro", "Manage billing"}, []string{"It ends", "is unpaid"}},
	} {
		t.Run(name, func(t *testing.T) {
			update := s.db.Write.Customer.Update().SetStatus(c.status).SetCancels(c.cancels).SetPeriodEnd(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)).ClearPastDueSince()
			if c.overdue > 0 {
				update.SetPastDueSince(noon.Add(-c.overdue))
			}
			update.ExecX(t.Context())
			s.db.Write.Account.UpdateOne(ana).SetPlan(planOf(c.plan)).ExecX(t.Context())
			page := b.get("/account/plan")
			wantPage(t, page, 200, c.texts...)
			wantNoText(t, page, c.not...)
			check.Equal(t, strings.Contains(b.get(home).text, "Your last payment failed"), (name == "payment failed"), "warning on the keys page")
		})
	}
}

// The page is consistent if an operator has set the plan and there also is a
// subscription.
func TestManualPlan(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t, enableBilling)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	ana := s.account("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetPeriodEnd(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)).ExecX(t.Context())
	for name, c := range map[string]struct {
		plan, status string
		texts, not   []string
		refused      string
	}{
		"Pro":                            {"pro", "canceled", []string{"We set it manually, at no cost to you"}, []string{"also have", "Contact us"}, "there is nothing to pay"},
		"Pro with a subscription":        {"pro", "active", []string{"We set it manually. You also have a subscription, which renews on 1 April 2026", "Manage billing"}, []string{"at no cost", "Contact us"}, "there is nothing to pay"},
		"Pro with a failed payment":      {"pro", "past_due", []string{"You also have a subscription", "Manage billing"}, []string{"You have Pro until", "at no cost"}, "there is nothing to pay"},
		"Developer":                      {"developer", "canceled", []string{"We set it manually. Contact us to upgrade to Pro"}, []string{"at no cost", "also have"}, "Contact us"},
		"Developer with a subscription":  {"developer", "active", []string{"You also have a subscription", "Contact us to upgrade to Pro", "Manage billing"}, []string{"at no cost", "is unpaid"}, "Contact us"},
		"Developer with a first payment": {"developer", "incomplete", []string{"Contact us"}, []string{"Pro starts as soon as it is"}, "Contact us"},
	} {
		s.db.Write.Customer.Update().SetStatus(c.status).SetPastDueSince(noon.Add(-time.Hour)).ExecX(t.Context())
		s.db.Write.Account.UpdateOne(ana).SetPlan(planOf(c.plan)).SetManualPlan(true).ExecX(t.Context())
		t.Run(name, func(t *testing.T) {
			page := b.get("/account/plan")
			wantPage(t, page, 200, c.texts...)
			wantNoText(t, page, append(c.not, "Subscribe to Pro")...)
			refused := b.post("/account/plan/subscribe")
			wantPage(t, refused, 400, c.refused)
			if c.plan == "developer" {
				wantNoText(t, refused, "nothing to pay", "at no cost")
			}
			wantNoText(t, b.get(home), "Your last payment failed")
		})
	}
}

// If Stripe fails after the checkout, the page does not say that nothing changed.
func TestReturnFromCheckoutWhileStripeFails(t *testing.T) {
	t.Parallel()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(failing.Close)
	s := newSQLiteSite(t, func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", APIBase: failing.URL, Store: cfg.Store, Log: cfg.Log})
	})
	b := s.signIn("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(s.account("ana@example.com").ID).SetEmail("ana@example.com").ExecX(t.Context())
	back := b.get("/account/plan/done")
	wantRedirect(t, back, "/account/plan")
	page := b.get(back.to())
	wantPage(t, page, 200, "Your payment is being confirmed")
	wantNoText(t, page, "Nothing was changed", "Subscribe to Pro")
	wantPage(t, b.get("/account/plan"), 200, "Subscribe to Pro") // nothing was paid
	check.Contains(t, s.log.String(), "reading the subscription from Stripe failed", "log line")
}

func TestBillingDisabled(t *testing.T) {
	t.Parallel()
	b := newSQLiteSite(t).signIn("ana@example.com")
	wantPage(t, b.get("/account/plan"), 200, "Subscriptions are not available on this server")
	wantNoText(t, b.get("/account/plan"), "Subscribe to Pro")
	wantPage(t, b.post("/account/plan/subscribe"), 404, "not available")
	wantPage(t, b.post("/account/plan/manage"), 404, "not available")
	wantRedirect(t, b.get("/account/plan/done"), "/account/plan")
}

// fakeStripe has one customer with subscriptions, or no customer.
type fakeStripe struct {
	subscriptions atomic.Pointer[string] // nil if the customer was deleted
}

func (c *fakeStripe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := c.subscriptions.Load()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case known == nil && r.URL.Path != "/v1/billing_portal/configurations":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer"}}`)
	case r.URL.Path == "/v1/billing_portal/sessions":
		_, _ = io.WriteString(w, `{"object":"billing_portal.session","url":"https://billing.stripe.example/p"}`)
	case r.URL.Path == "/v1/subscriptions":
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s]}`, *known)
	default:
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
	}
}

func (c *fakeStripe) set(subscriptions string) { c.subscriptions.Store(&subscriptions) }

// withBilling returns a site on which a customer is signed in.
func withBilling(t *testing.T) (*fakeStripe, *browser) {
	t.Helper()
	stripe := &fakeStripe{}
	server := httptest.NewServer(stripe)
	t.Cleanup(server.Close)
	s := newSQLiteSite(t, func(cfg *Config) {
		cfg.Billing = billing.New(billing.Config{SecretKey: "sk_test_nothing", APIBase: server.URL, Store: cfg.Store, Log: cfg.Log, ServiceName: "Palmarès"})
	})
	b := s.signIn("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(s.account("ana@example.com").ID).SetEmail("ana@example.com").ExecX(t.Context())
	return stripe, b
}

const active = `{"id":"sub_1","object":"subscription","status":"active","items":{"object":"list","data":[{"id":"si_1","current_period_end":4102444800}]}}`

// The event of a payment may arrive later than the customer.
func TestReturnFromCheckout(t *testing.T) {
	t.Parallel()
	stripe, b := withBilling(t)
	stripe.set("")
	back := b.get("/account/plan/done")
	wantRedirect(t, back, "/account/plan")
	waiting := b.get(back.to())
	wantPage(t, waiting, 200, "Your payment is being confirmed", `href="/account/plan/done"`)
	wantNoText(t, waiting, "Subscribe to Pro")

	stripe.set(active) // a moment later
	back = b.get("/account/plan/done")
	check.Equal(t, back.to(), "/account/plan", "redirect")
	wantPage(t, b.get(back.to()), 200, "You are on the <strong>Pro</strong> plan", "It renews on 1 January 2100")
	wantNoText(t, b.get("/account/plan?done=paying"), "being confirmed")
}

// After canceling, the page does not mention a payment.
func TestReturnFromBillingPortal(t *testing.T) {
	t.Parallel()
	stripe, b := withBilling(t)
	stripe.set(active)
	wantRedirect(t, b.get("/account/plan/done"), "/account/plan")
	b.site.db.Write.Customer.Update().SetReadAt(time.Now().Add(-time.Minute)).ExecX(t.Context())
	stripe.set("")
	check.Equal(t, b.post("/account/plan/manage").to(), "https://billing.stripe.example/p", "redirect")
	check.Equal(t, b.get("/account/plan/back").to(), "/account/plan", "redirect")
	wantPage(t, b.get("/account/plan"), 200, "You are on the <strong>Developer</strong> plan", "Subscribe to Pro")
}

// A customer that was deleted at Stripe is unlinked, and the page offers to
// subscribe.
func TestManageDeletedCustomer(t *testing.T) {
	t.Parallel()
	_, b := withBilling(t)
	got := b.post("/account/plan/manage")
	wantPage(t, got, 400, "no longer has your subscription", "Subscribe to Pro")
	wantNoText(t, got, "Manage billing")
}

// If Pro cannot be purchased, the page says whom to contact.
func TestContactOnPlanPage(t *testing.T) {
	t.Parallel()
	const link = `<a href="mailto:hello@palmares.example">`
	s := newSQLiteSite(t, func(cfg *Config) { cfg.Contact = "hello@palmares.example" })
	b := s.signIn("ana@example.com")
	wantPage(t, b.get("/account/plan"), 200, "To get Pro, write to "+link)
	s.db.Write.Account.Update().SetManualPlan(true).ExecX(t.Context())
	wantPage(t, b.get("/account/plan"), 200, link+"Contact us</a> to upgrade to Pro.")

	wantNoText(t, newSQLiteSite(t).signIn("ana@example.com").get("/account/plan"), "mailto:", "write to")
	forSale := newSQLiteSite(t, enableBilling, func(cfg *Config) { cfg.Contact = "hello@palmares.example" })
	wantNoText(t, forSale.signIn("ana@example.com").get("/account/plan"), "mailto:", "write to")
}
