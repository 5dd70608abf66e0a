package billing

import (
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/core/problem"
)

// saved is the page as an operator saves it in Stripe's dashboard.
func saved() map[string]any { return map[string]any{"id": "bpc_saved", "is_default": true} }

func TestManage(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.customer()
		s.peer.pages = []map[string]any{saved()}
		if _, made, err := s.SetUpManaging(t.Context()); err != nil || !made {
			t.Fatalf("%v, %v", made, err)
		}
		address, err := s.Manage(t.Context(), s.account)
		if err != nil || !strings.HasPrefix(address, "https://") {
			t.Errorf("%q, %v", address, err)
		}
		wantForm(t, s.peer.only(t, "POST /v1/billing_portal/sessions"), map[string]string{
			"customer": "cus_1", "return_url": publicURL + "/account/plan/back", "configuration": "bpc_made",
		})
	})
}

// What was saved in the dashboard does, too: Stripe takes it by itself.
func TestManageWithTheDefault(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.pages = []map[string]any{saved()}
		if _, err := s.Manage(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		wantForm(t, s.peer.only(t, "POST /v1/billing_portal/sessions"), map[string]string{
			"customer": "cus_1", "return_url": publicURL + "/account/plan/back",
		})
	})
}

// A new account at Stripe has no such page until it is set up.
func TestManageBeforeItIsSetUp(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		said := problem.Of(err).Message
		s.wantOwnWords(said)
		if strings.Contains(said, "does not answer") {
			t.Errorf("said %q", said)
		}
		if !strings.Contains(s.log.String(), "run palmares billing setup") {
			t.Errorf("the log does not say what to do: %s", s.log)
		}
	})
}

// A restricted key may not read what it may use.
func TestManageWithARestrictedKey(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.pages = []map[string]any{saved()}
		s.peer.forbidden = "GET /v1/billing_portal/configurations"
		if _, err := s.Manage(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.peer.forbidden = "POST /v1/billing_portal/sessions"
		s.peer.pages = nil
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.Internal)
		if strings.Contains(s.log.String(), "run palmares billing setup") {
			t.Error("the log says what would not help")
		}
	})
}

func TestSetUpManaging(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for _, want := range []bool{true, false} { // made once, found again
			id, made, err := s.SetUpManaging(t.Context())
			if err != nil || made != want || id != "bpc_made" {
				t.Fatalf("%q, %v, %v", id, made, err)
			}
		}
		wantForm(t, s.peer.only(t, "POST /v1/billing_portal/configurations"), map[string]string{
			"features[payment_method_update][enabled]": "true", "features[invoice_history][enabled]": "true",
			"features[subscription_cancel][enabled]": "true", "features[subscription_cancel][mode]": "at_period_end",
			"features[customer_update][enabled]":            "true",
			"features[customer_update][allowed_updates][0]": "address", "features[customer_update][allowed_updates][1]": "tax_id",
			"metadata[made_by]": "palmares billing setup",
		})
		wantForm(t, s.peer.made("GET /v1/billing_portal/configurations")[0], map[string]string{"active": "true"})
	})
}

// A customer that was deleted at Stripe without news has nothing to manage.
func TestManageButGone(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.pages = []map[string]any{saved()}
		s.peer.forget("cus_1")
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.wantOwnWords(problem.Of(err).Message)
		s.wantPlan(auth.Developer)
		s.wantNewBeginning()
	})
}

// Nobody makes us ask Stripe all the time.
func TestClicksAreBound(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.pages = []map[string]any{saved()}
		for range clicksAMinute / 2 {
			if _, err := s.Manage(t.Context(), s.account); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Subscribe(t.Context(), s.account); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.TooMany)
		_, err = s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.TooMany)
		if n := len(s.peer.made("POST /v1/billing_portal/sessions")); n != clicksAMinute/2 {
			t.Errorf("%d calls", n)
		}
		if err := s.clicks.count(s.account.ID+1, s.clock()); err != nil {
			t.Errorf("another account: %v", err)
		}
		s.wait(time.Minute)
		if _, err := s.Manage(t.Context(), s.account); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}
