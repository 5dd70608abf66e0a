package portal

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"palmares/internal/account/billing"
	"palmares/internal/core/quota"
)

var noon = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

func TestUsagePage(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	empty := b.get("/account/usage")
	wantPage(t, empty, 200, `<strong id="today">0</strong> requests today, 1,000 of 1,000 left`, "<svg", "15 March 2026")
	if n := strings.Count(empty.text, `<th scope="row">`); n != 30 {
		t.Errorf("%d days", n)
	}
	wantNot(t, empty, "<rect", "NaN", "Inf")

	ana := s.account("ana@example.com")
	for back, requests := range map[int]int{0: 999, 1: 1, 29: 12345, 30: 777} {
		s.db.Write.Usage.Create().SetAccountID(ana.ID).SetDay(quota.DayOf(noon.AddDate(0, 0, -back)).String()).SetRequests(requests).ExecX(t.Context())
	}
	page := b.get("/account/usage")
	wantPage(t, page, 200, `<strong id="today">999</strong> requests today, 1 of 1,000 left`, "The last 30 days: 13,345 requests", "12,345", "14 March 2026: 1")
	wantNot(t, page, "777", "quota is spent")
	if n := strings.Count(page.text, "<rect"); n != 3 {
		t.Errorf("%d bars", n)
	}
	wantPage(t, b.get(home), 200, "Today: 999 requests of 1,000")

	s.db.Write.Usage.Update().SetRequests(1003).ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "quota is spent", "0 of 1,000 left", "midnight UTC", "2026-03-16T00:00:00Z")
	wantPage(t, b.get(home), 200, "quota is spent")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "your plan has no bound")
	wantNot(t, b.get("/account/usage"), "quota is spent")
	wantNot(t, b.get(home), "quota is spent")
}

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

// Who is not signed in has no account to go to.
func TestProblemsOfStrangers(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for _, got := range []answer{s.browser().get("/account/nothing"), s.browser().get("/login/confirm?token=x"), s.browser().send("POST", "/login", strings.NewReader("email=%zz"))} {
		wantNot(t, got, "To your account")
		if !strings.Contains(got.text, `href="/login">Sign in</a>`) {
			t.Errorf("it offers nothing: %s", got.text)
		}
	}
	b := s.signIn("ana@example.com")
	for _, got := range []answer{b.get("/account/nothing"), b.send("POST", "/account/keys", strings.NewReader("name=%zz"))} {
		wantNot(t, got, ">Sign in<")
		if !strings.Contains(got.text, "To your account") {
			t.Errorf("it leads nowhere: %s", got.text)
		}
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

// Each state of a link has a page, before and after its button is pressed.
func TestLinksThatDoNotWork(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	stranger := s.browser()
	signIn, change := stranger.ask("eva@example.com"), ana.askChange("anna@example.com")
	both := func(b *browser, path, token string, status int, says string) {
		t.Helper()
		wantPage(t, b.get(path+"?token="+url.QueryEscape(token)), status, says)
		wantPage(t, b.post(path, "token", token), status, says)
	}
	both(stranger, "/login/confirm", "", 404, "This link is not known")
	both(stranger, "/login/confirm", "made up\x00\xff", 404, "This link is not known")
	both(stranger, "/login/confirm", change.token(t), 404, "This link is not known")
	both(ana, "/account/email/confirm", signIn.token(t), 404, "This link is not known")
	both(ben, "/account/email/confirm", change.token(t), 403, "This link is another account's")
	wantGo(t, stranger.get("/account/email/confirm?token="+change.token(t)), "/login")

	// A code of the one kind does nothing for the other.
	wantPage(t, ana.post("/login/code", "code", change.code), 404, "not known")
	wantGo(t, ana.get("/login/code"), "/login")
	for _, row := range s.db.Write.Confirmation.Query().AllX(t.Context()) {
		if row.Tries != 0 {
			t.Errorf("a try of %s is used up", row.Email)
		}
	}
	mixed := s.signIn("mia@example.com")
	code := mixed.ask("max@example.com").code
	wantPage(t, mixed.post("/account/email/code", "code", code), 404, "not known")
	if s.account("ana@example.com") == nil || s.account("mia@example.com") == nil {
		t.Error("an address was changed")
	}

	wantGo(t, stranger.post("/login/confirm", "token", signIn.token(t)), home)
	both(s.browser(), "/login/confirm", signIn.token(t), 410, "This link was used already")
	wantPage(t, s.browser().get(signIn.path(t)), 410, "Ask for a new message")

	late := s.browser()
	expired := late.ask("tim@example.com")
	s.expire("confirmations")
	both(late, "/login/confirm", expired.token(t), 410, "This link has expired")
	both(ana, "/account/email/confirm", change.token(t), 410, "This link has expired")
	wantPage(t, late.post("/login/code", "code", expired.code), 410, "expired")
	wantPage(t, late.get("/login/code"), 410, "expired")
}
