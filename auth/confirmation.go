package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/confirmation"
	"palmares/ent/predicate"
	"palmares/internal/problem"
	"palmares/internal/store"
)

const (
	// ConfirmTime is how long a message's link and code work.
	ConfirmTime = 15 * time.Minute
	// maxTries is how many codes may be tried: a guess of six digits has one
	// chance in 200,000 with each message.
	maxTries = 5
	// The bounds on messages keep us from being a nuisance to others.
	messageWindow    = time.Hour
	messagesToOne    = 5
	messagesFromOne  = 20
	confirmationKept = 24 * time.Hour
)

// What can be wrong with a link or a code.
var (
	ErrUnknownLink  = problem.New(problem.NotFound, "This link is not one of ours, or was cut on its way.")
	ErrExpired      = problem.New(problem.Gone, "This message has expired: it worked for 15 minutes.")
	ErrUsed         = problem.New(problem.Gone, "This message was used already: it worked once.")
	ErrWrongCode    = problem.New(problem.BadInput, "This is not the code in the message.")
	ErrLocked       = problem.New(problem.TooMany, "Five codes were tried, so no more are taken. The link in the message still works.")
	ErrOtherAccount = problem.New(problem.Forbidden, "This link belongs to another account than the one that is signed in.")
	ErrTaken        = problem.New(problem.BadInput, "There is an account for this address already.")
	ErrMailboxFull  = problem.New(problem.TooMany, "%d messages went to this address within an hour. Try again later.", messagesToOne)
	ErrSenderBusy   = problem.New(problem.TooMany, "%d messages were asked for from your network within an hour. Try again later.", messagesFromOne)
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

// Asked is a message to be sent: its secrets are only here to be had.
type Asked struct {
	Email   string
	Link    string // what the link of the message holds
	Code    string // what can be typed instead,
	Browser string // in the browser that has this
}

// AskSignIn begins to sign somebody in, or up.
func (c *Confirmations) AskSignIn(ctx context.Context, email, sender string) (Asked, error) {
	return c.ask(ctx, confirmation.PurposeSignIn, email, sender, nil)
}

// AskChange begins to change an account's address.
func (c *Confirmations) AskChange(ctx context.Context, acc *ent.Account, email, sender string) (Asked, error) {
	return c.ask(ctx, confirmation.PurposeChangeEmail, email, sender, &acc.ID)
}

func (c *Confirmations) ask(ctx context.Context, purpose confirmation.Purpose, email, sender string, owner *int) (Asked, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return Asked{}, err
	}
	asked := Asked{Email: email, Link: rand.Text(), Browser: rand.Text(), Code: newCode()}
	now := c.now().UTC()
	// One after the other, so that what is counted stays true until the end.
	return asked, c.store.OneByOne(ctx, func(tx *ent.Tx) error {
		recent := tx.Confirmation.Query().Where(confirmation.CreatedAtGT(now.Add(-messageWindow)))
		to, err := recent.Clone().Where(confirmation.Mailbox(mailbox(email))).Count(ctx)
		if err != nil {
			return err
		}
		if to >= messagesToOne {
			return ErrMailboxFull
		}
		from, err := recent.Clone().Where(confirmation.Sender(sender)).Count(ctx)
		if err != nil {
			return err
		}
		if from >= messagesFromOne {
			return ErrSenderBusy
		}
		return tx.Confirmation.Create().SetPurpose(purpose).SetEmail(email).SetMailbox(mailbox(email)).SetSender(sender).
			SetNillableAccountID(owner).SetLinkHash(hashed(asked.Link)).SetBrowserHash(hashed(asked.Browser)).
			SetCodeHash(keyed(asked.Browser, asked.Code)).SetCreatedAt(now).SetExpiresAt(now.Add(ConfirmTime)).Exec(ctx)
	})
}

// Look tells what a link is for, and uses nothing up: mail scanners open
// links, too.
func (c *Confirmations) Look(ctx context.Context, link string) (*ent.Confirmation, error) {
	return c.find(ctx, c.store.Write.Confirmation.Query().Where(confirmation.LinkHash(hashed(link))))
}

