package billing

import (
	"context"
	"errors"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/billingevent"
	"palmares/ent/customer"
	"palmares/ent/predicate"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

const (
	lookEvery = time.Minute
	lateAfter = time.Hour        // when news of a new period must have come
	soonAfter = 10 * time.Minute // when news of a payment must have come
	// endingReadEvery is for those that end some day: when news of a period of
	// theirs must have come is not known.
	endingReadEvery = 24 * time.Hour
	pageOpen        = 25 * time.Hour      // how long a page to pay on may be open, and more
	eventsKept      = 90 * 24 * time.Hour // Stripe repeats them for days
)

// Run does what time asks for until ctx ends: no event comes when a grace
// ends, and one that was lost must not matter.
func (b *Billing) Run(ctx context.Context) {
	if !b.Open() {
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		b.look(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// look sees to each customer for whom something is to be done. Where it fails
// for one, it goes on with the next, and tries again another time.
func (b *Billing) look(ctx context.Context) {
	now := b.now().UTC()
	for _, task := range []struct {
		what string
		who  predicate.Customer
		do   func(context.Context, *ent.Customer) error
	}{
		{"a grace that ended was not seen to", lapsed(now), b.reread},
		{"a subscription was not read again", late(now), b.reread},
		{"a failed payment was not told of", unnoticed, b.notice},
		{"a deleted account's subscription was not ended", orphaned, b.abandon},
		{"a changed address was not told to Stripe", renamed, b.rename},
	} {
		rows, err := b.Store.Current().Customer.Query().Where(task.who).WithAccount().All(ctx)
		b.warn(ctx, task.what, store.Explain(err))
		for _, row := range rows {
			b.warn(ctx, task.what, task.do(ctx, row))
		}
	}
	_, err := b.Store.Write.BillingEvent.Delete().Where(billingevent.AppliedAtLT(now.Add(-eventsKept))).Exec(ctx)
	b.warn(ctx, "old events were not forgotten", store.Explain(err))
}

func (b *Billing) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("billing: "+what, "cause", cause(err))
	}
}

// lapsed are those whose grace is over and who still have Pro.
func lapsed(now time.Time) predicate.Customer {
	return customer.And(
		customer.Status(StatusPastDue), customer.PastDueSinceLTE(now.Add(-Grace)),
		customer.HasAccountWith(account.PlanEQ(account.PlanPro), account.PlanByHand(false)),
	)
}

// late are those of whom news should have come: of a new period, of a period
// before the end, or of the payment that they were about to make.
func late(now time.Time) predicate.Customer {
	return customer.Or(
		customer.And(
			customer.StatusIn(StatusActive, StatusTrialing, StatusPastDue),
			customer.PeriodEndLT(now.Add(-lateAfter)), customer.ReadAtLT(now.Add(-lateAfter)),
		),
		customer.And(customer.StatusIn(StatusActive, StatusTrialing, StatusPastDue), customer.Cancels(true), customer.ReadAtLT(now.Add(-endingReadEvery))),
		customer.And(
			customer.StatusNotIn(StatusActive, StatusTrialing), customer.CheckoutAtGT(now.Add(-pageOpen)), customer.CheckoutAtLT(now.Add(-soonAfter)),
			customer.Or(customer.ReadAtIsNil(), customer.ReadAtLT(now.Add(-soonAfter))),
		),
	)
}

// unnoticed are those who do not know yet that a payment failed on which their
// plan depends.
var unnoticed = customer.And(customer.Status(StatusPastDue), customer.NoticedAtIsNil(), customer.HasAccountWith(account.PlanByHand(false)))

// orphaned are those that pay for an account that is no more.
var orphaned = customer.And(customer.AccountIDIsNil(), customer.StatusNotIn(ended...))

// renamed are those whose address Stripe does not know yet.
var renamed = predicate.Customer(func(s *sql.Selector) {
	accounts := sql.Table(account.Table)
	s.Where(sql.Exists(sql.Select(accounts.C(account.FieldID)).From(accounts).Where(sql.And(
		sql.ColumnsEQ(accounts.C(account.FieldID), s.C(customer.FieldAccountID)),
		sql.ColumnsNEQ(accounts.C(account.FieldEmail), s.C(customer.FieldEmail)),
	))))
})

func (b *Billing) reread(ctx context.Context, row *ent.Customer) error {
	return b.refresh(ctx, row.ID, nil)
}

// notice writes to an owner whose payment failed: one of the servers does, and
// takes its word back where the letter may be sent another time. What can never
// be sent is told to the log, once.
func (b *Billing) notice(ctx context.Context, row *ent.Customer) error {
	if row.Edges.Account == nil {
		return nil // it was deleted meanwhile
	}
	mine, err := b.Store.Write.Customer.Update().Where(customer.ID(row.ID), unnoticed).SetNoticedAt(b.now().UTC()).Save(ctx)
	if err != nil || mine == 0 {
		return store.Explain(err)
	}
	if PlanOf(row, b.now()) != auth.Pro { // found too late: there is no grace to tell of
		return nil
	}
	until := b.now()
	if row.PastDueSince != nil {
		until = row.PastDueSince.Add(Grace)
	}
	err = b.Mail.Send(ctx, mail.PaymentFailed(row.Edges.Account.Email, b.ServiceName, b.PublicURL+PlanPath, until))
	if err == nil {
		return nil
	}
	if problem.Of(err).Code == problem.Unavailable {
		_ = b.Store.Write.Customer.Update().Where(customer.ID(row.ID)).ClearNoticedAt().Exec(context.WithoutCancel(ctx))
	}
	return errors.New(err.Error()) // a mail server's own words may repeat the address
}

// abandon ends a subscription that was paid as its account was deleted.
func (b *Billing) abandon(ctx context.Context, row *ent.Customer) error {
	if err := b.stopPaying(ctx, row.ID); err != nil {
		return failed(err)
	}
	return b.refresh(ctx, row.ID, nil)
}

func (b *Billing) rename(ctx context.Context, row *ent.Customer) error {
	if row.Edges.Account == nil {
		return nil // it was deleted meanwhile
	}
	email := row.Edges.Account.Email
	_, err := b.stripe.V1Customers.Update(ctx, row.ID, &stripe.CustomerUpdateParams{Email: &email})
	if missing(err, pathParam) { // it was deleted there, and the news of that was lost
		return b.lose(ctx, row.ID)
	}
	if err != nil {
		return failed(err)
	}
	// Not where the account was deleted meanwhile: its address is forgotten.
	return store.Explain(b.Store.Write.Customer.Update().Where(customer.ID(row.ID), customer.AccountIDNotNil()).SetEmail(email).Exec(ctx))
}
