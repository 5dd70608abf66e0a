package billing

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/customer"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

const reading = "GET /v1/subscriptions"

// wantReads syncs and checks how often Stripe has been read in total.
func (s *fixture) wantReads(want int) {
	s.t.Helper()
	check.Equal(s.t, s.Sync(s.t.Context(), s.account), nil)
	check.Equal(s.t, len(s.fake.requests(reading)), want, "reads")
}

// Reloading the page does not read from Stripe each time.
func TestSyncIsCached(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		s.wantReads(1)
		s.wait(freshFor - time.Second)
		s.wantReads(1)
		s.wait(time.Second)
		s.wantReads(2)
	})
}

// An unpaid subscription is read each time, because it may have been paid, up
// to the limit.
func TestSyncAfterPaying(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.wantReads(1)
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		s.wantReads(2)
		s.wantPlan(auth.Pro)

		s.sendChange(stripe.EventTypeCustomerSubscriptionDeleted) // reads too
		for reads := range maxCallsPerMinute - 2 {
			s.wantReads(4 + reads)
		}
		s.wantReads(maxCallsPerMinute + 1)
		s.wait(time.Minute)
		s.wantReads(maxCallsPerMinute + 2)
	})
}

// A call that starts as another one ends does not read again.
func TestSyncAfterAnotherSync(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		seen := s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		s.wantReads(1)
		check.Equal(t, s.refreshSince(t.Context(), seen, s.account), nil)
		s.wantReads(1)
	})
}

func TestConcurrentSyncs(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		const many = 20
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		first, proceed := make(chan struct{}, many), make(chan struct{})
		s.fake.onRequest(func(string) { first <- struct{}{}; <-proceed })
		// The first caller is canceled; the others still get the result.
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- s.Sync(ctx, s.account) }()
		<-first
		var all sync.WaitGroup
		var started atomic.Int64
		for range many {
			all.Go(func() {
				started.Add(1)
				check.Equal(t, s.Sync(t.Context(), s.account), nil)
			})
		}
		leave()
		check.Fails(t, <-left, "canceled call")
		wait.Until(t, "all calls have started", func() bool { return started.Load() == many })
		close(proceed)
		all.Wait()
		s.wantPlan(auth.Pro)
		check.Equal(t, len(s.fake.requests(reading)), 1, "reads")
	})
}

// A state that was read before the payment and is stored during Sync does not count.
func TestSyncDuringAnEvent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		read, proceed := s.holdFirstRead()
		slow := make(chan int, 1)
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		go func() { slow <- s.send(event).Code }()
		<-read
		s.wait(time.Second)
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		var once sync.Once
		s.fake.onRequest(func(string) { // Sync has read the new state
			once.Do(func() {
				close(proceed)
				check.Equal(t, <-slow, 200, "status")
			})
		})
		check.Equal(t, s.Sync(t.Context(), s.account), nil)
		s.wantPlan(auth.Pro)
	})
}

// ClearManualPlan does not count as a read.
func TestSyncDuringClearManualPlan(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.setManually(auth.Developer)
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		var once sync.Once
		s.fake.onRequest(func(string) { once.Do(func() { s.wantPlanAfterClearing(auth.Developer) }) })
		check.Equal(t, s.Sync(t.Context(), s.account), nil)
		s.wantPlan(auth.Pro)
	})
}

// Reads do not wait for a writer.
func TestReadsDuringAWrite(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		writing := check.Try(s.Store.Write.Tx(t.Context())).OK(t)
		defer func() { _ = writing.Rollback() }()
		row := check.Try(s.Customer(wait.Context(t), s.account)).OK(t)
		check.True(t, row != nil, "got %v, want a customer", row)
	})
}

const month = 30 * 24 * time.Hour

