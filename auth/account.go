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
	"palmares/ent/formerusage"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/ent/usage"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// MaxKeyName is the maximum length of a key's name, in characters.
	MaxKeyName = 80
	// maxKeysPerDay also counts revoked keys, which are stored for a while.
	maxKeysPerDay = 30
	// revokedKeyRetention is how long owners can see that a key was revoked.
	revokedKeyRetention = 90 * 24 * time.Hour
)

// Accounts manages the accounts and keys of a database.
type Accounts struct {
	store *store.Store
	now   func() time.Time
}

// NewAccounts returns the accounts of a database.
func NewAccounts(s *store.Store) *Accounts { return &Accounts{store: s, now: time.Now} }

// Create creates an account on behalf of an operator. Billing does not change
// a plan other than Developer that was set here.
func (a *Accounts) Create(ctx context.Context, email string, plan Plan) (*ent.Account, error) {
	email, err := NormalizeEmail(email)
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
		return nil, problem.New(problem.BadInput, "An account for %s already exists.", email)
	}
	return created, err
}

// Find returns the account of an email address.
func (a *Accounts) Find(ctx context.Context, email string) (*ent.Account, error) {
	email, err := NormalizeEmail(email)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Current().Account.Query().Where(account.Email(email)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.New(problem.NotFound, "There is no account for %s.", email)
	}
	return found, store.Explain(err)
}

// List returns all accounts with their keys, ordered by email address.
func (a *Accounts) List(ctx context.Context) ([]*ent.Account, error) {
	all, err := a.store.Current().Account.Query().WithKeys().Order(account.ByEmail()).All(ctx)
	return all, store.Explain(err)
}

// SetPlan sets an account's plan manually, so that billing does not change it.
func (a *Accounts) SetPlan(ctx context.Context, acc *ent.Account, plan Plan) error {
	return store.Explain(a.store.Write.Account.UpdateOne(acc).SetPlan(account.Plan(plan)).SetPlanByHand(true).Exec(ctx))
}

// Usage returns an account's requests on its latest days, newest first. Days
// after today were counted while a clock was wrong and are left out.
func (a *Accounts) Usage(ctx context.Context, acc *ent.Account, days int) ([]*ent.Usage, error) {
	rows, err := a.store.Current().Usage.Query().Where(usage.AccountID(acc.ID), usage.DayLTE(dayOf(a.now()))).
		Order(usage.ByDay(entsql.OrderDesc())).Limit(days).All(ctx)
	return rows, store.Explain(err)
}

// deletion is implemented by ent's delete builders.
type deletion interface {
	Exec(ctx context.Context) (int, error)
}

func deleteAll(ctx context.Context, deletions ...deletion) error {
	for _, d := range deletions {
		if _, err := d.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes an account with its keys, sessions and usage. It retains the
// customer record that billing needs and, until midnight UTC, the day's usage
// under a hash of the email address.
func (a *Accounts) Delete(ctx context.Context, acc *ent.Account) error {
	return a.store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		current, err := tx.Account.Get(ctx, acc.ID) // the address may have changed since acc was read
		if ent.IsNotFound(err) {
			return nil // deleted concurrently
		}
		if err != nil {
			return err
		}
		if err := storeFormerUsage(ctx, tx, current, dayOf(a.now())); err != nil {
			return err
		}
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).ClearAccountID().SetEmail("").Exec(ctx); err != nil {
			return err
		}
		if err := deleteAll(ctx,
			tx.APIKey.Delete().Where(apikey.AccountID(acc.ID)),
			tx.Usage.Delete().Where(usage.AccountID(acc.ID)),
			tx.Session.Delete().Where(session.AccountID(acc.ID)),
		); err != nil {
			return err
		}
		if err := invalidateConfirmations(ctx, tx, current, a.now().UTC()); err != nil {
			return err
		}
		return deleteAll(ctx, tx.Account.Delete().Where(account.ID(acc.ID)))
	})
}

// Tidy deletes expired confirmations and sessions, keys that were revoked long
// ago, the usage of deleted accounts on earlier days, and the email addresses
// of deleted accounts. It also deletes records dated in the future: a clock
// was wrong when they were stored. Callers must check the clock first, see
// clock.Steady.
func Tidy(ctx context.Context, s *store.Store, now time.Time) error {
	now = now.UTC()
	today, tomorrow := dayOf(now), dayOf(now.AddDate(0, 0, 1))
	if err := deleteAll(ctx,
		s.Write.Confirmation.Delete().Where(confirmation.Not(sentWithin(confirmationRetention, now))),
		s.Write.Session.Delete().Where(session.Not(validAt(now))),
		s.Write.APIKey.Delete().Where(apikey.RevokedAtLT(now.Add(-revokedKeyRetention))),
		s.Write.FormerUsage.Delete().Where(formerusage.Or(formerusage.DayLT(today), formerusage.DayGT(tomorrow))),
	); err != nil {
		return store.Explain(err)
	}
	return store.Explain(s.Write.Customer.Update().Where(customer.AccountIDIsNil(), customer.EmailNEQ("")).SetEmail("").Exec(ctx))
}

