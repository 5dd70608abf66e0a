package billing

import (
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

// A debit may come back long after its invoice: the grace begins with the news.
func TestDebitBouncesLate(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-8*24*time.Hour)
		sub.finalizedAt = sub.invoiced
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.wantPlan(auth.Pro)
		s.wantNotice(s.clock().Add(Grace))
		s.wantGraceUntil(s.clock().Add(Grace))
	})
}

// wantNotice looks, and wants a letter that says until when Pro goes on.
func (s *shop) wantNotice(until time.Time) {
	s.t.Helper()
	s.look(s.t.Context())
	letter := s.smtp.Wait(s.t, owner)
	if !strings.Contains(letter, until.UTC().Format("2 January 2006")) || !strings.Contains(letter, "failed") {
		s.t.Errorf("the letter does not say until when: %s", letter)
	}
}

// wantGraceUntil wants Pro up to a moment and no longer.
func (s *shop) wantGraceUntil(end time.Time) {
	s.t.Helper()
	s.wait(end.Sub(s.clock()) - time.Second)
	s.look(s.t.Context())
	s.wantPlan(auth.Pro)
	s.wait(time.Second)
	s.look(s.t.Context())
	s.wantPlan(auth.Developer)
}

// Each attempt that fails is news, but none gives another seven days.
func TestGraceIsNotBegunAgain(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		end := s.clock().Add(Grace)
		sub.status = stripe.SubscriptionStatusPastDue
		for range 3 {
			sub.invoiced, sub.finalizedAt = s.clock(), s.clock()
			s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
			s.wait(2 * 24 * time.Hour)
		}
		s.wantNotice(end)
		s.wantGraceUntil(end)
	})
}

// Where the news of it was lost, the grace begins as it is found.
func TestFailureFoundLate(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-Grace-time.Hour)
		s.peer.set("cus_1", sub)
		s.wait(2 * time.Hour)
		s.wantNotice(s.clock().Add(Grace))
		s.wantPlan(auth.Pro)
	})
}

// What was past due before we knew of it counts from its invoice. Who is found
// too late for any grace is not told that Pro goes on.
func TestGraceWasOver(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		sub := s.begun(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace)
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Developer)
		s.look(t.Context())
		if n := s.smtp.Count(owner); n != 0 {
			t.Errorf("%d letters", n)
		}
	})
}

// And who is found in time has what is left of it.
func TestRestOfTheGrace(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		sub := s.begun(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace + time.Hour)
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantNotice(s.clock().Add(time.Hour))
		s.wantGraceUntil(s.clock().Add(time.Hour))
	})
}
