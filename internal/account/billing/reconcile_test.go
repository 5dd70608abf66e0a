package billing

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
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
		if n := len(s.fake.requests("GET /v1/subscriptions")) - before; n != 2 {
			t.Errorf("got %d reads, want 2", n)
		}
	})
}

// A payment is noticed even if its event is lost.
func TestLostCheckoutEvent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
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
		if n := len(s.fake.requests(reading)) - before; n != 1 {
			t.Errorf("got %d reads, want 1", n)
		}
	})
}

// An unpaid checkout is checked while it is open.
func TestUnpaidCheckout(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		before := len(s.fake.requests(reading))
		reads := func() int {
			s.reconcile(t.Context())
			return len(s.fake.requests(reading)) - before
		}
		for i := range 3 {
			s.wait(paymentOverdue + time.Second)
			if n := reads(); n != i+1 {
				t.Errorf("got %d reads, want %d", n, i+1)
			}
			if n := reads(); n != i+1 {
				t.Errorf("got %d reads at once, want 1", n-i)
			}
		}
		s.wait(checkoutLifetime)
		if n := reads(); n != 3 {
			t.Errorf("got %d reads after the checkout has expired, want 3", n)
		}
	})
}

// Stripe gets the new email address of an account.
func TestEmailChanged(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.reconcile(t.Context())
		const what = "POST /v1/customers/cus_1"
		if len(s.fake.requests(what)) > 0 {
			t.Error("got an update, want none")
		}
		if err := s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.reconcile(t.Context())
		}
		wantForm(t, s.fake.only(t, what), map[string]string{"email": "new@example.com"})
		if email := s.row().Email; email != "new@example.com" {
			t.Errorf("got address %q, want the new one", email)
		}
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
		if err := s.notifyPaymentFailed(t.Context(), row); err != nil {
			t.Error(err)
		}
		if err := s.updateEmail(t.Context(), row); err != nil {
			t.Error(err)
		}
		s.reconcile(t.Context())
		s.email() // the email is still sent
	})
}

// A failure for one customer does not affect the others.
func TestOneCustomerFails(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		unlinked := s.Store.Write.Customer.Create().SetID("cus_0").SetEmail("a@example.com").SetStatus(StatusActive)
		if err := unlinked.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.fake.deleteObject("cus_0")
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		s.email()
		row, err := s.Store.Write.Customer.Get(t.Context(), "cus_0")
		if err != nil || row.Status != "" {
			t.Errorf("got %v, %v, want no status", row, err)
		}
	})
}

func TestDeleteOldEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.wait(eventRetention - time.Second)
		s.sendChange(stripe.EventTypeInvoicePaid, sub)
		for _, want := range []int{2, 1} {
			if err := DeleteOldEvents(t.Context(), s.Store, s.clock()); err != nil {
				t.Fatal(err)
			}
			if got := s.applied(); got != want {
				t.Errorf("got %d events, want %d", got, want)
			}
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
	if !strings.Contains(email, until.UTC().Format("2 January 2006")) || !strings.Contains(email, "failed") {
		s.t.Errorf("got email %s, want the end of the grace period", email)
	}
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
		if n := s.emails(); n != 0 {
			t.Errorf("got %d emails, want 0", n)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := s.notifyPaymentFailed(t.Context(), seen); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.emails(); n != 1 {
			t.Errorf("got %d emails, want 1", n)
		}
	})
}
