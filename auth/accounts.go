package auth

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/apikey"
	"palmares/ent/confirmation"
	"palmares/ent/customer"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/ent/usage"
	"palmares/internal/problem"
	"palmares/internal/store"
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
	created, err := a.store.Write.Account.Create().SetEmail(email).SetPlan(account.Plan(plan)).
		SetPlanByHand(plan != Developer).SetCreatedAt(a.now().UTC()).Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.New(problem.BadInput, "There is an account for %s already.", email)
	}
	return created, store.Explain(err)
}

// Find is the account of an address.
func (a *Accounts) Find(ctx context.Context, email string) (*ent.Account, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Write.Account.Query().Where(account.Email(email)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.New(problem.NotFound, "There is no account for %s.", email)
	}
	return found, store.Explain(err)
}

// List is every account, by address, with its keys.
func (a *Accounts) List(ctx context.Context) ([]*ent.Account, error) {
	all, err := a.store.Write.Account.Query().WithKeys().Order(account.ByEmail()).All(ctx)
	return all, store.Explain(err)
}

// SetPlan moves an account to another plan, from its next request on. Billing
// leaves it there.
func (a *Accounts) SetPlan(ctx context.Context, acc *ent.Account, plan Plan) error {
	return store.Explain(a.store.Write.Account.UpdateOne(acc).SetPlan(account.Plan(plan)).SetPlanByHand(true).Exec(ctx))
}

// Usage is what was counted on an account's latest days, newest first.
func (a *Accounts) Usage(ctx context.Context, acc *ent.Account, days int) ([]*ent.Usage, error) {
	rows, err := a.store.Write.Usage.Query().Where(usage.AccountID(acc.ID)).Order(usage.ByDay(entsql.OrderDesc())).Limit(days).All(ctx)
	return rows, store.Explain(err)
}

// Keys are an account's, oldest first, revoked ones too.
func (a *Accounts) Keys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	keys, err := a.store.Write.APIKey.Query().Where(apikey.AccountID(acc.ID)).Order(apikey.ByCreatedAt(), apikey.ByID()).All(ctx)
	return keys, store.Explain(err)
}

// Suspended are the keys that an account has beyond its plan, after it left a
// larger one: they rest until it is back. The oldest go on.
func Suspended(plan Plan, keys []*ent.APIKey) map[string]bool {
	suspended, older := map[string]bool{}, 0
	for _, key := range keys { // oldest first, as Keys has them
		if key.RevokedAt != nil {
			continue
		}
		if older >= plan.Terms().Keys {
			suspended[key.ID] = true
		}
		older++
	}
	return suspended
}

// olderThan is the order of Keys, for the database.
func olderThan(key *ent.APIKey) predicate.APIKey {
	return apikey.Or(
		apikey.CreatedAtLT(key.CreatedAt),
		apikey.And(apikey.CreatedAt(key.CreatedAt), apikey.IDLT(key.ID)),
	)
}

// LongestKeyName is how long a name may be, in characters.
const LongestKeyName = 80

// CreateKey makes a key. Its text is only here to be had.
func (a *Accounts) CreateKey(ctx context.Context, acc *ent.Account, name string) (string, *ent.APIKey, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > LongestKeyName || strings.ContainsFunc(name, unicode.IsControl) {
		return "", nil, problem.New(problem.BadInput, "A key's name is one line of at most %d characters.", LongestKeyName)
	}
	key := NewKey()
	var made *ent.APIKey
	err := a.store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		// Others wait for this row: what is counted stays true until the end.
		owner, err := tx.Account.Get(ctx, acc.ID)
		if err != nil {
			return err
		}
		count, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID), apikey.RevokedAtIsNil()).Count(ctx)
		if err != nil {
			return err
		}
		if most := Plan(owner.Plan).Terms().Keys; count >= most {
			return problem.New(problem.BadInput, "The %s plan has %d keys, and all are made: revoke one first.", owner.Plan, most)
		}
		made, err = tx.APIKey.Create().SetID(key.ID).SetAccountID(acc.ID).SetName(name).SetSecretHash(key.Hash()).SetCreatedAt(a.now().UTC()).Save(ctx)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	return key.Text(), made, nil
}

// RevokeOf ends a key of an account's own.
func (a *Accounts) RevokeOf(ctx context.Context, acc *ent.Account, id string) error {
	return a.revoke(ctx, apikey.ID(id), apikey.AccountID(acc.ID))
}

// Revoke ends a key, by its public id or its whole text.
func (a *Accounts) Revoke(ctx context.Context, id string) error {
	if key, ok := ParseKey(id); ok {
		id = key.ID
	}
	return a.revoke(ctx, apikey.ID(id))
}

func (a *Accounts) revoke(ctx context.Context, which ...predicate.APIKey) error {
	n, err := a.store.Write.APIKey.Update().Where(which...).Where(apikey.RevokedAtIsNil()).SetRevokedAt(a.now().UTC()).Save(ctx)
	if err == nil && n == 0 {
		return problem.New(problem.NotFound, "No key that still works has this id.")
	}
	return store.Explain(err)
}

// Delete ends an account and forgets all of it but what billing must keep: its
// keys and sessions end at once.
func (a *Accounts) Delete(ctx context.Context, acc *ent.Account) error {
	return a.store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).ClearAccountID().Exec(ctx); err != nil {
			return err
		}
		for _, forget := range []func() (int, error){
			func() (int, error) { return tx.APIKey.Delete().Where(apikey.AccountID(acc.ID)).Exec(ctx) },
			func() (int, error) { return tx.Usage.Delete().Where(usage.AccountID(acc.ID)).Exec(ctx) },
			func() (int, error) { return tx.Session.Delete().Where(session.AccountID(acc.ID)).Exec(ctx) },
			func() (int, error) { return endMessages(ctx, tx, acc, a.now().UTC()) },
			func() (int, error) { return tx.Account.Delete().Where(account.ID(acc.ID)).Exec(ctx) },
		} {
			if _, err := forget(); err != nil {
				return err
			}
		}
		return nil
	})
}

// endMessages makes an account's messages open nothing. Those that still count
// towards the bounds stay until they are tidied away: else whoever deletes an
// account could send without end.
func endMessages(ctx context.Context, tx *ent.Tx, acc *ent.Account, now time.Time) (int, error) {
	if n, err := tx.Confirmation.Delete().Where(about(acc), confirmation.CreatedAtLTE(now.Add(-messageWindow))).Exec(ctx); err != nil {
		return n, err
	}
	return tx.Confirmation.Update().Where(about(acc), confirmation.UsedAtIsNil()).SetUsedAt(now).Save(ctx)
}
