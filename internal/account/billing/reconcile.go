package billing

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/customer"
	"palmares/ent/predicate"
	"palmares/internal/core/clock"
	"palmares/internal/core/lang"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

const (
	reconcileEvery   = time.Minute
	renewalOverdue   = time.Hour        // after which the event of a new period is considered lost
	paymentOverdue   = 10 * time.Minute // after which the event of a payment is considered lost
	endingReadEvery  = 24 * time.Hour   // for canceled subscriptions, whose periods are not known
	checkoutLifetime = 25 * time.Hour   // longer than a checkout stays open
)

// Run reconciles customers with Stripe until ctx ends: there is no event for
// the end of a grace period, and events may be lost.
func (b *Billing) Run(ctx context.Context) {
	if !b.Enabled() {
		return
	}
	b.reconcile(ctx)
	clock.Every(ctx, reconcileEvery, func() { b.reconcile(ctx) })
}

// reconcile runs all tasks. A task that fails does not stop the others and is
// retried the next time.
func (b *Billing) reconcile(ctx context.Context) {
	now := b.now().UTC()
	for _, task := range []struct {
		failure string
		where   predicate.Customer
		do      func(context.Context, *ent.Customer) error
	}{
		{"ending a grace period failed", graceEnded(now), b.reread},
		{"reading an overdue subscription failed", overdue(now), b.reread},
		{"storing the email about a failed payment failed", notNotified, b.notifyPaymentFailed},
		{"canceling the subscription of a deleted account failed", orphaned, b.cancelOrphaned},
		{"updating an email address at Stripe failed", emailChanged, b.updateEmail},
	} {
		rows, err := b.Store.Read.Customer.Query().Where(task.where).WithAccount().All(ctx)
		b.warn(ctx, task.failure, err)
		for _, row := range rows {
			b.warn(ctx, task.failure, task.do(ctx, row))
		}
	}
}

func (b *Billing) warn(ctx context.Context, failure string, err error) {
	if err != nil && ctx.Err() == nil {
		b.Log.Warn(failure, "cause", cause(err))
	}
}

// graceEnded matches customers who still have Pro after their grace period.
func graceEnded(now time.Time) predicate.Customer {
	return customer.And(
		customer.Status(StatusPastDue), customer.PastDueSinceLTE(now.Add(-Grace)),
		customer.HasAccountWith(account.PlanEQ(account.PlanPro), account.ManualPlan(false)),
	)
}

// overdue matches customers for whom an event should have arrived: of a new
// period, of a period before the end, or of the payment in a checkout.
func overdue(now time.Time) predicate.Customer {
	live := customer.StatusIn(StatusActive, StatusTrialing, StatusPastDue)
	return customer.Or(
		customer.And(live, customer.PeriodEndLT(now.Add(-renewalOverdue)), customer.ReadAtLT(now.Add(-renewalOverdue))),
		customer.And(live, customer.Cancels(true), customer.ReadAtLT(now.Add(-endingReadEvery))),
		customer.And(
			customer.StatusNotIn(StatusActive, StatusTrialing), customer.CheckoutAtGT(now.Add(-checkoutLifetime)), customer.CheckoutAtLT(now.Add(-paymentOverdue)),
			customer.Or(customer.ReadAtIsNil(), customer.ReadAtLT(now.Add(-paymentOverdue))),
		),
	)
}

var (
	// notNotified matches customers who were not notified of a failed payment that
	// their plan depends on.
	notNotified = customer.And(customer.Status(StatusPastDue), customer.NotifiedAtIsNil(), customer.HasAccountWith(account.ManualPlan(false)))
	// orphaned matches customers who pay for a deleted account.
	orphaned = customer.And(customer.AccountIDIsNil(), customer.StatusNotIn(endedStatuses...))
	// emailChanged matches customers whose address at Stripe is outdated.
	emailChanged = customer.HasAccountWith(func(accounts *sql.Selector) {
		accounts.Where(sql.ColumnsNEQ(accounts.C(account.FieldEmail), sql.Table(customer.Table).C(customer.FieldEmail)))
	})
)

func (b *Billing) reread(ctx context.Context, row *ent.Customer) error {
	return refresh(ctx, b, row.ID, nil)
}

// notifyPaymentFailed causes one email, even if several servers call it.
func (b *Billing) notifyPaymentFailed(ctx context.Context, row *ent.Customer) error {
	if row.Edges.Account == nil {
		return nil // deleted concurrently
	}
	return b.Store.Update(ctx, func(tx *ent.Tx) error {
		claimed, err := tx.Customer.Update().Where(customer.ID(row.ID), notNotified).SetNotifiedAt(b.now().UTC()).Save(ctx)
		if err != nil || claimed == 0 {
			return err
		}
		if PlanOf(row, b.now()) != auth.Pro { // too late: the grace period has ended
			return nil
		}
		until := b.now()
		if row.PastDueSince != nil {
			until = row.PastDueSince.Add(Grace)
		}
		l := lang.Language(row.Edges.Account.Language)
		return outbox.Add(ctx, tx, "", mail.PaymentFailed(l, row.Edges.Account.Email, b.ServiceName, b.PublicURL+l.Path(PlanPath), until))
	})
}

// cancelOrphaned cancels a subscription that was paid while its account was deleted.
func (b *Billing) cancelOrphaned(ctx context.Context, row *ent.Customer) error {
	if err := b.cancelAll(ctx, row.ID); err != nil {
		return explain(err)
	}
	return refresh(ctx, b, row.ID, nil)
}

func (b *Billing) updateEmail(ctx context.Context, row *ent.Customer) error {
	if row.Edges.Account == nil {
		return nil // deleted concurrently
	}
	email := row.Edges.Account.Email
	_, err := api(b).V1Customers.Update(ctx, row.ID, &stripe.CustomerUpdateParams{Email: &email})
	if missing(err, pathParam) { // deleted at Stripe, and the event was lost
		return b.unlinkDeleted(ctx, row.ID)
	}
	if err != nil {
		return explain(err)
	}
	// If the account was deleted meanwhile, its address must not be stored again.
	return b.Store.Write.Customer.Update().Where(customer.ID(row.ID), customer.AccountIDNotNil()).SetEmail(email).Exec(ctx)
}
