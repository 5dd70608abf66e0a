package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/apikey"
	"palmares/ent/predicate"
	"palmares/internal/core/problem"
)

// A key consists of a prefix, a public id, a secret of 190 bits, and a checksum
// that detects a mistyped key without a database query.
const (
	keyPrefix    = "pal_"
	idLength     = 12
	secretLength = 32
	checkLength  = 6

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	// MaxKeyName is the maximum length of a key's name, in characters.
	MaxKeyName = 80
	// maxKeysPerDay also counts revoked keys, which are stored for a while.
	maxKeysPerDay = 30
	// revokedKeyRetention is how long owners can see that a key was revoked.
	revokedKeyRetention = 90 * 24 * time.Hour
)

// Key is a well-formed API key. The Keyring decides whether it is valid.
type Key struct {
	ID     string
	secret string
}

// NewKey generates a random key.
func NewKey() Key { return readKey(rand.Reader) }

func readKey(random io.Reader) Key {
	return Key{readText(random, idLength), readText(random, secretLength)}
}

// String leaves the secret out, so that printing a key never reveals it.
func (k Key) String() string { return keyPrefix + k.ID + "…" }

// Text returns the complete key, which its owner sees once.
func (k Key) Text() string { return tokenText(keyPrefix, k.ID+k.secret) }

// Hash returns the hash of the secret, which is all that is stored of it.
func (k Key) Hash() []byte {
	sum := sha256.Sum256([]byte(k.secret))
	return sum[:]
}

// matches compares the secret with a stored hash in constant time.
func (k Key) matches(hash []byte) bool { return subtle.ConstantTimeCompare(k.Hash(), hash) == 1 }

// ParseKey parses the text of a key and verifies its checksum.
func ParseKey(text string) (Key, bool) {
	body, ok := parseToken(keyPrefix, idLength+secretLength, text)
	if !ok {
		return Key{}, false
	}
	return Key{body[:idLength], body[idLength:]}, true
}

// parseAccessToken parses an access token of an application. Its id includes the prefix,
// so that it differs from those of keys.
func parseAccessToken(text string) (Key, bool) {
	body, ok := parseToken(accessPrefix, idLength+secretLength, text)
	if !ok {
		return Key{}, false
	}
	return Key{text[:len(accessPrefix)+idLength], body[idLength:]}, true
}

// tokenText adds a prefix and a checksum to the body of a key or token.
func tokenText(prefix, body string) string { return prefix + body + checksum(body) }

