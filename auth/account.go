package auth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/apikey"
	"palmares/ent/confirmation"
	"palmares/ent/customer"
	"palmares/ent/formerhandle"
	"palmares/ent/notice"
	"palmares/ent/session"
	"palmares/ent/usage"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

// Accounts manages accounts with their keys, sessions and confirmations.
type Accounts struct {
	store *store.Store
	now   func() time.Time
}

// NewAccounts returns the accounts of a database.
func NewAccounts(s *store.Store) *Accounts { return &Accounts{store: s, now: time.Now} }

// Create creates an account on behalf of an operator. Billing does not change
// a plan other than Developer that was set here.
func (a *Accounts) Create(ctx context.Context, email string, plan Plan) (created *ent.Account, err error) {
	if email, err = NormalizeEmail(email); err != nil {
		return nil, err
	}
	err = a.store.Update(ctx, func(tx *ent.Tx) error {
		create, err := newAccount(ctx, tx, email, plan, a.now().UTC())
		if err != nil {
			return err
		}
		created, err = create.SetManualPlan(plan != Developer).Save(ctx)
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
	found, err := a.store.Read.Account.Query().Where(account.Email(email)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.New(problem.NotFound, "There is no account for %s.", email)
	}
	return found, err
}

// List returns all accounts with their keys, ordered by email address.
func (a *Accounts) List(ctx context.Context) ([]*ent.Account, error) {
	return a.store.Read.Account.Query().WithKeys().Order(account.ByEmail()).All(ctx)
}

// SetPlan sets an account's plan manually, so that billing does not change it.
func (a *Accounts) SetPlan(ctx context.Context, acc *ent.Account, plan Plan) error {
	return a.store.Write.Account.UpdateOne(acc).SetPlan(account.Plan(plan)).SetManualPlan(true).Exec(ctx)
}

// Languages are the languages of emails.
var Languages = []string{string(account.LanguageEn), string(account.LanguageFr)}

// SetLanguage sets the language of the emails to an account.
func (a *Accounts) SetLanguage(ctx context.Context, acc *ent.Account, language string) error {
	if !slices.Contains(Languages, language) {
		return problem.New(problem.BadInput, "The language must be one of %s (got %.20q).", strings.Join(Languages, ", "), language)
	}
	return a.store.Write.Account.UpdateOne(acc).SetLanguage(account.Language(language)).Exec(ctx)
}

// EndpointUsage is how many requests a key sent to an endpoint of the API.
type EndpointUsage struct {
	Key      string `json:"key"` // see ent.Usage
	Endpoint string `json:"endpoint"`
	Requests int    `json:"requests"`
}

// UsageByEndpoint returns an account's requests of the last days, including today,
// by key and endpoint. The most used come first.
func (a *Accounts) UsageByEndpoint(ctx context.Context, acc *ent.Account, days int) (rows []EndpointUsage, err error) {
	now := a.now()
	err = a.usage(acc).Where(usage.DayGT(dayOf(now.AddDate(0, 0, -days))), usage.EndpointNEQ("")).
		GroupBy(usage.FieldKey, usage.FieldEndpoint).Aggregate(ent.As(ent.Sum(usage.FieldRequests), usage.FieldRequests)).Scan(ctx, &rows)
	rows = slices.DeleteFunc(rows, func(u EndpointUsage) bool { return u.Requests <= 0 })
	slices.SortFunc(rows, func(a, b EndpointUsage) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Key, b.Key))
	})
	return rows, err
}

// DayUsage is how many requests an account sent on a day.
type DayUsage struct {
	Day      string `json:"day"`
	Requests int    `json:"requests"`
}

// Usage returns an account's latest days, newest first.
func (a *Accounts) Usage(ctx context.Context, acc *ent.Account, days int) (rows []DayUsage, err error) {
	err = a.usage(acc).Order(usage.ByDay(entsql.OrderDesc())).Limit(days).
		GroupBy(usage.FieldDay).Aggregate(ent.As(ent.Sum(usage.FieldRequests), usage.FieldRequests)).Scan(ctx, &rows)
	return rows, err
}

