package auth

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/ent/predicate"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// The bounds on messages keep us from being a nuisance to others.
const (
	messageWindow    = time.Hour
	messagesToOne    = 5
	messagesFromOne  = 20
	messagesFromIPv6 = 60  // from the network around one
	messagesFromIPv4 = 200 // where that is many people's
)

// Who has had enough.
var (
	ErrMailboxFull = problem.New(problem.TooMany, "%d messages went to this address within an hour. Try again later.", messagesToOne)
	ErrSenderBusy  = problem.New(problem.TooMany, "Too many messages were asked for from your network within an hour. Try again later.")
)

// Sender is where a message was asked for from: a network, and the one around
// it. Who has an IPv6 address often has many networks.
type Sender struct{ Network, Wider string }

// mostFromWider is how many messages the network around a sender may ask for.
func (s Sender) mostFromWider() int {
	if strings.Contains(s.Wider, ":") {
		return messagesFromIPv6
	}
	return messagesFromIPv4
}

// Asked is a message to be sent: its secrets are only here to be had.
type Asked struct {
	Email   string
	Link    string // what the link of the message holds
	Code    string // what can be typed instead,
	Browser string // in the browser that has this
}

// AskSignIn begins to sign somebody in, or up.
func (c *Confirmations) AskSignIn(ctx context.Context, email string, from Sender) (Asked, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return Asked{}, err
	}
	return c.ask(ctx, confirmation.PurposeSignIn, email, from, nil)
}

// AskChange begins to change an account's address.
func (c *Confirmations) AskChange(ctx context.Context, acc *ent.Account, email string, from Sender) (Asked, error) {
	email, err := NormalEmail(email)
	if err != nil {
		return Asked{}, err
	}
	if email == acc.Email {
		return Asked{}, ErrSameAddress
	}
	return c.ask(ctx, confirmation.PurposeChangeEmail, email, from, &acc.ID)
}

func (c *Confirmations) ask(ctx context.Context, purpose confirmation.Purpose, email string, from Sender, owner *int) (Asked, error) {
	asked := Asked{Email: email, Link: rand.Text(), Browser: rand.Text(), Code: newCode()}
	now := c.now().UTC()
	// One after the other, so that what is counted stays true until the end.
	return asked, c.store.OneByOne(ctx, func(tx *ent.Tx) error {
		if err := withinBounds(ctx, tx, email, from, now); err != nil {
			return err
		}
		return tx.Confirmation.Create().SetPurpose(purpose).SetEmail(email).SetMailbox(mailbox(email)).
			SetSender(from.Network).SetWiderSender(from.Wider).SetNillableAccountID(owner).
			SetLinkHash(hashed(asked.Link)).SetBrowserHash(hashed(asked.Browser)).SetCodeHash(keyed(asked.Browser, asked.Code)).
			SetCreatedAt(now).SetExpiresAt(now.Add(ConfirmTime)).Exec(ctx)
	})
}

// withinBounds fails where one more message would be too many.
func withinBounds(ctx context.Context, tx *ent.Tx, email string, from Sender, now time.Time) error {
	recent := tx.Confirmation.Query().Where(sentWithin(messageWindow, now))
	to, err := recent.Clone().Where(confirmation.Mailbox(mailbox(email))).Count(ctx)
	if err != nil {
		return err
	}
	if to >= messagesToOne {
		return ErrMailboxFull
	}
	one, err := recent.Clone().Where(confirmation.Sender(from.Network)).Count(ctx)
	if err != nil {
		return err
	}
	wider, err := recent.Clone().Where(confirmation.WiderSender(from.Wider)).Count(ctx)
	if err != nil {
		return err
	}
	if one >= messagesFromOne || wider >= from.mostFromWider() {
		return ErrSenderBusy
	}
	return nil
}

// sentWithin matches the messages of the time before now. A clock may have been
// ahead when a message was sent: it counts if it is as far in the future, and
// not for as long as it takes the time to get there.
func sentWithin(window time.Duration, now time.Time) predicate.Confirmation {
	return confirmation.And(confirmation.CreatedAtGT(now.Add(-window)), confirmation.CreatedAtLT(now.Add(window)))
}

// Withdraw forgets a message that could not be sent: it counts for nobody.
func (c *Confirmations) Withdraw(ctx context.Context, asked Asked) error {
	_, err := c.store.Write.Confirmation.Delete().Where(confirmation.LinkHash(hashed(asked.Link))).Exec(ctx)
	return store.Explain(err)
}