// parseToken returns the body of a key or token, which has a fixed length. Its id is looked
// up in the database, which reports an error for invalid UTF-8.
func parseToken(prefix string, length int, text string) (body string, ok bool) {
	if len(text) != len(prefix)+length+checkLength || !strings.HasPrefix(text, prefix) {
		return "", false
	}
	body, check := text[len(prefix):len(prefix)+length], text[len(prefix)+length:]
	return body, strings.Trim(body, base62) == "" && equal(checksum(body), check)
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	digits := make([]byte, checkLength)
	for i := range digits {
		digits[checkLength-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(digits)
}

// readText turns random bytes into evenly distributed base62 digits. It skips
// bytes that would make some digits more likely than others.
func readText(random io.Reader, length int) string {
	const fair = 256 - 256%62
	text := make([]byte, 0, length)
	buffer := make([]byte, length)
	for len(text) < length {
		if _, err := io.ReadFull(random, buffer); err != nil {
			panic(err) // rand.Reader never fails, and sessionKey derives enough bytes
		}
		for _, b := range buffer {
			if int(b) < fair && len(text) < length {
				text = append(text, base62[b%62])
			}
		}
	}
	return string(text)
}

var oldestFirst = []apikey.OrderOption{apikey.ByCreatedAt(), apikey.ByID()}

// Keys returns an account's keys, oldest first, including revoked ones.
func (a *Accounts) Keys(ctx context.Context, acc *ent.Account) ([]*ent.APIKey, error) {
	return a.store.Read.APIKey.Query().Where(apikey.AccountID(acc.ID)).Order(oldestFirst...).All(ctx)
}

// Unrevoked returns the keys that were not revoked.
func Unrevoked(keys []*ent.APIKey) []*ent.APIKey {
	return slices.DeleteFunc(slices.Clone(keys), func(key *ent.APIKey) bool { return key.RevokedAt != nil })
}

// NewestKey returns when the last of an account's keys was created, in the
// microseconds that PostgreSQL stores; 0 without keys.
func NewestKey(keys []*ent.APIKey) int64 {
	if len(keys) == 0 {
		return 0
	}
	return keys[len(keys)-1].CreatedAt.UnixMicro()
}

// Suspended returns the ids of the keys that exceed the plan. The oldest keys
// remain active. The keys must be in the order of Accounts.Keys.
func Suspended(plan Plan, keys []*ent.APIKey) map[string]bool {
	unrevoked := Unrevoked(keys)
	suspended := map[string]bool{}
	for _, key := range unrevoked[min(plan.Terms().Keys, len(unrevoked)):] {
		suspended[key.ID] = true
	}
	return suspended
}

// CreateKey creates a key and returns its text, which is not stored.
func (a *Accounts) CreateKey(ctx context.Context, acc *ent.Account, name string) (string, *ent.APIKey, error) {
	return a.CreateKeyOnce(ctx, acc, name, math.MaxInt64)
}

// validName returns a name without surrounding spaces, and whether it is one line of at
// most MaxKeyName characters.
func validName(name string) (string, bool) {
	name = strings.TrimSpace(name)
	return name, utf8.ValidString(name) && utf8.RuneCountInString(name) <= MaxKeyName && !strings.ContainsFunc(name, unicode.IsControl)
}

// CreateKeyOnce creates a key, unless one was created after newest (see NewestKey).
// The form sends newest back, so that submitting it twice creates only one key:
// browsers show only the last response, and a key is shown only once.
func (a *Accounts) CreateKeyOnce(
	ctx context.Context, acc *ent.Account, name string, newest int64,
) (text string, created *ent.APIKey, err error) {
	name, ok := validName(name)
	if !ok {
		return "", nil, problem.New(problem.BadInput, "The name of a key must be a single line of at most %d characters.", MaxKeyName)
	}
	key := NewKey()
	now := a.now().UTC()
	// The account's row is locked, so that concurrent calls cannot exceed the limits.
	err = a.store.WithRowLock(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		owner, err := tx.Account.Get(ctx, acc.ID)
		if err != nil {
			return err
		}
		keys, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID), apikey.RevokedAtIsNil()).
			Order(oldestFirst...).All(ctx)
		if err != nil {
			return err
		}
		if NewestKey(keys) > newest {
			return problem.New(problem.BadInput, "A key was created after you opened this form, or you submitted the form twice. "+
				"No other key was created. Keys are shown only once: if you did not copy the newest key, revoke it and create another.")
		}
		if terms := Plan(owner.Plan).Terms(); len(keys) >= terms.Keys {
			return problem.New(problem.BadInput, "The %s plan includes %d keys, and all of them are in use. Revoke one first.", terms.Name, terms.Keys)
		}
		// A clock may have been ahead when a key was created, so dates have two limits.
		recent, err := tx.APIKey.Query().Where(apikey.AccountID(acc.ID),
			apikey.CreatedAtGT(now.Add(-24*time.Hour)), apikey.CreatedAtLT(now.Add(24*time.Hour))).Count(ctx)
		if err != nil {
			return err
		}
		if recent >= maxKeysPerDay {
			return problem.New(problem.TooMany, "An account can create at most %d keys within 24 hours. Try again later.", maxKeysPerDay)
		}
		created, err = tx.APIKey.Create().SetID(key.ID).SetAccountID(acc.ID).SetName(name).SetSecretHash(key.Hash()).SetCreatedAt(now).Save(ctx)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	return key.Text(), created, nil
}

// RevokeOwned revokes a key if it belongs to the account.
func (a *Accounts) RevokeOwned(ctx context.Context, acc *ent.Account, id string) error {
	return a.revoke(ctx, apikey.ID(id), apikey.AccountID(acc.ID))
}

// Revoke revokes a key, given its public id or its complete text.
func (a *Accounts) Revoke(ctx context.Context, id string) error {
	if key, ok := ParseKey(id); ok {
		id = key.ID
	}
	return a.revoke(ctx, apikey.ID(id))
}

func (a *Accounts) revoke(ctx context.Context, where ...predicate.APIKey) error {
	n, err := a.store.Write.APIKey.Update().Where(where...).Where(apikey.RevokedAtIsNil()).SetRevokedAt(a.now().UTC()).Save(ctx)
	if err == nil && n == 0 {
		return problem.New(problem.NotFound, "This key does not exist or was already revoked.")
	}
	return err
}
