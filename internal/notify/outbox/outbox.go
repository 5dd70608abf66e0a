// Package outbox stores emails about what happens to an account in the transaction that
// causes them, and sends them: each at least once, by any of several servers, and again
// after a crash. Emails with sign-in codes are not stored; package mail has them in memory.
package outbox

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"palmares/ent"
	"palmares/ent/notice"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

const (
	pollEvery = time.Second
	// lease is how long other servers leave a notice to the one that is sending it:
	// longer than an attempt takes.
	lease = time.Minute
	// The delay after a failed attempt doubles, from minDelay to maxDelay. After lifetime,
	// a notice that still cannot be sent is logged and dropped.
	minDelay, maxDelay = time.Minute, time.Hour
	lifetime           = 3 * 24 * time.Hour
)

// Add stores an email to be sent when the transaction is committed. Withdraw finds it by
// what it is about, which may be empty.
func Add(ctx context.Context, tx *ent.Tx, about string, msg mail.Message) error {
	return tx.Notice.Create().SetMessageID(rand.Text()).SetAbout(about).
		SetRecipient(msg.To).SetSubject(msg.Subject).SetText(msg.Text).SetHTML(msg.HTML).SetLink(msg.Link).
		SetNextAt(time.Now().UTC()).SetCreatedAt(time.Now().UTC()).Exec(ctx)
}

// Withdraw deletes the emails about something that are not sent yet.
func Withdraw(ctx context.Context, tx *ent.Tx, about string) error {
	_, err := tx.Notice.Delete().Where(notice.About(about)).Exec(ctx)
	return err
}

// Outbox sends what Add stored.
type Outbox struct {
	store *store.Store
	mail  *mail.Mailer
	log   *slog.Logger
	now   func() time.Time
}

// New returns the outbox of a database.
func New(s *store.Store, mailer *mail.Mailer, log *slog.Logger) *Outbox {
	return &Outbox{store: s, mail: mailer, log: log, now: time.Now}
}

// Run sends emails until ctx ends.
func (o *Outbox) Run(ctx context.Context) {
	tick := time.Tick(pollEvery)
	for healthy := true; ctx.Err() == nil; {
		err := o.Send(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			o.log.Warn("sending notices failed, will retry", "cause", err)
		}
		healthy = err == nil
		select {
		case <-ctx.Done():
		case <-tick:
		}
	}
}

// Send sends the emails that are due. An error is one of the database: those that the mail
// server does not accept are sent again later.
func (o *Outbox) Send(ctx context.Context) error {
	for {
		now := o.now().UTC()
		due, err := o.store.Read.Notice.Query().Where(notice.NextAtLTE(now)).Order(notice.ByNextAt(), notice.ByID()).First(ctx)
		if err != nil {
			return ent.MaskNotFound(err)
		}
		// Of several servers, the first to count the attempt makes it.
		leased, err := o.store.Write.Notice.Update().Where(notice.ID(due.ID), notice.Attempts(due.Attempts)).
			AddAttempts(1).SetNextAt(now.Add(lease)).Save(ctx)
		if err == nil && leased > 0 {
			err = o.attempt(ctx, due, now)
		}
		if err != nil {
			return err
		}
	}
}

func (o *Outbox) attempt(ctx context.Context, n *ent.Notice, now time.Time) error {
	err := o.mail.Send(ctx, mail.Message{ID: n.MessageID, To: n.Recipient, Subject: n.Subject, Text: n.Text, HTML: n.HTML, Link: n.Link})
	if ctx.Err() != nil && err != nil {
		return ctx.Err() // sent again when the lease has expired
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil && mail.IsTemporary(err) && now.Sub(n.CreatedAt) < lifetime {
		if n.Attempts == 0 {
			o.mail.LogRetry(n.Recipient, err)
		}
		delay := min(minDelay<<min(n.Attempts, 10), maxDelay)
		return o.store.Write.Notice.Update().Where(notice.ID(n.ID)).SetNextAt(now.Add(delay)).Exec(ctx)
	}
	if err != nil {
		o.mail.LogFailure(n.Recipient, err)
	}
	_, err = o.store.Write.Notice.Delete().Where(notice.ID(n.ID)).Exec(ctx)
	return err
}
