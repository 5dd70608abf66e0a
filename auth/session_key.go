package auth

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"

	"palmares/ent"
	"palmares/ent/session"
	"palmares/internal/core/store"
)

// Key is what a signed-in browser calls the API with in its own account's
// name, as long as it is signed in; "" where nobody is. It is worked out from
// the browser's token, which it does not tell, so that every page gets the
// same one and we keep no secret.
func (s *Sessions) Key(ctx context.Context, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	found, err := s.store.Current().Session.Query().Where(session.ID(hashed(token)), validAt(s.now())).Only(ctx)
	if ent.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", store.Explain(err)
	}
	key := sessionKey(token)
	if found.KeyID == nil {
		err := s.store.Write.Session.UpdateOneID(found.ID).SetKeyID(key.ID).SetKeyHash(key.Hash()).Exec(ctx)
		if ent.IsNotFound(err) {
			return "", nil // it ended a moment ago
		}
		if err != nil {
			return "", store.Explain(err)
		}
	}
	return key.Text(), nil
}

// plenty of bytes for a key's letters, also where some are drawn again.
const plenty = 512

// sessionKey is the key of a browser's token.
func sessionKey(token string) Key {
	drawn, err := hkdf.Key(sha256.New, []byte(token), nil, "palmares session key", plenty)
	if err != nil {
		panic(err) // the length above is wrong
	}
	from := bytes.NewReader(drawn)
	return Key{drawText(from, idLength), drawText(from, secretLength)}
}
