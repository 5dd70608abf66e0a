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

// The quota of a day belongs to an email address, however often its account is
// deleted and opened again. What an account used is therefore stored under a
// hash of its address when it is deleted, and also under the first address that
// it had on that day: otherwise two addresses, changed in turn, would get a new
// quota with every deletion.

func dayOf(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// emailHash returns what is stored of an address whose account was deleted.
// The key keeps others from finding out an address by trying.
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
// count against an account's quota on a day, written YYYY-MM-DD.
func Carried(acc *ent.Account, day string) int {
	if acc.CarriedDay != day {
		return 0
	}
	return acc.CarriedRequests
}

// usedOn returns how many requests of an account were counted on a day, without
// those that it carries: they have rows of their own.
func usedOn(ctx context.Context, tx *ent.Tx, acc *ent.Account, day string) (int, error) {
	row, err := tx.Usage.Query().Where(usage.AccountID(acc.ID), usage.Day(day)).Only(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return row.Requests, nil
}

// rememberDeleted stores what an account used today, before it is deleted.
func rememberDeleted(ctx context.Context, tx *ent.Tx, acc *ent.Account, now time.Time) error {
	return storeFormer(ctx, tx, acc, dayOf(now))
}

// rememberChanged stores what an account used today, before its address
// changes. The first address of the day is enough: an account that is opened
// with one in between uses up the quota of that address.
func rememberChanged(ctx context.Context, tx *ent.Tx, acc *ent.Account, now time.Time) error {
	day := dayOf(now)
	there, err := tx.FormerUsage.Query().Where(formerusage.AccountID(acc.ID), formerusage.Day(day)).Exist(ctx)
	if err != nil || there {
		return err
	}
	return storeFormer(ctx, tx, acc, day)
}

// storeFormer stores what an account used on a day under its present address,
// and brings what is stored under an earlier one up to date.
func storeFormer(ctx context.Context, tx *ent.Tx, acc *ent.Account, day string) error {
	used, err := usedOn(ctx, tx, acc, day)
	if err != nil {
		return err
	}
	hash, err := emailHash(ctx, tx, acc.Email)
	if err != nil {
		return err
	}
	if err := tx.FormerUsage.Update().Where(formerusage.AccountID(acc.ID), formerusage.Day(day)).SetRequests(used).Exec(ctx); err != nil {
		return err
	}
	return tx.FormerUsage.Create().SetAccountID(acc.ID).SetEmailHash(hash).SetDay(day).SetRequests(used).
		OnConflictColumns(formerusage.FieldAccountID, formerusage.FieldDay, formerusage.FieldEmailHash).
		Update(func(u *ent.FormerUsageUpsert) { u.SetRequests(used) }).Exec(ctx)
}

// AddFormerUsage adds requests to the day of an account that was deleted since
// they were counted.
func AddFormerUsage(ctx context.Context, tx *ent.Tx, accountID int, day string, requests int) error {
	return tx.FormerUsage.Update().Where(formerusage.AccountID(accountID), formerusage.Day(day)).AddRequests(requests).Exec(ctx)
}

// newAccount prepares an account with what deleted ones of its address used
// today. If the address has an account, it is locked until tx ends.
func newAccount(ctx context.Context, tx *ent.Tx, email string, plan Plan, now time.Time) (*ent.AccountCreate, error) {
	create := tx.Account.Create().SetEmail(email).SetPlan(account.Plan(plan)).SetCreatedAt(now)
	// This waits for a deletion that has not ended yet, so that its usage is
	// seen below.
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
	carried := 0
	for _, row := range rows {
		carried += row.Requests
	}
	if carried > 0 {
		create.SetCarriedDay(day).SetCarriedRequests(carried)
	}
	return create, err
}
