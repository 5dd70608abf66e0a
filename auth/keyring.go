package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/ent/apikey"
	"palmares/ent/downloadtoken"
	"palmares/ent/session"
	"palmares/internal/core/cache"
	"palmares/internal/core/lookup"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// keysSize is the memory for cached keys.
	keysSize = 12 << 20
	// keyWeight is the approximate size of one, and of its account.
	keyWeight     = 500
	lastUsedEvery = time.Minute
)

var (
	errUnknown   = problem.New(problem.Unauthenticated, "This API key does not exist. Check the key, or create a new one in your account.")
	errRevoked   = problem.New(problem.Unauthenticated, "This API key was revoked. Create a new one in your account.")
	errToken     = problem.New(problem.Unauthenticated, "This access token has expired or was revoked. Refresh it, or connect the application again.")
	errElsewhere = problem.New(problem.Unauthenticated, "This access token is for another resource. Request a token for this one.")
	errSuspended = problem.New(problem.Unauthenticated, "This API key is suspended: the account has more keys than its plan includes, and only the oldest remain active.")
)

// Rules say how requests may send keys and tokens. Only SavedQuery and IsDownload are
// required, for requests with a token.
type Rules struct {
	// AllowBasic reports whether a request may send the key as the user name of HTTP
	// Basic, for clients that cannot send it otherwise. If it is nil, none may.
	AllowBasic func(*http.Request) bool
	// Accepts reports whether a request may send an access token for a resource. If it is
	// nil, no access tokens are accepted.
	Accepts func(resource string, r *http.Request) bool
	// Challenge returns the WWW-Authenticate header of a request that is refused, or "" for
	// that of all other errors.
	Challenge func(*http.Request) string
	// SavedQuery returns the saved query that a request is for, by its handle and name or by
	// its hash, or "". IsDownload reports whether download tokens give access to a request.
	SavedQuery func(*http.Request) string
	IsDownload func(*http.Request) bool
}

// Keyring identifies callers by their API keys, which it caches.
type Keyring struct {
	rules Rules
	store *store.Store
	log   *slog.Logger
	now   func() time.Time
	keys  *lookup.Table[*cachedKey]
	used  sync.Map // last uses to be saved, by key id
}

// cachedKey is a key as it was in the database at its last lookup.
type cachedKey struct {
	hash     []byte
	caller   Caller
	refusal  error         // nil for a valid key
	resource string        // of an access token, or ""
	expires  int64         // when an access token expires, in seconds; 0 for keys
	queries  []string      // that the token of a saved query gives access to, see Rules.SavedQuery
	recorded *atomic.Int64 // when its use was last recorded
}

// NewKeyring returns a keyring for the keys of a database.
func NewKeyring(s *store.Store, log *slog.Logger, rules Rules) *Keyring {
	k := &Keyring{rules: rules, store: s, log: log, now: time.Now}
	k.keys = lookup.New(cache.New(keysSize, nil, log), "keys", k.read)
	k.keys.CacheMissing()
	k.keys.Now = func() time.Time { return k.now() }
	return k
}

var notShared = []string{"private, no-store"}

// Identify is the middleware that adds the caller to the context.
func (k *Keyring) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := k.caller(r)
		if err != nil {
			k.refuse(w, r, err)
			return
		}
		if caller.Key != "" { // otherwise CallerFrom returns an anonymous caller
			w.Header()["Cdn-Cache-Control"] = notShared // the response is this caller's own
			r = r.WithContext(WithCaller(r.Context(), caller))
		}
		next.ServeHTTP(w, r)
	})
}

// refuse sends an error, with the challenge of the resource if there is one.
func (k *Keyring) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if k.rules.Challenge != nil && problem.Of(err).Code == problem.Unauthenticated {
		if challenge := k.rules.Challenge(r); challenge != "" {
			w = &challenger{w, challenge}
		}
	}
	problem.Refuse(w, r, err)
}

// challenger replaces the WWW-Authenticate header of an error.
type challenger struct {
	http.ResponseWriter
	challenge string
}

// WriteHeader implements http.ResponseWriter.
func (c *challenger) WriteHeader(status int) {
	c.Header().Set("WWW-Authenticate", c.challenge)
	c.ResponseWriter.WriteHeader(status)
}

