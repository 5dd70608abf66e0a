package billing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/customer"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

const (
	// Grace is how long a customer retains Pro after a failed payment.
	Grace = 7 * 24 * time.Hour

	freshFor    = 3 * time.Second // so that reloading a page does not call Stripe each time
	syncTimeout = 20 * time.Second
	maxUpdates  = 10 // more than the number of concurrent updates of a customer
)

// States of a subscription at Stripe.
const (
	StatusActive   = string(stripe.SubscriptionStatusActive)
	StatusTrialing = string(stripe.SubscriptionStatusTrialing)
	StatusPastDue  = string(stripe.SubscriptionStatusPastDue)
)

var endedStatuses = []string{"", string(stripe.SubscriptionStatusCanceled), string(stripe.SubscriptionStatusIncompleteExpired)}

// Live reports whether a subscription has not ended, whether it is paid or not.
func Live(status string) bool { return !slices.Contains(endedStatuses, status) }

func paid(status string) bool { return status == StatusActive || status == StatusTrialing }

// PlanOf returns the plan that a customer has paid for; Developer for nil.
func PlanOf(row *ent.Customer, now time.Time) auth.Plan {
	if row == nil {
		return auth.Developer
	}
	inGrace := row.Status == StatusPastDue && (row.PastDueSince == nil || now.Before(row.PastDueSince.Add(Grace)))
	if paid(row.Status) || inGrace {
		return auth.Pro
	}
	return auth.Developer
}

// ranks order subscriptions by value.
var ranks = map[stripe.SubscriptionStatus]int{
	stripe.SubscriptionStatusActive:     5,
	stripe.SubscriptionStatusTrialing:   5,
	stripe.SubscriptionStatusPastDue:    4,
	stripe.SubscriptionStatusUnpaid:     3,
	stripe.SubscriptionStatusPaused:     3,
	stripe.SubscriptionStatusIncomplete: 2,
}

// stateOf returns what is stored of the subscription that counts: the most
// valuable one, and of these the newest.
func stateOf(all []*stripe.Subscription) *ent.Customer {
	if len(all) == 0 {
		return &ent.Customer{}
	}
	s := slices.MaxFunc(all, func(a, b *stripe.Subscription) int {
		return cmp.Or(cmp.Compare(ranks[a.Status], ranks[b.Status]), cmp.Compare(a.Created, b.Created))
	})
	current := &ent.Customer{Subscription: s.ID, Status: string(s.Status), Cancels: s.CancelAtPeriodEnd || s.CancelAt > 0}
	periodEnd := s.CancelAt // which may be another day than the end of the period
	if s.Items != nil && periodEnd == 0 {
		for _, item := range s.Items.Data {
			periodEnd = max(periodEnd, item.CurrentPeriodEnd)
		}
	}
	current.PeriodEnd = unixTime(periodEnd)
	if invoice := s.LatestInvoice; current.Status == StatusPastDue && invoice != nil { // it is the unpaid one
		current.PastDueSince = unixTime(invoice.Created)
		if invoice.StatusTransitions != nil && invoice.StatusTransitions.FinalizedAt > 0 {
			current.PastDueSince = unixTime(invoice.StatusTransitions.FinalizedAt)
		}
	}
	return current
}

// unixTime returns nil for 0, which Stripe's library uses for null.
func unixTime(seconds int64) *time.Time {
	if seconds <= 0 {
		return nil
	}
	return new(time.Unix(seconds, 0).UTC())
}

// subscriptions returns all subscriptions that a customer ever had.
func subscriptions(ctx context.Context, b *Billing, customer string) ([]*stripe.Subscription, error) {
	params := &stripe.SubscriptionListParams{Customer: &customer, Status: stripe.String("all")}
	params.AddExpand("data.latest_invoice")
	all, err := collect(api(b).V1Subscriptions.List(ctx, params).All(ctx))
	if missing(err, customerParam) {
		return nil, nil // the customer was deleted at Stripe
	}
	return all, err
}

var errOutdated = errors.New("the customer was updated concurrently")

// refresh reads a customer's subscription from Stripe and sets the account's plan
// accordingly. It only overwrites a state that was stored before it read, so the newest
// state wins whatever the order of events.
func refresh(ctx context.Context, b *Billing, id string, event *stripe.Event) error {
	return update(ctx, b, id, event, true)
}

// update is refresh, with or without the email to an owner who loses Pro.
func update(ctx context.Context, b *Billing, id string, event *stripe.Event, notify bool) error {
	for range maxUpdates {
		row, err := b.Store.Read.Customer.Get(ctx, id)
		if err != nil { // not found: a customer of another product in the same Stripe account
			return ent.MaskNotFound(err)
		}
		all, err := subscriptions(ctx, b, id)
		if err != nil {
			return explain(err)
		}
		if err := save(ctx, b, row, stateOf(all), event, notify); !errors.Is(err, errOutdated) {
			return err
		}
	}
	return &problem.Problem{Code: problem.Unavailable, Message: "The subscription is being changed by other requests. Try again in a minute.", Cause: errOutdated}
}

