package auth

import (
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/apikey"
	"palmares/ent/confirmation"
	"palmares/ent/customer"
	"palmares/ent/session"
	"palmares/ent/usage"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Accounts keeps who signed up, and their keys.
type Accounts struct {
	store *store.Store
	now   func() time.Time
}

// NewAccounts keeps them in a database.
func NewAccounts(s *store.Store) *Accounts { return &Accounts{store: s, now: time.Now} }

// Create opens an account, as an operator does. A plan that costs money is
// then theirs to give, not billing's.
func (a *Accounts) Create(ctx context.Context, email string, plan Plan) (*ent.Account, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return nil, err
	}
	var created *ent.Account
	err = a.store.Update(ctx, func(tx *ent.Tx) error {
		create, err := newAccount(ctx, tx, email, plan, a.now().UTC())
		if err != nil {
			return err
		}
		created, err = create.SetPlanByHand(plan != Developer).Save(ctx)
		return err
	})
	if ent.IsConstraintError(err) {
		return nil, problem.New(problem.BadInput, "There is an account for %s already.", email)
	}
	return created, err
}

// Find is the account of an address.
func (a *Accounts) Find(ctx context.Context, email string) (*ent.Account, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Current().Account.Query().Where(account.Email(email)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.New(problem.NotFound, "There is no account for %s.", email)
	}
	return found, store.Explain(err)
}

// List is every account, by address, with its keys.
func (a *Accounts) List(ctx context.Context) ([]*ent.Account, error) {
	all, err := a.store.Current().Account.Query().WithKeys().Order(account.ByEmail()).All(ctx)
	return all, store.Explain(err)
}

// SetPlan moves an account to another plan, from its next request on. Billing
// leaves it there.
func (a *Accounts) SetPlan(ctx context.Context, acc *ent.Account, plan Plan) error {
	return store.Explain(a.store.Write.Account.UpdateOne(acc).SetPlan(account.Plan(plan)).SetPlanByHand(true).Exec(ctx))
}

// Usage returns what was counted on an account's latest days, newest first.
// Days after today were counted while a clock was wrong, and are left out.
func (a *Accounts) Usage(ctx context.Context, acc *ent.Account, days int) ([]*ent.Usage, error) {
	rows, err := a.store.Current().Usage.Query().Where(usage.AccountID(acc.ID), usage.DayLTE(dayOf(a.now()))).Order(usage.ByDay(entsql.OrderDesc())).Limit(days).All(ctx)
	return rows, store.Explain(err)
}

// Delete deletes an account with its keys, sessions and usage. What stays is
// the customer record that billing must retain, and until midnight UTC the
// day's usage under a hash of the address.
func (a *Accounts) Delete(ctx context.Context, acc *ent.Account) error {
	return a.store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		current, err := tx.Account.Get(ctx, acc.ID) // its address may have changed since acc was read
		if ent.IsNotFound(err) {
			return nil // it was deleted a moment ago
		}
		if err != nil {
			return err
		}
		if err := rememberDeleted(ctx, tx, current, a.now()); err != nil {
			return err
		}
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).ClearAccountID().SetEmail("").Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.APIKey.Delete().Where(apikey.AccountID(acc.ID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Usage.Delete().Where(usage.AccountID(acc.ID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Session.Delete().Where(session.AccountID(acc.ID)).Exec(ctx); err != nil {
			return err
		}
		if err := endMessages(ctx, tx, current, a.now().UTC()); err != nil {
			return err
		}
		_, err = tx.Account.Delete().Where(account.ID(acc.ID)).Exec(ctx)
		return err
	})
}

// endMessages makes an account's messages open nothing. They stay until they
// are tidied away, since they count towards the bounds: else whoever deletes
// an account could send, or guess, without end.
func endMessages(ctx context.Context, tx *ent.Tx, acc *ent.Account, now time.Time) error {
	return tx.Confirmation.Update().Where(about(acc), confirmation.UsedAtIsNil()).SetUsedAt(now).Exec(ctx)
}