// All stages of a subscription, reported by events.
func TestSubscriptionLifecycle(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.wantPeriodEnd(sub.periodEnd)

		s.wait(month)
		sub.periodEnd = sub.periodEnd.Add(month)
		s.sendChange(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		s.wantPeriodEnd(sub.periodEnd)

		s.failPayment(&sub)
		s.payInvoice(&sub)
		s.failPayment(&sub) // a later failure causes another email
		s.payInvoice(&sub)
		check.Equal(t, s.emails(), 2, "emails")

		sub.cancels = true
		s.sendChange(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Pro) // until the period ends
		check.True(t, s.row().Cancels, "got a subscription that renews, want one that is canceled")

		s.wait(month)
		sub.status = stripe.SubscriptionStatusCanceled
		s.sendChange(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Developer)
		check.Contains(t, s.email(), "has ended", "email")

		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		s.sendChange(stripe.EventTypeCheckoutSessionCompleted, sub, s.started(stripe.SubscriptionStatusActive))
		s.wantPlan(auth.Pro)
		check.Equal(t, len(s.fake.requests("POST /v1/customers")), 1, "customers")
	})
}

// failPayment fails a payment: the account keeps Pro and gets one email.
func (s *fixture) failPayment(sub *subscription) {
	s.t.Helper()
	sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-time.Hour)
	until := s.clock().Add(Grace).UTC().Format("2 January 2006")
	s.sendChange(stripe.EventTypeInvoicePaymentFailed, *sub)
	s.wantPlan(auth.Pro)
	for range 3 {
		s.reconcile(s.t.Context())
		s.wait(time.Hour)
	}
	s.sendChange(stripe.EventTypeInvoicePaymentFailed, *sub) // second attempt
	s.reconcile(s.t.Context())
	s.wantPlan(auth.Pro)
	email := s.email()
	check.Contains(s.t, email, until)
	check.Contains(s.t, email, "failed")
}

func (s *fixture) payInvoice(sub *subscription) {
	s.t.Helper()
	sub.status = stripe.SubscriptionStatusActive
	s.sendChange(stripe.EventTypeInvoicePaid, *sub)
	s.wantPlan(auth.Pro)
	row := s.row()
	check.Equal(s.t, row.PastDueSince, nil)
	check.Equal(s.t, row.NotifiedAt, nil)
}

func (s *fixture) wantPeriodEnd(want time.Time) {
	s.t.Helper()
	got := s.row().PeriodEnd
	check.True(s.t, got != nil && got.Equal(want), "got period end %v, want %v", got, want)
}

// There is no event for the end of the grace period.
func TestGraceEnds(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-2*time.Hour)
		sub.finalizedAt = s.clock().Add(-time.Hour)
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		s.email()

		s.wait(Grace - time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		check.Equal(t, PlanOf(s.row(), s.clock()), auth.Pro, "grace period ended early")
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer)
		check.Contains(t, s.email(), "has ended", "email")
		s.reconcile(t.Context())

		// A late payment restores Pro.
		sub.status = stripe.SubscriptionStatusActive
		s.sendChange(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		check.Equal(t, s.emails(), 2, "emails")
	})
}

// Billing does not change a plan that an operator has set.
func TestManualPlan(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.setManually(auth.Pro)
		s.wantPlanAfterClearing(auth.Developer) // without a subscription
		sub := s.subscribed()
		s.setManually(auth.Developer)
		s.sendChange(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Developer)
		s.wantPlanAfterClearing(auth.Pro)

		s.setManually(auth.Pro)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock()
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.wait(Grace + time.Hour)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		sub.status = stripe.SubscriptionStatusCanceled
		s.sendChange(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Pro)
		s.wantPlanAfterClearing(auth.Developer)

		s.sendChange(stripe.EventTypeCustomerSubscriptionCreated, s.started(stripe.SubscriptionStatusActive))
		s.wantPlan(auth.Pro) // set by billing again
	})
}

func (s *fixture) setManually(to auth.Plan) {
	s.t.Helper()
	check.OK(s.t, s.accounts.SetPlan(s.t.Context(), s.account, to))
}

func (s *fixture) wantPlanAfterClearing(want auth.Plan) {
	s.t.Helper()
	got := check.Try(ClearManualPlan(s.t.Context(), s.Store, s.account)).OK(s.t)
	check.Must(s.t, got, want)
	s.wantPlan(want)
}