// LookByBrowser is what a browser waits for a code of.
func (c *Confirmations) LookByBrowser(ctx context.Context, browser string) (*ent.Confirmation, error) {
	return c.find(ctx, c.store.Write.Confirmation.Query().Where(confirmation.BrowserHash(hashed(browser))))
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
	case !c.now().Before(found.ExpiresAt):
		return found, ErrExpired
	}
	return found, nil
}

// Of lists the messages about an account that are still kept, newest first.
func (c *Confirmations) Of(ctx context.Context, acc *ent.Account) ([]*ent.Confirmation, error) {
	all, err := c.store.Write.Confirmation.Query().Where(about(acc)).Order(ent.Desc(confirmation.FieldCreatedAt)).All(ctx)
	return all, store.Explain(err)
}

// about is what went to an account's address, or was asked for by it.
func about(acc *ent.Account) predicate.Confirmation {
	return confirmation.Or(confirmation.AccountID(acc.ID), confirmation.Email(acc.Email))
}

// Try takes a code in the browser that asked for the message. Each try is
// counted before it is looked at, so that many at once are no more than five.
func (c *Confirmations) Try(ctx context.Context, browser, code string) (*ent.Confirmation, error) {
	found, err := c.LookByBrowser(ctx, browser)
	if err != nil {
		return found, err
	}
	counted, err := c.store.Write.Confirmation.Update().
		Where(confirmation.ID(found.ID), confirmation.TriesLT(maxTries)).AddTries(1).Save(ctx)
	switch {
	case err != nil:
		return found, store.Explain(err)
	case counted == 0:
		return found, ErrLocked
	case !hmac.Equal([]byte(keyed(browser, code)), []byte(found.CodeHash)):
		if found.Tries+1 >= maxTries {
			return found, ErrLocked
		}
		return found, ErrWrongCode
	}
	return found, nil
}

// Locked tells whether a message's code was tried too often to be taken.
func Locked(found *ent.Confirmation) bool { return found.Tries >= maxTries }

// SignIn uses a message up, opens the account if it is new, and signs the
// browser in to it.
func (c *Confirmations) SignIn(ctx context.Context, found *ent.Confirmation) (session string, err error) {
	if found.Purpose != confirmation.PurposeSignIn {
		return "", ErrUnknownLink
	}
	now := c.now().UTC()
	err = c.store.Update(ctx, func(tx *ent.Tx) error {
		if err := use(ctx, tx, found, now); err != nil {
			return err
		}
		id, err := tx.Account.Create().SetEmail(found.Email).SetPlan(account.PlanDeveloper).SetCreatedAt(now).
			OnConflictColumns(account.FieldEmail).Ignore().ID(ctx)
		if err != nil {
			return err
		}
		session, err = startSession(ctx, tx.Session, id, now)
		return err
	})
	return session, err
}

// ChangeEmail uses a message up and gives its account the new address.
func (c *Confirmations) ChangeEmail(ctx context.Context, found *ent.Confirmation, by *ent.Account) error {
	if found.Purpose != confirmation.PurposeChangeEmail || found.AccountID == nil {
		return ErrUnknownLink
	}
	if *found.AccountID != by.ID {
		return ErrOtherAccount
	}
	err := c.store.Update(ctx, func(tx *ent.Tx) error {
		if err := use(ctx, tx, found, c.now().UTC()); err != nil {
			return err
		}
		return tx.Account.UpdateOneID(by.ID).SetEmail(found.Email).Exec(ctx)
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

// newCode is six digits, each as likely as any other.
func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // the system's source of chance never fails
	}
	return fmt.Sprintf("%06d", n)
}

// keyed hides a code from who reads the database but not the browser.
func keyed(browser, code string) string {
	mac := hmac.New(sha256.New, []byte(browser))
	mac.Write([]byte(code))
	return hex.EncodeToString(mac.Sum(nil))
}
