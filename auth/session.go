package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/internal/core/store"
)

const (
	// SessionTime is how long somebody stays signed in.
	SessionTime = 30 * 24 * time.Hour
	// clockSlack is how far in the future a session may have started: the
	// clock may have been set back since.
	clockSlack = 24 * time.Hour
)

// validAt matches sessions that are neither expired nor from a time when a
// clock was far ahead, which would last that much longer.
func validAt(now time.Time) predicate.Session {
	return session.And(session.ExpiresAtGT(now.UTC()), session.CreatedAtLT(now.UTC().Add(clockSlack)))
}

// Sessions are the browsers in which somebody has signed in.
type Sessions struct {
	store *store.Store
	now   func() time.Time
}

// NewSessions keeps them in a database.
func NewSessions(s *store.Store) *Sessions { return &Sessions{store: s, now: time.Now} }

// Find is the account that a browser's token is signed in to, or nil.
func (s *Sessions) Find(ctx context.Context, token string) (*ent.Account, error) {
	if token == "" {
		return nil, nil
	}
	found, err := s.store.Current().Session.Query().
		Where(session.ID(hashed(token)), validAt(s.now())).WithAccount().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, store.Explain(err)
	}
	return found.Edges.Account, nil
}

// Of lists an account's, newest first.
func (s *Sessions) Of(ctx context.Context, acc *ent.Account) ([]*ent.Session, error) {
	all, err := s.store.Current().Session.Query().Where(session.AccountID(acc.ID), validAt(s.now())).
		Order(ent.Desc(session.FieldCreatedAt)).All(ctx)
	return all, store.Explain(err)
}

// End signs one browser out.
func (s *Sessions) End(ctx context.Context, token string) error {
	_, err := s.store.Write.Session.Delete().Where(session.ID(hashed(token))).Exec(ctx)
	return store.Explain(err)
}

// EndAll signs an account out of every browser. Messages that could sign in
// again end, too.
func (s *Sessions) EndAll(ctx context.Context, acc *ent.Account) error {
	return s.store.Update(ctx, func(tx *ent.Tx) error {
		if _, err := tx.Session.Delete().Where(session.AccountID(acc.ID)).Exec(ctx); err != nil {
			return err
		}
		return endMessages(ctx, tx, acc, s.now().UTC())
	})
}

// startSession signs a browser in, and is the only place where its token is
// to be had.
func startSession(ctx context.Context, sessions *ent.SessionClient, account int, now time.Time) (string, error) {
	token := rand.Text()
	return token, sessions.Create().SetID(hashed(token)).SetAccountID(account).
		SetCreatedAt(now).SetExpiresAt(now.Add(SessionTime)).Exec(ctx)
}

// hashed is what we keep of a token. A token is long and random: no salt
// makes it harder to guess.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