// There is no email about a failed payment if the plan does not depend on it.
func TestNoNoticeForManualPlan(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		sub := s.subscribed()
		s.setManually(auth.Pro)
		sub.status = stripe.SubscriptionStatusPastDue
		s.sendChange(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		check.Equal(t, s.emails(), 0, "emails")
		s.wantPlanAfterClearing(auth.Pro)
		s.wantNotice(s.clock().Add(Grace)) // now the plan depends on it
	})
}

// An event that does not arrive in time is lost. The state is read at most once in that time.
func TestOverdue(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		now := s.clock().UTC()
		ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
		const second = time.Second
		for name, c := range map[string]struct {
			row  ent.Customer
			want bool
		}{
			"renewed":                {ent.Customer{Status: StatusActive, PeriodEnd: ago(-month), ReadAt: ago(month)}, false},
			"period that just ended": {ent.Customer{Status: StatusActive, PeriodEnd: ago(renewalOverdue), ReadAt: ago(month)}, false},
			"period that ended":      {ent.Customer{Status: StatusActive, PeriodEnd: ago(renewalOverdue + second), ReadAt: ago(renewalOverdue + second)}, true},
			"period, read since":     {ent.Customer{Status: StatusActive, PeriodEnd: ago(month), ReadAt: ago(renewalOverdue)}, false},
			"period of a trial":      {ent.Customer{Status: StatusTrialing, PeriodEnd: ago(month), ReadAt: ago(month)}, true},
			"period, not paid":       {ent.Customer{Status: StatusPastDue, PeriodEnd: ago(month), ReadAt: ago(month)}, true},
			"period, canceled":       {ent.Customer{Status: "canceled", PeriodEnd: ago(month), ReadAt: ago(month)}, false},
			"ending":                 {ent.Customer{Status: StatusActive, Cancels: true, PeriodEnd: ago(-month), ReadAt: ago(endingReadEvery + second)}, true},
			"ending, read since":     {ent.Customer{Status: StatusActive, Cancels: true, PeriodEnd: ago(-month), ReadAt: ago(endingReadEvery)}, false},
			"ended":                  {ent.Customer{Status: "canceled", Cancels: true, ReadAt: ago(month)}, false},
			"checkout just opened":   {ent.Customer{CheckoutAt: ago(paymentOverdue)}, false},
			"checkout":               {ent.Customer{CheckoutAt: ago(paymentOverdue + second)}, true},
			"checkout, read before":  {ent.Customer{CheckoutAt: ago(paymentOverdue + second), ReadAt: ago(paymentOverdue + second)}, true},
			"checkout, read since":   {ent.Customer{CheckoutAt: ago(time.Hour), ReadAt: ago(paymentOverdue)}, false},
			"checkout, still open":   {ent.Customer{CheckoutAt: ago(checkoutLifetime - second)}, true},
			"checkout that expired":  {ent.Customer{CheckoutAt: ago(checkoutLifetime)}, false},
			"checkout that was paid": {ent.Customer{Status: StatusActive, CheckoutAt: ago(time.Hour), ReadAt: ago(time.Hour)}, false},
		} {
			create := s.Store.Write.Customer.Create().SetID(name).SetEmail("").SetStatus(c.row.Status).SetCancels(c.row.Cancels)
			create.SetNillablePeriodEnd(c.row.PeriodEnd).SetNillableReadAt(c.row.ReadAt).SetNillableCheckoutAt(c.row.CheckoutAt).ExecX(t.Context())
			got := s.Store.Read.Customer.Query().Where(customer.ID(name), overdue(now)).ExistX(t.Context())
			check.Equal(t, got, c.want, name)
		}
	})
}

// A payment is noticed even if its event is lost.
func TestLostCheckoutEvent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		s.wait(paymentOverdue + time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
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

// wantNotice expects an email with the end of the grace period.
func (s *fixture) wantNotice(until time.Time) {
	s.t.Helper()
	s.reconcile(s.t.Context())
	email := s.email()
	check.Contains(s.t, email, until.UTC().Format("2 January 2006"), "want the end of the grace period")
	check.Contains(s.t, email, "failed", "want the end of the grace period")
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
			all.Go(func() { check.Equal(t, s.notifyPaymentFailed(t.Context(), seen), nil) })
		}
		all.Wait()
		check.Equal(t, s.emails(), 1, "emails")
	})
}