// save stores the state of a subscription and changes the account's plan.
func save(ctx context.Context, b *Billing, row, current *ent.Customer, event *stripe.Event, notify bool) error {
	now := b.now().UTC()
	if current.Status == StatusPastDue {
		current.PastDueSince = graceStart(row, current.PastDueSince, now)
	}
	inTx := b.Store.Update
	if row.AccountID != nil {
		// Deleting the account locks it first too; the opposite order could deadlock.
		inTx = func(ctx context.Context, write func(*ent.Tx) error) error {
			return b.Store.WithRowLock(ctx, account.Table, *row.AccountID, write)
		}
	}
	err := inTx(ctx, func(tx *ent.Tx) error {
		if event != nil { // fails if the event was already applied
			if err := tx.BillingEvent.Create().SetID(event.ID).SetType(string(event.Type)).SetAppliedAt(now).Exec(ctx); err != nil {
				return err
			}
		}
		update := tx.Customer.Update().Where(customer.ID(row.ID), customer.Revision(row.Revision)).AddRevision(1).
			SetSubscription(current.Subscription).SetStatus(current.Status).SetCancels(current.Cancels).SetReadAt(now).
			SetNillablePeriodEnd(current.PeriodEnd).SetNillablePastDueSince(current.PastDueSince)
		if current.PeriodEnd == nil {
			update.ClearPeriodEnd()
		}
		if current.PastDueSince == nil {
			update.ClearPastDueSince().ClearNotifiedAt() // the next failed payment causes another email
		}
		updated, err := update.Save(ctx)
		if err != nil {
			return err
		}
		if updated == 0 {
			return errOutdated
		}
		if row.AccountID == nil {
			return nil
		}
		return b.setPlan(ctx, tx, *row.AccountID, PlanOf(current, now), notify)
	})
	if ent.IsConstraintError(err) {
		return nil // the event was applied concurrently
	}
	return err
}

// setPlan does not change a manual plan. The owner of an account that loses Pro gets an
// email if notify is true.
func (b *Billing) setPlan(ctx context.Context, tx *ent.Tx, id int, plan auth.Plan, notify bool) error {
	acc, err := tx.Account.Query().Where(account.ID(id), account.ManualPlan(false), account.PlanNEQ(account.Plan(plan))).Only(ctx)
	if err != nil {
		return ent.MaskNotFound(err)
	}
	updated, err := tx.Account.Update().Where(account.ID(id), account.ManualPlan(false)).SetPlan(account.Plan(plan)).Save(ctx)
	if err != nil || updated == 0 || plan == auth.Pro || !notify {
		return err
	}
	l := lang.Language(acc.Language)
	return outbox.Add(ctx, tx, "", mail.ProEnded(l, acc.Email, b.ServiceName, b.PublicURL+l.Path(PlanPath)))
}

// graceStart returns when the grace period of a failed payment starts: when we
// first learned of it, because a debit may be returned long after its invoice.
// If the customer was never known to have paid, the invoice's date counts.
func graceStart(row *ent.Customer, invoiced *time.Time, now time.Time) *time.Time {
	switch {
	case row.PastDueSince != nil:
		return row.PastDueSince
	case invoiced != nil && invoiced.Before(now) && !paid(row.Status):
		return invoiced
	}
	return &now
}

// Sync reads an account's subscription from Stripe, once for concurrent calls.
// It does nothing if a paid subscription was read a moment ago; an unpaid one
// may have been paid since.
func (b *Billing) Sync(ctx context.Context, acc *ent.Account) error {
	row, err := b.Customer(ctx, acc)
	if err != nil || row == nil || !b.Enabled() {
		return err
	}
	if paid(row.Status) && row.ReadAt != nil && b.now().Sub(*row.ReadAt) < freshFor {
		return nil
	}
	synced := b.syncs.DoChan(row.ID, func() (any, error) {
		// The first caller may be canceled while others wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
		defer cancel()
		return nil, b.refreshSince(ctx, row, acc)
	})
	select {
	case result := <-synced:
		return result.Err
	case <-ctx.Done():
		return explain(ctx.Err())
	}
}

// refreshSince refreshes a customer, unless it was refreshed after seen was read.
func (b *Billing) refreshSince(ctx context.Context, seen *ent.Customer, acc *ent.Account) error {
	row, err := b.Store.Read.Customer.Get(ctx, seen.ID)
	if err != nil {
		return err
	}
	if row.ReadAt != nil && (seen.ReadAt == nil || row.ReadAt.After(*seen.ReadAt)) {
		return nil
	}
	if b.count(acc) != nil {
		return nil // use the stored state for the rest of the minute
	}
	return refresh(ctx, b, row.ID, nil)
}

// SyncAll refreshes every customer and calls report with each.
func (b *Billing) SyncAll(ctx context.Context, report func(*ent.Customer)) error {
	if !b.Enabled() {
		return errNoKey
	}
	ids, err := b.Store.Read.Customer.Query().Order(customer.ByCreatedAt()).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := refresh(ctx, b, id, nil); err != nil {
			return err
		}
		row, err := b.Store.Read.Customer.Query().Where(customer.ID(id)).WithAccount().Only(ctx)
		if err != nil {
			return err
		}
		report(row)
	}
	return nil
}

// ClearManualPlan lets billing determine the plan of an account again after an
// operator has set it manually. It returns the new plan.
func ClearManualPlan(ctx context.Context, s *store.Store, acc *ent.Account) (plan auth.Plan, err error) {
	err = s.WithRowLock(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		// Concurrent updates have to start again.
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).AddRevision(1).Exec(ctx); err != nil {
			return err
		}
		row, err := tx.Customer.Query().Where(customer.AccountID(acc.ID)).Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return err
		}
		plan = PlanOf(row, time.Now())
		return tx.Account.UpdateOneID(acc.ID).SetManualPlan(false).SetPlan(account.Plan(plan)).Exec(ctx)
	})
	return plan, err
}
