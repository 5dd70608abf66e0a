package auth

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/internal/core/store"
)

const (
	// SessionLifetime is how long a browser stays signed in.
	SessionLifetime = 30 * 24 * time.Hour
	// clockTolerance applies to sessions that started before the clock was set back.
	clockTolerance = 24 * time.Hour
)

// validAt matches sessions that have not expired. Sessions that started while
// a clock was far ahead would last too long and are not matched.
func validAt(now time.Time) predicate.Session {
	return session.And(session.ExpiresAtGT(now.UTC()), session.CreatedAtLT(now.UTC().Add(clockTolerance)))
}

// Sessions manages the browsers that are signed in.
type Sessions struct {
	store *store.Store
	now   func() time.Time
}

// NewSessions returns the sessions of a database.
func NewSessions(s *store.Store) *Sessions { return &Sessions{store: s, now: time.Now} }

// Find returns the account that a session token belongs to, or nil.
func (s *Sessions) Find(ctx context.Context, token string) (*ent.Account, error) {
	found, err := s.find(ctx, token)
	if err != nil || found == nil {
		return nil, err
	}
	return found.Edges.Account, nil
}

func (s *Sessions) find(ctx context.Context, token string) (*ent.Session, error) {
	if token == "" {
		return nil, nil
	}
	found, err := s.store.Current().Session.Query().Where(session.ID(hashToken(token)), validAt(s.now())).WithAccount().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return found, store.Explain(err)
}

// List returns an account's sessions, newest first.
func (s *Sessions) List(ctx context.Context, acc *ent.Account) ([]*ent.Session, error) {
	all, err := s.store.Current().Session.Query().Where(session.AccountID(acc.ID), validAt(s.now())).
		Order(ent.Desc(session.FieldCreatedAt)).All(ctx)
	return all, store.Explain(err)
}

// End ends one session.
func (s *Sessions) End(ctx context.Context, token string) error {
	_, err := s.store.Write.Session.Delete().Where(session.ID(hashToken(token))).Exec(ctx)
	return store.Explain(err)
}

// EndAll ends all sessions of an account and invalidates its sign-in emails.
func (s *Sessions) EndAll(ctx context.Context, acc *ent.Account) error {
	return s.store.Update(ctx, func(tx *ent.Tx) error {
		if _, err := tx.Session.Delete().Where(session.AccountID(acc.ID)).Exec(ctx); err != nil {
			return err
		}
		return invalidateConfirmations(ctx, tx, acc, s.now().UTC())
	})
}

// Key returns the key with which a signed-in browser calls the API as its
// account, or "" for an invalid token. It is derived from the token, which it
// does not reveal: every page gets the same key, and no secret is stored.
func (s *Sessions) Key(ctx context.Context, token string) (string, error) {
	found, err := s.find(ctx, token)
	if err != nil || found == nil {
		return "", err
	}
	key := sessionKey(token)
	if found.KeyID == nil {
		err := s.store.Write.Session.UpdateOneID(found.ID).SetKeyID(key.ID).SetKeyHash(key.Hash()).Exec(ctx)
		if ent.IsNotFound(err) {
			return "", nil // ended concurrently
		}
		if err != nil {
			return "", store.Explain(err)
		}
	}
	return key.Text(), nil
}

func sessionKey(token string) Key {
	const enough = 512 // bytes, although readText skips some
	derived, err := hkdf.Key(sha256.New, []byte(token), nil, "palmares session key", enough)
	if err != nil {
		panic(err) // only for an invalid length
	}
	return readKey(bytes.NewReader(derived))
}

// hashToken needs no salt, because tokens are long and random.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
