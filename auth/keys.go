package auth

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/apikey"
	"palmares/ent/predicate"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Keys are an account's, oldest first, revoked ones too.
func (a *Accounts) Keys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	return a.keys(ctx, apikey.AccountID(acc.ID))
}

// UnrevokedKeys are those of them that were not revoked.
func (a *Accounts) UnrevokedKeys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	return a.keys(ctx, apikey.AccountID(acc.ID), apikey.RevokedAtIsNil())
}

func (a *Accounts) keys(ctx context.Context, which ...predicate.APIKey) ([]*ent.APIKey, error) {
	keys, err := a.store.Current().APIKey.Query().Where(which...).Order(apikey.ByCreatedAt(), apikey.ByID()).All(ctx)
	return keys, store.Explain(err)
}

// HadKeys tells whether an account has a key that was revoked.
func (a *Accounts) HadKeys(ctx context.Context, acc *ent.Account) (bool, error) {
	had, err := a.store.Current().APIKey.Query().Where(apikey.AccountID(acc.ID), apikey.RevokedAtNotNil()).Exist(ctx)
	return had, store.Explain(err)
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

// keysInADay is how many keys an account may make, also where each is revoked
// at once: every one is kept for a while.
const keysInADay = 30

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
		recent, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID),
			apikey.CreatedAtGT(a.now().UTC().Add(-24*time.Hour)), apikey.CreatedAtLT(a.now().UTC().Add(24*time.Hour))).Count(ctx) // a clock may have been ahead
		if err != nil {
			return err
		}
		if recent >= keysInADay {
			return problem.New(problem.TooMany, "%d keys were made within 24 hours, and an account makes no more than that. Try again later.", keysInADay)
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
