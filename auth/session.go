package auth

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/session"
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

// SessionAccount returns the account that a session token belongs to, or nil.
func (a *Accounts) SessionAccount(ctx context.Context, token string) (*ent.Account, error) {
	found, err := a.findSession(ctx, token)
	if err != nil || found == nil {
		return nil, err
	}
	return found.Edges.Account, nil
}

func (a *Accounts) findSession(ctx context.Context, token string) (*ent.Session, error) {
	if token == "" {
		return nil, nil
	}
	found, err := a.store.Read.Session.Query().Where(session.ID(hashToken(token)), validAt(a.now())).WithAccount().Only(ctx)
	return found, ent.MaskNotFound(err)
}

// Sessions returns an account's sessions, newest first.
func (a *Accounts) Sessions(ctx context.Context, acc *ent.Account) ([]*ent.Session, error) {
	return a.store.Read.Session.Query().Where(session.AccountID(acc.ID), validAt(a.now())).
		Order(ent.Desc(session.FieldCreatedAt)).All(ctx)
}

// EndSession ends one session.
func (a *Accounts) EndSession(ctx context.Context, token string) error {
	return deleteAll(ctx, a.store.Write.Session.Delete().Where(session.ID(hashToken(token))))
}

// EndSessions ends all sessions of an account and invalidates its sign-in emails.
func (a *Accounts) EndSessions(ctx context.Context, acc *ent.Account) error {
	return a.store.Update(ctx, func(tx *ent.Tx) error {
		if err := invalidateConfirmations(ctx, tx, acc, a.now().UTC()); err != nil {
			return err
		}
		return deleteAll(ctx, tx.Session.Delete().Where(session.AccountID(acc.ID)))
	})
}

// maxUserAgent is how many bytes of a User-Agent are stored. Those of browsers are
// shorter.
const maxUserAgent = 300

// storedUserAgent returns the part of a User-Agent that is stored: text that every
// database accepts.
func storedUserAgent(header string) string {
	if len(header) > maxUserAgent {
		header = header[:maxUserAgent]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return -1
		}
		return r
	}, header)
}

// SessionKey returns the API key of a signed-in browser, or "" for an invalid
// token. It is derived from the token, which it does not reveal: every page gets
// the same key, and no secret is stored.
func (a *Accounts) SessionKey(ctx context.Context, token string) (string, error) {
	found, err := a.findSession(ctx, token)
	if err != nil || found == nil {
		return "", err
	}
	key := sessionKey(token)
	if found.KeyID == nil {
		err := a.store.Write.Session.UpdateOneID(found.ID).SetKeyID(key.ID).SetKeyHash(key.Hash()).Exec(ctx)
		if err != nil {
			return "", ent.MaskNotFound(err) // not found: it ended concurrently
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