// Keys returns an account's keys, oldest first, including revoked ones.
func (a *Accounts) Keys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	return a.keys(ctx, apikey.AccountID(acc.ID))
}

// UnrevokedKeys returns an account's keys that were not revoked, oldest first.
func (a *Accounts) UnrevokedKeys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	return a.keys(ctx, apikey.AccountID(acc.ID), apikey.RevokedAtIsNil())
}

func (a *Accounts) keys(ctx context.Context, where ...predicate.APIKey) ([]*ent.APIKey, error) {
	keys, err := a.store.Current().APIKey.Query().Where(where...).Order(apikey.ByCreatedAt(), apikey.ByID()).All(ctx)
	return keys, store.Explain(err)
}

// HasRevokedKeys reports whether a key of the account was revoked.
func (a *Accounts) HasRevokedKeys(ctx context.Context, acc *ent.Account) (bool, error) {
	exist, err := a.store.Current().APIKey.Query().Where(apikey.AccountID(acc.ID), apikey.RevokedAtNotNil()).Exist(ctx)
	return exist, store.Explain(err)
}

// Suspended returns the ids of the keys that exceed the plan. The oldest keys
// remain active. The keys must be in the order of Accounts.Keys.
func Suspended(plan Plan, keys []*ent.APIKey) map[string]bool {
	suspended, older := map[string]bool{}, 0
	for _, key := range keys {
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

// olderThan matches the keys that come before key in Accounts.Keys.
func olderThan(key *ent.APIKey) predicate.APIKey {
	return apikey.Or(
		apikey.CreatedAtLT(key.CreatedAt),
		apikey.And(apikey.CreatedAt(key.CreatedAt), apikey.IDLT(key.ID)),
	)
}

// CreateKey creates a key and returns its text, which is not stored.
func (a *Accounts) CreateKey(ctx context.Context, acc *ent.Account, name string) (string, *ent.APIKey, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > MaxKeyName || strings.ContainsFunc(name, unicode.IsControl) {
		return "", nil, problem.New(problem.BadInput, "The name of a key must be a single line of at most %d characters.", MaxKeyName)
	}
	key := NewKey()
	now := a.now().UTC()
	var created *ent.APIKey
	// The account's row is locked, so that concurrent calls cannot exceed the limits.
	err := a.store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		owner, err := tx.Account.Get(ctx, acc.ID)
		if err != nil {
			return err
		}
		count, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID), apikey.RevokedAtIsNil()).Count(ctx)
		if err != nil {
			return err
		}
		if limit := Plan(owner.Plan).Terms().Keys; count >= limit {
			return problem.New(problem.BadInput, "The %s plan includes %d keys, and all of them are in use. Revoke one first.", owner.Plan, limit)
		}
		// A clock may have been ahead when a key was created, so dates have two limits.
		recent, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID),
			apikey.CreatedAtGT(now.Add(-24*time.Hour)), apikey.CreatedAtLT(now.Add(24*time.Hour))).Count(ctx)
		if err != nil {
			return err
		}
		if recent >= maxKeysPerDay {
			return problem.New(problem.TooMany, "An account can create at most %d keys within 24 hours. Try again later.", maxKeysPerDay)
		}
		created, err = tx.APIKey.Create().SetID(key.ID).SetAccountID(acc.ID).SetName(name).SetSecretHash(key.Hash()).SetCreatedAt(now).Save(ctx)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	return key.Text(), created, nil
}

// RevokeOwned revokes a key if it belongs to the account.
func (a *Accounts) RevokeOwned(ctx context.Context, acc *ent.Account, id string) error {
	return a.revoke(ctx, apikey.ID(id), apikey.AccountID(acc.ID))
}

// Revoke revokes a key, given its public id or its complete text.
func (a *Accounts) Revoke(ctx context.Context, id string) error {
	if key, ok := ParseKey(id); ok {
		id = key.ID
	}
	return a.revoke(ctx, apikey.ID(id))
}

func (a *Accounts) revoke(ctx context.Context, where ...predicate.APIKey) error {
	n, err := a.store.Write.APIKey.Update().Where(where...).Where(apikey.RevokedAtIsNil()).SetRevokedAt(a.now().UTC()).Save(ctx)
	if err == nil && n == 0 {
		return problem.New(problem.NotFound, "There is no active key with this id.")
	}
	return store.Explain(err)
}
