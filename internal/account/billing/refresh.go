package billing

import (
	"context"
	"errors"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/billingevent"
	"palmares/ent/customer"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

// SyncAll reads every customer's subscription again, and tells of each.
func (b *Billing) SyncAll(ctx context.Context, tell func(*ent.Customer)) error {
	if !b.Open() {
		return errNoKey
	}
	rows, err := b.Store.Current().Customer.Query().Order(customer.ByCreatedAt()).All(ctx)
	if err != nil {
		return store.Explain(err)
	}
	for _, row := range rows {
		if err := b.refresh(ctx, row.ID, nil); err != nil {
			return err
		}
		row, err := b.Store.Current().Customer.Query().Where(customer.ID(row.ID)).WithAccount().Only(ctx)
		if err != nil {
			return store.Explain(err)
		}
		tell(row)
	}
	return nil
}

var (
	errOutdated = errors.New("another has written since this was read")
	errApplied  = errors.New("this event was applied before")
)

// manyTries are enough for as many servers as get news of one customer at once.
const manyTries = 10

// refresh brings an account in line with its subscription, and tells its owner
// where Pro ends by that.
func (b *Billing) refresh(ctx context.Context, id string, news *stripe.Event) error {
	lost, err := b.align(ctx, id, news)
	if lost != nil {
		b.Mail.Post(mail.ProEnded(lost.Email, b.ServiceName, b.PublicURL+PlanPath))
	}
	return err
}

// align reads a customer's subscription at Stripe and brings the account's
// plan in line with it. What it writes was always read after what it writes
// over, so that the newest state stays, whatever the order of the news. Without
// news it is enough if somebody else has read it meanwhile. It returns the
// account that has just lost Pro, if so.
func (b *Billing) align(ctx context.Context, id string, news *stripe.Event) (lost *ent.Account, err error) {
	begun := b.now()
	for try := range manyTries {
		row, err := b.Store.Current().Customer.Get(ctx, id)
		if ent.IsNotFound(err) {
			return nil, nil // a customer of something else that is sold there
		}
		if err != nil {
			return nil, store.Explain(err)
		}
		if try > 0 && news == nil && row.ReadAt != nil && !row.ReadAt.Before(begun.Truncate(time.Microsecond)) { // which PostgreSQL rounds to
			return nil, nil
		}
		all, err := b.subscriptions(ctx, id)
		if err != nil {
			return nil, failed(err)
		}
		lost, err := b.write(ctx, row, stand(best(all)), news)
		switch {
		case errors.Is(err, errOutdated):
			continue
		case errors.Is(err, errApplied):
			return nil, nil
		}
		return lost, err
	}
	return nil, &problem.Problem{Code: problem.Unavailable, Message: "The subscription is being changed from many sides. Try again in a minute.", Cause: errOutdated}
}

// write keeps what was read, and moves the account to the plan it is worth.
func (b *Billing) write(ctx context.Context, row *ent.Customer, at standing, news *stripe.Event) (lost *ent.Account, err error) {
	now := b.now().UTC()
	if at.status == StatusPastDue {
		at.pastDueSince = fellBehind(row, at.pastDueSince, now)
	}
	worth := plan(at.status, at.pastDueSince, now)
	err = b.Store.Update(ctx, func(tx *ent.Tx) error {
		lost = nil
		if news != nil {
			known, err := tx.BillingEvent.Query().Where(billingevent.ID(news.ID)).Exist(ctx)
			if err != nil {
				return err
			}
			if known {
				return errApplied
			}
			if err := tx.BillingEvent.Create().SetID(news.ID).SetType(string(news.Type)).SetAppliedAt(now).Exec(ctx); err != nil {
				return err
			}
		}
		update := tx.Customer.Update().Where(customer.ID(row.ID), customer.Revision(row.Revision)).AddRevision(1).
			SetSubscription(at.subscription).SetStatus(at.status).SetCancels(at.cancels).SetReadAt(now)
		if at.periodEnd != nil {
			update.SetPeriodEnd(*at.periodEnd)
		} else {
			update.ClearPeriodEnd()
		}
		if at.pastDueSince != nil {
			update.SetPastDueSince(*at.pastDueSince)
		} else {
			update.ClearPastDueSince().ClearNoticedAt() // a later failure is told anew
		}
		written, err := update.Save(ctx)
		if err != nil {
			return err
		}
		if written == 0 {
			return errOutdated
		}
		if row.AccountID == nil {
			return nil
		}
		lost, err = move(ctx, tx, *row.AccountID, worth)
		return err
	})
	if ent.IsConstraintError(err) {
		err = errApplied // at the same moment, elsewhere
	}
	return lost, err
}

// move gives an account a plan, unless an operator has.
func move(ctx context.Context, tx *ent.Tx, id int, to auth.Plan) (lost *ent.Account, err error) {
	acc, err := tx.Account.Get(ctx, id)
	if ent.IsNotFound(err) || err == nil && (acc.PlanByHand || auth.Plan(acc.Plan) == to) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	moved, err := tx.Account.Update().Where(account.ID(id), account.PlanByHand(false)).SetPlan(account.Plan(to)).Save(ctx)
	if err != nil || moved == 0 || to == auth.Pro {
		return nil, err
	}
	return acc, nil
}

// fellBehind is when a customer's grace begins: as we first knew it. What we
// last knew to be paid begins with the news, since a debit may come back long
// after its invoice; of what we never knew, Stripe tells when.
func fellBehind(row *ent.Customer, told *time.Time, now time.Time) *time.Time {
	switch {
	case row.PastDueSince != nil:
		return row.PastDueSince
	case told != nil && told.Before(now) && !paid(row.Status):
		return told
	}
	return &now
}

// HandBack lets billing say an account's plan again, after an operator did.
func HandBack(ctx context.Context, s *store.Store, acc *ent.Account) (to auth.Plan, err error) {
	err = s.Update(ctx, func(tx *ent.Tx) error {
		// Whoever has read the subscription meanwhile must read it again.
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).AddRevision(1).Exec(ctx); err != nil {
			return err
		}
		row, err := tx.Customer.Query().Where(customer.AccountID(acc.ID)).Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return err
		}
		to = PlanOf(row, time.Now())
		return tx.Account.UpdateOneID(acc.ID).SetPlanByHand(false).SetPlan(account.Plan(to)).Exec(ctx)
	})
	return to, err
}
