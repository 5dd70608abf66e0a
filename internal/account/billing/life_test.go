package billing

import (
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

const month = 30 * 24 * time.Hour

// A subscription's whole life, told by events.
func TestLife(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wantPeriodEnd(sub.periodEnd)

		s.wait(month)
		sub.periodEnd = sub.periodEnd.Add(month)
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		s.wantPeriodEnd(sub.periodEnd)

		s.fallBehind(&sub)
		s.recover(&sub)
		s.fallBehind(&sub) // a later failure is told anew
		s.recover(&sub)
		if n := s.smtp.Count(owner); n != 2 {
			t.Errorf("%d letters", n)
		}

		sub.cancels = true
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Pro) // until the period ends
		if !s.row().Cancels {
			t.Error("that it ends is not known")
		}

		s.wait(month)
		sub.status = stripe.SubscriptionStatusCanceled
		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}

		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.isNow(stripe.EventTypeCheckoutSessionCompleted, sub, s.begun(stripe.SubscriptionStatusActive))
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made("POST /v1/customers")); n != 1 {
			t.Errorf("%d customers were made", n)
		}
	})
}

// fallBehind fails a payment: Pro goes on, and its owner is told once.
func (s *shop) fallBehind(sub *subscription) {
	s.t.Helper()
	sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-time.Hour)
	until := s.clock().Add(Grace).UTC().Format("2 January 2006")
	s.isNow(stripe.EventTypeInvoicePaymentFailed, *sub)
	s.wantPlan(auth.Pro)
	for range 3 {
		s.look(s.t.Context())
		s.wait(time.Hour)
	}
	s.isNow(stripe.EventTypeInvoicePaymentFailed, *sub) // the next attempt
	s.look(s.t.Context())
	s.wantPlan(auth.Pro)
	if letter := s.smtp.Wait(s.t, owner); !strings.Contains(letter, until) || !strings.Contains(letter, "failed") {
		s.t.Errorf("the letter does not say until when: %s", letter)
	}
}

func (s *shop) recover(sub *subscription) {
	s.t.Helper()
	sub.status = stripe.SubscriptionStatusActive
	s.isNow(stripe.EventTypeInvoicePaid, *sub)
	s.wantPlan(auth.Pro)
	if row := s.row(); row.PastDueSince != nil || row.NoticedAt != nil {
		s.t.Errorf("a failure that is over is still known: %v", row)
	}
}

func (s *shop) wantPeriodEnd(want time.Time) {
	s.t.Helper()
	if got := s.row().PeriodEnd; got == nil || !got.Equal(want) {
		s.t.Errorf("the period ends at %v, not %v", got, want)
	}
}

// No event comes when the grace ends.
func TestGraceEnds(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-2*time.Hour)
		sub.finalizedAt = s.clock().Add(-time.Hour)
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.look(t.Context())
		s.smtp.Wait(t, owner)

		s.wait(Grace - time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Pro)
		if PlanOf(s.row(), s.clock()) != auth.Pro {
			t.Error("the grace is over too early")
		}
		s.wait(time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}
		s.look(t.Context())

		// A payment that comes at last brings it back.
		sub.status = stripe.SubscriptionStatusActive
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		if n := s.smtp.Count(owner); n != 2 {
			t.Errorf("%d letters", n)
		}
	})
}

func TestStatuses(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		for status, want := range map[stripe.SubscriptionStatus]auth.Plan{
			stripe.SubscriptionStatusTrialing:          auth.Pro,
			stripe.SubscriptionStatusActive:            auth.Pro,
			stripe.SubscriptionStatusPastDue:           auth.Pro,
			stripe.SubscriptionStatusUnpaid:            auth.Developer,
			stripe.SubscriptionStatusPaused:            auth.Developer,
			stripe.SubscriptionStatusIncomplete:        auth.Developer,
			stripe.SubscriptionStatusIncompleteExpired: auth.Developer,
			stripe.SubscriptionStatusCanceled:          auth.Developer,
			"a word of next year's":                    auth.Developer,
		} {
			sub := s.begun(status)
			s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
			s.wantPlan(want)
			// Of two, the better one counts, whichever is listed first.
			s.isNow(stripe.EventTypeCustomerSubscriptionCreated, sub, s.begun(stripe.SubscriptionStatusActive))
			s.wantPlan(auth.Pro)
			s.isNow(stripe.EventTypeCustomerSubscriptionDeleted)
			s.wantPlan(auth.Developer)
		}
	})
}

// Of two that are worth the same, the newest counts, whichever is listed first.
func TestNewestSubscription(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		for _, status := range []stripe.SubscriptionStatus{stripe.SubscriptionStatusActive, stripe.SubscriptionStatusCanceled} {
			older := s.begun(status)
			s.wait(time.Hour)
			newer := s.begun(status)
			for _, all := range [][]subscription{{older, newer}, {newer, older}} {
				s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, all...)
				if got := s.row().Subscription; got != newer.id {
					t.Errorf("%s: %s counts, not %s", status, got, newer.id)
				}
				s.wantPeriodEnd(newer.periodEnd)
			}
		}
	})
}

// A date to end at is an end, too, wherever it is in a period.
func TestCancelAt(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		for _, off := range []time.Duration{-10 * 24 * time.Hour, 0, 10 * 24 * time.Hour} {
			sub.cancelAt = sub.periodEnd.Add(off)
			s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
			if !s.row().Cancels {
				t.Error("that it ends is not known")
			}
			s.wantPeriodEnd(sub.cancelAt)
		}
		sub.cancelAt = time.Time{}
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPeriodEnd(sub.periodEnd)
	})
}

// What ends long after its period is still paid for: lost news of that is found.
func TestLateNewsOfOneThatEnds(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.cancelAt = sub.periodEnd.Add(3 * month)
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		sub.status = stripe.SubscriptionStatusUnpaid
		s.peer.set("cus_1", sub)
		s.wait(endingReadEvery)
		s.look(t.Context())
		s.wantPlan(auth.Pro)
		s.wait(time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Developer)
	})
}
