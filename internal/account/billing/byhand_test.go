package billing

import (
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

// What an operator has set, billing leaves alone.
func TestPlanByHand(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.byHand(auth.Developer)
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Developer)
		s.wantHandedBack(auth.Pro)

		s.byHand(auth.Pro)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock()
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.wait(Grace + time.Hour)
		s.look(t.Context())
		s.wantPlan(auth.Pro)
		sub.status = stripe.SubscriptionStatusCanceled
		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Pro)
		s.wantHandedBack(auth.Developer)

		s.isNow(stripe.EventTypeCustomerSubscriptionCreated, s.begun(stripe.SubscriptionStatusActive))
		s.wantPlan(auth.Pro) // billing says it again
	})
}

func (s *shop) byHand(to auth.Plan) {
	s.t.Helper()
	if err := s.accounts.SetPlan(s.t.Context(), s.account, to); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) wantHandedBack(want auth.Plan) {
	s.t.Helper()
	got, err := HandBack(s.t.Context(), s.Store, s.account)
	if err != nil || got != want {
		s.t.Fatalf("handed back to %q, not %q: %v", got, want, err)
	}
	s.wantPlan(want)
}

// Who never subscribed is handed back to Developer.
func TestHandBackNobody(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.byHand(auth.Pro)
		s.wantHandedBack(auth.Developer)
	})
}

// Whose plan does not depend on a payment is not told that it does.
func TestNoNoticeOfAPlanByHand(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.byHand(auth.Pro)
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.look(t.Context())
		if n := s.smtp.Count(owner); n != 0 {
			t.Errorf("%d letters", n)
		}
		s.wantHandedBack(auth.Pro)
		s.wantNotice(s.clock().Add(Grace)) // now it does
	})
}