// usage returns a query of an account's usage. Days after today were counted while a
// clock was wrong and are left out.
func (a *Accounts) usage(acc *ent.Account) *ent.UsageQuery {
	return a.store.Read.Usage.Query().Where(usage.Subject(int64(Subject(acc))), usage.DayLTE(dayOf(a.now())))
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

func runAll(tx *ent.Tx, all []func(*ent.Tx) error) error {
	for _, run := range all {
		if err := run(tx); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes an account with its keys, sessions and usage. It retains the
// customer record that billing needs, a hash of its handle and, until midnight UTC,
// the day's usage, see Subject. The functions that it is given run at the end of the
// transaction.
func (a *Accounts) Delete(ctx context.Context, acc *ent.Account, also ...func(*ent.Tx) error) error {
	return a.store.WithRowLock(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		current, err := tx.Account.Get(ctx, acc.ID) // the address may have changed since acc was read
		if err != nil {
			return ent.MaskNotFound(err) // not found: it was deleted concurrently
		}
		if err := storeFormerHandle(ctx, tx, current); err != nil {
			return err
		}
		if err := tx.Customer.Update().Where(customer.AccountID(acc.ID)).ClearAccountID().SetEmail("").Exec(ctx); err != nil {
			return err
		}
		if err := invalidateConfirmations(ctx, tx, current, a.now().UTC()); err != nil {
			return err
		}
		err = deleteAll(ctx,
			tx.Notice.Delete().Where(notice.Recipient(current.Email)),
			tx.APIKey.Delete().Where(apikey.AccountID(acc.ID)),
			tx.Usage.Delete().Where(usage.Subject(int64(Subject(current))), usage.DayLT(dayOf(a.now()))),
			tx.Session.Delete().Where(session.AccountID(acc.ID)),
			tx.Account.Delete().Where(account.ID(acc.ID)),
		)
		if err != nil {
			return err
		}
		return runAll(tx, also)
	})
}

// DeleteExpired deletes expired data, keys that were revoked long ago, and the email
// addresses of deleted accounts. It also deletes records that a wrong clock has
// dated in the future. Callers must check the clock first, see clock.Steady.
func DeleteExpired(ctx context.Context, s *store.Store, now time.Time) error {
	now = now.UTC()
	if err := deleteAll(ctx,
		s.Write.Confirmation.Delete().Where(confirmation.Not(sentWithin(confirmationRetention, now))),
		s.Write.Session.Delete().Where(session.Not(validAt(now))),
		s.Write.APIKey.Delete().Where(apikey.RevokedAtLT(now.Add(-revokedKeyRetention))),
	); err != nil {
		return err
	}
	// Codes that were not exchanged, and grants that were not refreshed.
	if err := deleteGrants(ctx, s, "code_expires_at < $1 AND refresh_expires_at < $1", now.Unix()); err != nil {
		return err
	}
	return s.Write.Customer.Update().Where(customer.AccountIDIsNil(), customer.EmailNEQ("")).SetEmail("").Exec(ctx)
}

func dayOf(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// emailHash returns what is stored of the address of a deleted account. The
// secret key prevents finding addresses by trial and error.
func emailHash(ctx context.Context, tx *ent.Tx, email string) (string, error) {
	key, err := tx.Secret.Get(ctx, "email")
	if err != nil {
		return "", err
	}
	return keyedHash(key.Value, email), nil
}

// storeFormerHandle prevents others from taking over the URLs of a deleted account.
func storeFormerHandle(ctx context.Context, tx *ent.Tx, acc *ent.Account) error {
	if acc.Handle == nil {
		return nil
	}
	hash, err := handleHash(ctx, tx, *acc.Handle)
	if err != nil {
		return err
	}
	return tx.FormerHandle.Create().SetID(hash).OnConflict(entsql.ConflictColumns(formerhandle.FieldID), entsql.DoNothing()).Exec(ctx)
}

// IsFormerHandle reports whether a deleted account had a handle.
func IsFormerHandle(ctx context.Context, tx *ent.Tx, handle string) (bool, error) {
	hash, err := handleHash(ctx, tx, handle)
	if err != nil {
		return false, err
	}
	return tx.FormerHandle.Query().Where(formerhandle.ID(hash)).Exist(ctx)
}

func handleHash(ctx context.Context, tx *ent.Tx, handle string) (string, error) {
	return emailHash(ctx, tx, "handle "+handle) // no address contains a space
}

// Subject returns what the requests of an account are counted under. It is derived from
// the address that signed up and does not change with the address, so that the daily quota
// is not reset when the account is deleted and created again. Accounts of version 0.2 and
// earlier are counted under their ids.
func Subject(acc *ent.Account) quota.Subject {
	if acc.Subject == nil {
		return quota.Account(acc.ID)
	}
	return quota.Subject(*acc.Subject)
}

// newSubject returns the first subject of an address that no account has. The account
// that has an earlier one has changed its address since.
func newSubject(ctx context.Context, tx *ent.Tx, email string) (int64, error) {
	for i := 0; ; i++ {
		hash, err := emailHash(ctx, tx, fmt.Sprintf("quota %d %s", i, email)) // no address or handle contains a space
		if err != nil {
			return 0, err
		}
		number, err := strconv.ParseUint(hash[:16], 16, 64)
		if err != nil {
			return 0, err
		}
		subject := int64(quota.Hashed(number))
		if taken, err := tx.Account.Query().Where(account.Subject(subject)).Exist(ctx); err != nil || !taken {
			return subject, err
		}
	}
}

// newAccount prepares an account. If the address already has one, its row is locked
// until tx ends.
func newAccount(ctx context.Context, tx *ent.Tx, email string, plan Plan, now time.Time) (*ent.AccountCreate, error) {
	create := tx.Account.Create().SetEmail(email).SetPlan(account.Plan(plan)).SetCreatedAt(now)
	// The update waits for a concurrent deletion, so that its subject is free below.
	existing, err := tx.Account.Update().Where(account.Email(email)).SetEmail(email).Save(ctx)
	if err != nil || existing > 0 {
		return create, err
	}
	subject, err := newSubject(ctx, tx, email)
	return create.SetSubject(subject), err
}
