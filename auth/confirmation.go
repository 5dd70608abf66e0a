package auth

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/confirmation"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// ConfirmTime is how long a message's link and code work.
	ConfirmTime = 15 * time.Minute
	// maxTries is how many codes may be tried: a guess of six digits has one
	// chance in 200,000 with each message.
	maxTries = 5
	// maxWrong is how many wrong codes a mailbox may have had in all its
	// messages that are still kept: who guesses for days gets nowhere, too.
	maxWrong = 20
	// confirmationKept is how long messages are counted at all.
	confirmationKept = 24 * time.Hour
)

// What can be wrong with a link or a code.
var (
	ErrUnknownLink  = problem.New(problem.NotFound, "This link is not one of ours, or was cut on its way.")
	ErrExpired      = problem.New(problem.Gone, "This message has expired: it worked for 15 minutes.")
	ErrUsed         = problem.New(problem.Gone, "This message was used already: it worked once.")
	ErrWrongCode    = problem.New(problem.BadInput, "This is not the code in the message.")
	ErrLocked       = problem.New(problem.TooMany, "Too many wrong codes were tried, so no more are taken. The link in the message still works.")
	ErrOtherAccount = problem.New(problem.Forbidden, "This link belongs to another account than the one that is signed in.")
	ErrTaken        = problem.New(problem.BadInput, "There is an account for this address already.")
	ErrSameAddress  = problem.New(problem.BadInput, "This is the account's address already, so there is nothing to change.")
)

// Confirmations are the messages by which people show that an address is
// theirs. What they know of who has an account is nothing: an address that is
// new takes the same way as one that is not.
type Confirmations struct {
	store *store.Store
	now   func() time.Time
}

// NewConfirmations keeps them in a database.
func NewConfirmations(s *store.Store) *Confirmations {
	return &Confirmations{store: s, now: time.Now}
}

// Look tells what a link is for, and uses nothing up: mail scanners open
// links, too.
func (c *Confirmations) Look(ctx context.Context, link string) (*ent.Confirmation, error) {
	return c.find(ctx, c.store.Current().Confirmation.Query().Where(confirmation.LinkHash(hashed(link))))
}

// LookByBrowser is what a browser waits for a code of. It waits for one thing:
// what it asked for last.
func (c *Confirmations) LookByBrowser(ctx context.Context, purpose confirmation.Purpose, browser string) (*ent.Confirmation, error) {
	return c.find(ctx, c.store.Current().Confirmation.Query().
		Where(confirmation.BrowserHash(hashed(browser)), confirmation.PurposeEQ(purpose)))
}

func (c *Confirmations) find(ctx context.Context, query *ent.ConfirmationQuery) (*ent.Confirmation, error) {
	found, err := query.Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, ErrUnknownLink
	case err != nil:
		return nil, store.Explain(err)
	case found.UsedAt != nil:
		return found, ErrUsed
	case !c.now().Before(found.ExpiresAt), found.CreatedAt.After(c.now().Add(ConfirmTime)): // a clock was ahead when it was sent
		return found, ErrExpired
	}
	return found, nil
}

// Of lists the messages about an account that are still kept, newest first.
func (c *Confirmations) Of(ctx context.Context, acc *ent.Account) ([]*ent.Confirmation, error) {
	all, err := c.store.Current().Confirmation.Query().Where(about(acc)).Order(ent.Desc(confirmation.FieldCreatedAt)).All(ctx)
	return all, store.Explain(err)
}

// about is what went to an account's address, or was asked for by it.
func about(acc *ent.Account) predicate.Confirmation {
	return confirmation.Or(confirmation.AccountID(acc.ID), confirmation.Email(acc.Email))
}

// SignIn uses a message up, opens the account if it is new, and signs the
// browser in to it.
func (c *Confirmations) SignIn(ctx context.Context, found *ent.Confirmation) (token string, err error) {
	if found.Purpose != confirmation.PurposeSignIn {
		return "", ErrUnknownLink
	}
	now := c.now().UTC()
	err = c.store.Update(ctx, func(tx *ent.Tx) error {
		// The account first, as Delete does: else each could wait for the other.
		create, err := newAccount(ctx, tx, found.Email, Developer, now)
		if err != nil {
			return err
		}
		if err := use(ctx, tx, found, now); err != nil {
			return err
		}
		id, err := create.OnConflictColumns(account.FieldEmail).Ignore().ID(ctx)
		if err != nil {
			return err
		}
		token, err = startSession(ctx, tx.Session, id, now)
		return err
	})
	return token, err
}

// ChangeEmail uses a message up and gives its account the new address. Only
// the session that does it goes on: somebody else's may be why it is done.
func (c *Confirmations) ChangeEmail(ctx context.Context, found *ent.Confirmation, by *ent.Account, current string) error {
	if found.Purpose != confirmation.PurposeChangeEmail || found.AccountID == nil {
		return ErrUnknownLink
	}
	if *found.AccountID != by.ID {
		return ErrOtherAccount
	}
	if found.Email == by.Email {
		return ErrSameAddress
	}
	err := c.store.InTurn(ctx, account.Table, by.ID, func(tx *ent.Tx) error {
		if err := use(ctx, tx, found, c.now().UTC()); err != nil {
			return err
		}
		before, err := tx.Account.Get(ctx, by.ID)
		if err != nil {
			return err
		}
		if err := rememberChanged(ctx, tx, before, c.now()); err != nil {
			return err
		}
		if err := tx.Account.UpdateOneID(by.ID).SetEmail(found.Email).Exec(ctx); err != nil {
			return err
		}
		_, err = tx.Session.Delete().Where(session.AccountID(by.ID), session.IDNEQ(hashed(current))).Exec(ctx)
		return err
	})
	if ent.IsConstraintError(err) {
		return ErrTaken
	}
	return err
}

// use marks a message as used: once, whoever else tries at the same time.
func use(ctx context.Context, tx *ent.Tx, found *ent.Confirmation, now time.Time) error {
	used, err := tx.Confirmation.Update().Where(confirmation.ID(found.ID), confirmation.UsedAtIsNil()).SetUsedAt(now).Save(ctx)
	if err == nil && used == 0 {
		return ErrUsed
	}
	return err
}