func (k *Keyring) caller(r *http.Request) (Caller, error) {
	key, sent, err := keyOf(r, k.rules.AllowBasic != nil && k.rules.AllowBasic(r))
	switch {
	case err != nil:
		return Caller{}, err
	case !sent:
		return k.tokenOwner(r)
	}
	found, err := k.keys.Get(r.Context(), key.ID)
	switch {
	case errors.Is(err, lookup.ErrNotFound), err == nil && !key.matches(found.hash):
		return Caller{}, unknown(key.ID)
	case err != nil:
		k.log.ErrorContext(r.Context(), "key lookup failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		return Caller{}, problem.New(problem.Unavailable, "API keys cannot be verified at the moment. Try again in a minute.")
	}
	if found.expires > 0 && (k.rules.Accepts == nil || !k.rules.Accepts(found.resource, r)) {
		return Caller{}, errElsewhere
	}
	refusal := k.refusal(found)
	if refusal == nil {
		k.recordUse(key.ID, found)
	}
	return found.caller, refusal
}

// refusal returns why a key is not valid now, or nil.
func (k *Keyring) refusal(found *cachedKey) error {
	if found.expires > 0 && k.now().Unix() >= found.expires {
		return errToken
	}
	return found.refusal
}

// Recheck identifies the caller of a long-lived response again: the plan may have
// changed, or the key may have been revoked. It looks the key up at most once a
// second. While lookups fail, the caller stays the same.
func (k *Keyring) Recheck(ctx context.Context, caller Caller) (Caller, error) {
	if caller.Key == "" {
		return caller, nil
	}
	found, err := k.keys.GetFresh(ctx, caller.Key)
	switch {
	case err == nil:
		return found.caller, k.refusal(found)
	case errors.Is(err, lookup.ErrNotFound):
		return Caller{}, unknown(caller.Key)
	}
	return caller, nil
}

// ForgetAccount drops an account's keys from the cache, so that a change takes
// effect on this server immediately. Other servers notice it within 2 seconds.
func (k *Keyring) ForgetAccount(id int) {
	k.keys.Forget(func(key *cachedKey) bool { return key.caller.Account == id })
}

// unknown returns the error for a key that does not exist.
func unknown(id string) error {
	if strings.HasPrefix(id, accessPrefix) {
		return errToken
	}
	return errUnknown
}

// read reads a key. It keeps the time of the last recorded use.
func (k *Keyring) read(ctx context.Context, id string, last *cachedKey) (*cachedKey, int, error) {
	found, err := k.query(ctx, id)
	if found != nil && last != nil {
		found.recorded = last.recorded
	}
	return found, keyWeight, err
}

// query reads a key of an account or of a session, or a token.
func (k *Keyring) query(ctx context.Context, id string) (*cachedKey, error) {
	if accessID, isToken := strings.CutPrefix(id, accessPrefix); isToken {
		return k.queryToken(ctx, id, accessID)
	}
	if hash, isToken := strings.CutPrefix(id, queryTokenPrefix); isToken {
		return k.queryQueryToken(ctx, hash)
	}
	if hash, isToken := strings.CutPrefix(id, downloadTokenPrefix); isToken {
		return k.queryDownloadToken(ctx, hash)
	}
	row, err := k.store.Keys.APIKey.Query().Where(apikey.ID(id)).WithAccount(func(account *ent.AccountQuery) {
		account.WithKeys(func(keys *ent.APIKeyQuery) { keys.Where(apikey.RevokedAtIsNil()).Order(oldestFirst...) })
	}).Only(ctx)
	if ent.IsNotFound(err) {
		row, err := k.store.Keys.Session.Query().Where(session.KeyID(id), validAt(k.now())).WithAccount().Only(ctx)
		if err != nil {
			return nil, notFound(err)
		}
		found, err := newCachedKey(id, row.KeyHash, row.Edges.Account)
		if err == nil {
			found.caller.Browser = true
		}
		return found, err
	}
	if err != nil {
		return nil, err
	}
	found, err := newCachedKey(id, row.SecretHash, row.Edges.Account)
	switch {
	case err != nil:
	case row.RevokedAt != nil:
		found.refusal = errRevoked
	case Suspended(found.caller.Plan, row.Edges.Account.Edges.Keys)[id]:
		found.refusal = errSuspended
	}
	return found, err
}

func (k *Keyring) queryToken(ctx context.Context, id, accessID string) (*cachedKey, error) {
	g, err := readGrant(ctx, k.store.Keys, "access_id = $1", accessID)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, lookup.ErrNotFound
	}
	acc, err := k.store.Keys.Account.Get(ctx, g.account)
	if err != nil {
		return nil, notFound(err)
	}
	hash, err := hex.DecodeString(g.accessHash)
	if err != nil {
		return nil, err
	}
	found, err := newCachedKey(id, hash, acc)
	if err == nil {
		found.caller.PrivateQueries = g.PrivateQueries
		found.caller.Application, found.resource, found.expires = g.UsageKey(), g.Resource, g.accessExpires
	}
	return found, err
}

// notFound returns lookup.ErrNotFound for ent's error.
func notFound(err error) error {
	if ent.IsNotFound(err) {
		return lookup.ErrNotFound
	}
	return err
}

// newCachedKey returns a valid key, unless its account was deleted between two
// statements.
func newCachedKey(id string, hash []byte, acc *ent.Account) (*cachedKey, error) {
	if acc == nil {
		return nil, lookup.ErrNotFound
	}
	return &cachedKey{hash: hash, caller: CallerOf(acc, id), recorded: new(atomic.Int64)}, nil
}

// recordUse records that a key was used, at most once a minute.
func (k *Keyring) recordUse(id string, found *cachedKey) {
	now := k.now()
	last := found.recorded.Load()
	due := time.Duration(now.UnixNano()-last).Abs() >= lastUsedEvery
	if due && found.recorded.CompareAndSwap(last, now.UnixNano()) {
		k.used.Store(id, now)
	}
}

// SaveLastUsed saves when keys were last used. After an error, it can be repeated.
func (k *Keyring) SaveLastUsed(ctx context.Context) error {
	for id, at := range k.used.Range {
		err := k.saveLastUsed(ctx, id.(string), at.(time.Time))
		if err != nil {
			return err
		}
		k.used.CompareAndDelete(id, at) // unless the key was used again
	}
	return nil
}

func (k *Keyring) saveLastUsed(ctx context.Context, id string, at time.Time) error {
	if hash, isToken := strings.CutPrefix(id, downloadTokenPrefix); isToken {
		return k.store.Write.DownloadToken.Update().Where(downloadtoken.TokenHash(hash)).SetLastUsedAt(at.UTC()).Exec(ctx)
	}
	accessID, isToken := strings.CutPrefix(id, accessPrefix)
	if !isToken {
		return k.store.Write.APIKey.Update().Where(apikey.ID(id)).SetLastUsedAt(at.UTC()).Exec(ctx)
	}
	return k.store.Update(ctx, func(tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE oauth_grants SET last_used_at = $1 WHERE access_id = $2", at.Unix(), accessID)
		return err
	})
}
