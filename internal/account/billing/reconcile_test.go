package billing

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// The state is read if an expected event does not arrive.
func TestOverdueEvent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusCanceled
		s.fake.set("cus_1", sub)
		s.wait(month + renewalOverdue)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro) // the event may still arrive
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer)
	})
}

// An overdue subscription is read once an hour.
func TestOverdueEventReads(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.wait(month + renewalOverdue + time.Second)
		before := len(s.fake.requests("GET /v1/subscriptions"))
		for range 61 {
			s.reconcile(t.Context())
			s.wait(time.Minute)
		}
		s.reconcile(t.Context())
		check.Equal(t, len(s.fake.requests("GET /v1/subscriptions"))-before, 2, "reads")
	})
}

// A payment is noticed even if its event is lost.
func TestLostCheckoutEvent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		before := len(s.fake.requests(reading))
		s.wait(paymentOverdue)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer) // the event may still arrive
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		s.wait(paymentOverdue + time.Second)
		s.reconcile(t.Context())
		check.Equal(t, len(s.fake.requests(reading))-before, 1, "reads")
	})
}

// An unpaid checkout is checked while it is open.
func TestUnpaidCheckout(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		before := len(s.fake.requests(reading))
		reads := func() int {
			s.reconcile(t.Context())
			return len(s.fake.requests(reading)) - before
		}
		for i := range 3 {
			s.wait(paymentOverdue + time.Second)
			check.Equal(t, reads(), i+1, "reads")
			n := reads()
			check.Equal(t, n, i+1, "%d reads at once", n-i)
		}
		s.wait(checkoutLifetime)
		check.Equal(t, reads(), 3, "reads after the checkout has expired")
	})
}

// Stripe gets the new email address of an account.
func TestEmailChanged(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.reconcile(t.Context())
		const what = "POST /v1/customers/cus_1"
		check.Equal(t, len(s.fake.requests(what)), 0)
		check.OK(t, s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").Exec(t.Context()))
		for range 2 {
			s.reconcile(t.Context())
		}
		wantForm(t, s.fake.only(t, what), map[string]string{"email": "new@example.com"})
		check.Equal(t, s.row().Email, "new@example.com", "address")
	})
}

// A customer that was deleted at Stripe without an event is unlinked.
func TestEmailChangedOfDeletedCustomer(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.fake.deleteObject("cus_1")
		s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").ExecX(t.Context())
		for range 2 {
			s.reconcile(t.Context())
		}
		s.fake.only(t, "POST /v1/customers/cus_1")
		s.wantPlan(auth.Developer)
		s.wantNewCustomer()
	})
}

// An account may be deleted between the two queries that found it.
func TestAccountDeletedConcurrently(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		row := s.row() // without its account
		check.Equal(t, s.notifyPaymentFailed(t.Context(), row), nil)
		check.Equal(t, s.updateEmail(t.Context(), row), nil)
		s.reconcile(t.Context())
		s.email() // the email is still sent
	})
}

// A failure for one customer does not affect the others.
func TestOneCustomerFails(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		unlinked := s.Store.Write.Customer.Create().SetID("cus_0").SetEmail("a@example.com").SetStatus(StatusActive)
		check.OK(t, unlinked.Exec(t.Context()))
		s.fake.deleteObject("cus_0")
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		s.email()
		row, err := s.Store.Write.Customer.Get(t.Context(), "cus_0")
		check.OK(t, err, row)
		check.Equal(t, row.Status, "", row)
	})
}

func TestDeleteOldEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.wait(eventRetention - time.Second)
		s.sendChange(stripe.EventTypeInvoicePaid, sub)
		for _, want := range []int{2, 1} {
			check.OK(t, DeleteOldEvents(t.Context(), s.Store, s.clock()))
			check.Equal(t, s.applied(), want, "events")
			s.wait(2 * time.Second)
		}
	})
}

// Run starts immediately and returns when its context ends.
func TestRun(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		wait.Until(t, "the email is caused", func() bool { return s.Store.Read.Notice.Query().CountX(t.Context()) > 0 })
		stop()
		<-ended
	})
}

// The grace period starts with the event, because a debit may be returned long
// after its invoice.
func TestReturnedDebit(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-8*24*time.Hour)
		sub.finalizedAt = sub.invoiced
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.wantPlan(auth.Pro)
		s.wantNotice(s.clock().Add(Grace))
		s.wantGraceUntil(s.clock().Add(Grace))
	})
}

// wantNotice expects an email with the end of the grace period.
func (s *fixture) wantNotice(until time.Time) {
	s.t.Helper()
	s.reconcile(s.t.Context())
	email := s.email()
	check.Contains(s.t, email, until.UTC().Format("2 January 2006"), "want the end of the grace period")
	check.Contains(s.t, email, "failed", "want the end of the grace period")
}

// wantGraceUntil expects Pro to end at a time.
func (s *fixture) wantGraceUntil(end time.Time) {
	s.t.Helper()
	s.wait(end.Sub(s.clock()) - time.Second)
	s.reconcile(s.t.Context())
	s.wantPlan(auth.Pro)
	s.wait(time.Second)
	s.reconcile(s.t.Context())
	s.wantPlan(auth.Developer)
}

// A second failed attempt does not extend the grace period.
func TestGraceIsNotExtended(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		end := s.clock().Add(Grace)
		sub.status = stripe.SubscriptionStatusPastDue
		for range 3 {
			sub.invoiced, sub.finalizedAt = s.clock(), s.clock()
			s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
			s.wait(2 * 24 * time.Hour)
		}
		s.wantNotice(end)
		s.wantGraceUntil(end)
	})
}

// If the event was lost, the grace period starts when the failure is found.
func TestFailureFoundLate(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-Grace-time.Hour)
		s.fake.set("cus_1", sub)
		s.wait(2 * time.Hour)
		s.wantNotice(s.clock().Add(Grace))
		s.wantPlan(auth.Pro)
	})
}

// If the customer was never known to have paid, the invoice's date counts.
// After the grace period there is no email.
func TestGraceAlreadyEnded(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		sub := s.started(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace)
		s.sendChange(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Developer)
		s.reconcile(t.Context())
		check.Equal(t, s.emails(), 0, "emails")
	})
}

// The rest of a grace period that has started is granted.
func TestRemainingGrace(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		sub := s.started(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace + time.Hour)
		s.sendChange(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantNotice(s.clock().Add(time.Hour))
		s.wantGraceUntil(s.clock().Add(time.Hour))
	})
}

// If several servers find a failure at the same time, one sends the email.
func TestNoticeFromSeveralServers(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		seen, err := s.Store.Read.Customer.Query().WithAccount().Only(t.Context()) // by each server
		check.OK(t, err)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				check.Equal(t, s.notifyPaymentFailed(t.Context(), seen), nil)
			})
		}
		all.Wait()
		check.Equal(t, s.emails(), 1, "emails")
	})
}
