package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/formerusage"
	"palmares/ent/usage"
)

// The daily quota belongs to an email address, however often its account is
// deleted and created again. An account's usage is therefore stored under a
// hash of its address when it is deleted, and also under the first address it
// had that day. Otherwise two addresses that are changed back and forth would
// get a new quota with every deletion.

func dayOf(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// emailHash returns what is stored of the address of a deleted account. The
// secret key prevents finding addresses by trial and error.
func emailHash(ctx context.Context, tx *ent.Tx, email string) (string, error) {
	key, err := tx.Secret.Get(ctx, "email")
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key.Value)
	mac.Write([]byte(email))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Carried returns how many requests of deleted accounts with the same address
// count against an account's quota on a day (YYYY-MM-DD).
func Carried(acc *ent.Account, day string) int {
	if acc.CarriedDay != day {
		return 0
	}
	return acc.CarriedRequests
}

// storeFirstAddress stores an account's usage before its address changes. The
// first address of the day is enough: an account created with one in between
// uses up the quota of that address.
func storeFirstAddress(ctx context.Context, tx *ent.Tx, acc *ent.Account, day string) error {
	stored, err := tx.FormerUsage.Query().Where(formerusage.AccountID(acc.ID), formerusage.Day(day)).Exist(ctx)
	if err != nil || stored {
		return err
	}
	return storeFormerUsage(ctx, tx, acc, day)
}

// storeFormerUsage stores an account's usage on a day under its current
// address, and updates what is stored under an earlier one. Requests that the
// account carries have rows of their own and are not included.
func storeFormerUsage(ctx context.Context, tx *ent.Tx, acc *ent.Account, day string) error {
	requests := 0
	row, err := tx.Usage.Query().Where(usage.AccountID(acc.ID), usage.Day(day)).Only(ctx)
	if err == nil {
		requests = row.Requests
	} else if !ent.IsNotFound(err) {
		return err
	}
	hash, err := emailHash(ctx, tx, acc.Email)
	if err != nil {
		return err
	}
	if err := tx.FormerUsage.Update().Where(formerusage.AccountID(acc.ID), formerusage.Day(day)).SetRequests(requests).Exec(ctx); err != nil {
		return err
	}
	return tx.FormerUsage.Create().SetAccountID(acc.ID).SetEmailHash(hash).SetDay(day).SetRequests(requests).
		OnConflictColumns(formerusage.FieldAccountID, formerusage.FieldDay, formerusage.FieldEmailHash).
		Update(func(u *ent.FormerUsageUpsert) { u.SetRequests(requests) }).Exec(ctx)
}

// AddFormerUsage adds requests that were counted before an account was deleted
// and saved afterwards.
func AddFormerUsage(ctx context.Context, tx *ent.Tx, accountID int, day string, requests int) error {
	return tx.FormerUsage.Update().Where(formerusage.AccountID(accountID), formerusage.Day(day)).AddRequests(requests).Exec(ctx)
}

// newAccount prepares an account that carries today's usage of deleted
// accounts with the same address. If the address already has an account, its
// row is locked until tx ends.
func newAccount(ctx context.Context, tx *ent.Tx, email string, plan Plan, now time.Time) (*ent.AccountCreate, error) {
	create := tx.Account.Create().SetEmail(email).SetPlan(account.Plan(plan)).SetCreatedAt(now)
	// The update waits for a concurrent deletion, so that its usage is found below.
	existing, err := tx.Account.Update().Where(account.Email(email)).SetEmail(email).Save(ctx)
	if err != nil || existing > 0 {
		return create, err
	}
	hash, err := emailHash(ctx, tx, email)
	if err != nil {
		return nil, err
	}
	day := dayOf(now)
	rows, err := tx.FormerUsage.Query().Where(formerusage.Day(day), formerusage.EmailHash(hash)).All(ctx)
	if err != nil {
		return nil, err
	}
	carried := 0
	for _, row := range rows {
		carried += row.Requests
	}
	if carried > 0 {
		create.SetCarriedDay(day).SetCarriedRequests(carried)
	}
	return create, nil
}
