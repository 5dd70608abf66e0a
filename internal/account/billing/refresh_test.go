package billing

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/dev/testkit/wait"
)

const reading = "GET /v1/subscriptions"

// wantAsked syncs, and wants to know how often Stripe was asked.
func (s *shop) wantAsked(want int) {
	s.t.Helper()
	if err := s.Sync(s.t.Context(), s.account); err != nil {
		s.t.Error(err)
	}
	if n := len(s.peer.made(reading)); n != want {
		s.t.Errorf("asked %d times, not %d", n, want)
	}
}

// Whoever reloads the page after paying does not make us ask Stripe each time.
func TestSyncAsksSeldom(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(1)
		s.wait(freshFor - time.Second)
		s.wantAsked(1)
		s.wait(time.Second)
		s.wantAsked(2)
	})
}

// Who was not Pro a moment ago may have paid since, but does not make us ask
// without end.
func TestSyncAfterPaying(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.wantAsked(1)
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(2)
		s.wantPlan(auth.Pro)

		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted) // and asks
		for asked := range maxCallsPerMinute - 2 {
			s.wantAsked(4 + asked)
		}
		s.wantAsked(maxCallsPerMinute + 1)
		s.wait(time.Minute)
		s.wantAsked(maxCallsPerMinute + 2)
	})
}

// Who comes as another's reading ends need not read again.
func TestSyncAsAnotherEnds(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		seen := s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(1)
		if err := s.refreshSince(t.Context(), seen, s.account); err != nil {
			t.Error(err)
		}
		s.wantAsked(1)
	})
}

func TestManySyncsAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		const many = 20
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		first, goOn := make(chan struct{}, many), make(chan struct{})
		s.peer.onReading(func(string) { first <- struct{}{}; <-goOn })
		// Who asked first goes away; the others still want to know.
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- s.Sync(ctx, s.account) }()
		<-first
		var all sync.WaitGroup
		var begun atomic.Int64
		for range many {
			all.Go(func() {
				begun.Add(1)
				if err := s.Sync(t.Context(), s.account); err != nil {
					t.Error(err)
				}
			})
		}
		leave()
		if <-left == nil {
			t.Error("who went away knows")
		}
		wait.Until(t, "all have come", func() bool { return begun.Load() == many })
		close(goOn)
		all.Wait()
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made(reading)); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Where an event has brought the news meanwhile, there is no need to ask again.
func TestSyncIsOvertaken(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		var came atomic.Bool
		s.peer.onReading(func(string) {
			if !came.Swap(true) { // the event reads, too
				s.wantAnswer(s.send(s.event(stripe.EventTypeCustomerSubscriptionCreated)), 200)
			}
		})
		if err := s.Sync(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made(reading)); n != 2 { // the event's, and ours
			t.Errorf("asked %d times", n)
		}
	})
}

// An operator who hands a plan back has read nothing at Stripe.
func TestSyncWhileHandedBack(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.byHand(auth.Developer)
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		var once sync.Once
		s.peer.onReading(func(string) { once.Do(func() { s.wantHandedBack(auth.Developer) }) })
		if err := s.Sync(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.wantPlan(auth.Pro)
	})
}

// Nobody's reading waits for another who writes.
func TestReadingBesideAWriter(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		writing, err := s.Store.Write.Tx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writing.Rollback() }()
		if row, err := s.Customer(wait.Context(t), s.account); err != nil || row == nil {
			t.Errorf("%v, %v", row, err)
		}
	})
}

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
		s.reconcile(s.t.Context())
		s.wait(time.Hour)
	}
	s.isNow(stripe.EventTypeInvoicePaymentFailed, *sub) // the next attempt
	s.reconcile(s.t.Context())
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
		s.reconcile(t.Context())
		s.smtp.Wait(t, owner)

		s.wait(Grace - time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		if PlanOf(s.row(), s.clock()) != auth.Pro {
			t.Error("the grace is over too early")
		}
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}
		s.reconcile(t.Context())

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
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer)
	})
}

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
		s.reconcile(t.Context())
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
		s.reconcile(t.Context())
		if n := s.smtp.Count(owner); n != 0 {
			t.Errorf("%d letters", n)
		}
		s.wantHandedBack(auth.Pro)
		s.wantNotice(s.clock().Add(Grace)) // now it does
	})
}
