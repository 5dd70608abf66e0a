package auth

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"palmares/ent"
	"palmares/ent/apikey"
	"palmares/ent/session"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// A cached key is refreshed after freshFor: in the background at first, and
	// by a request that waits after staleFor, because every server must refuse
	// a revoked key within 2 seconds.
	freshFor      = time.Second
	staleFor      = 1900 * time.Millisecond
	lookupTimeout = 800 * time.Millisecond // if a lookup takes longer, the cached key is used
	firstFactor   = 3                      // multiplies the timeout for a key that is not cached
	maxKeys       = 10_000
	maxUnknown    = 10_000 // ids without a key, cached separately so that they evict no key
	lastUsedEvery = time.Minute
)

var (
	errUnknown   = problem.New(problem.Unauthenticated, "This API key does not exist. Check the key, or create a new one in your account.")
	errRevoked   = problem.New(problem.Unauthenticated, "This API key was revoked. Create a new one in your account.")
	errToken     = problem.New(problem.Unauthenticated, "This access token has expired or was revoked. Refresh it, or connect the application again.")
	errElsewhere = problem.New(problem.Unauthenticated, "This access token is for another resource. Request a token for this one.")
	errSuspended = problem.New(problem.Unauthenticated, "This API key is suspended: the account has more keys than its plan includes, and only the oldest remain active.")
)

// Rules say how requests may send keys. Each may be nil.
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
}

// Keyring identifies callers by their API keys, which it caches.
type Keyring struct {
	rules   Rules
	store   *store.Store
	log     *slog.Logger
	now     func() time.Time
	timeout time.Duration // of a lookup
	keys    *otter.Cache[string, *cachedKey]
	unknown *otter.Cache[string, int64] // when an id without a key was looked up, in nanoseconds
	lookups singleflight.Group
	used    sync.Map // last uses to be saved, by key id
}

// cachedKey is a key as it was in the database at its last lookup.
type cachedKey struct {
	hash       []byte // nil for an id without a key
	caller     Caller
	refusal    error        // nil for a valid key
	resource   string       // of an access token, or ""
	expires    int64        // when an access token expires, in seconds; 0 for keys
	checked    atomic.Int64 // when it was looked up, in nanoseconds
	recorded   atomic.Int64 // when its use was last recorded
	refreshing atomic.Bool
}

// NewKeyring returns a keyring for the keys of a database.
func NewKeyring(s *store.Store, log *slog.Logger, rules Rules) *Keyring {
	return &Keyring{
		rules: rules, store: s, log: log, now: time.Now, timeout: lookupTimeout,
		keys:    otter.Must(&otter.Options[string, *cachedKey]{MaximumSize: maxKeys}),
		unknown: otter.Must(&otter.Options[string, int64]{MaximumSize: maxUnknown}),
	}
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
	if err != nil || !sent {
		return Caller{Plan: Anonymous}, err
	}
	found, err := k.find(r.Context(), key.ID, true)
	if err != nil {
		return Caller{}, err
	}
	if !key.matches(found.hash) {
		if strings.HasPrefix(key.ID, accessPrefix) {
			return Caller{}, errToken
		}
		return Caller{}, errUnknown
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
	found, err := k.find(ctx, caller.Key, false)
	if err != nil {
		return caller, nil
	}
	return found.caller, k.refusal(found)
}

// ForgetAccount drops an account's keys from the cache, so that a change takes
// effect on this server immediately. Other servers notice it within 2 seconds.
func (k *Keyring) ForgetAccount(id int) {
	for key, cached := range k.keys.All() {
		if cached.caller.Account == id {
			k.keys.Invalidate(key)
		}
	}
}

// find returns a key from the cache or the database. If a cached key cannot be
// refreshed, it remains valid. With background, a key that is not yet stale is
// refreshed without waiting.
func (k *Keyring) find(ctx context.Context, id string, background bool) (*cachedKey, error) {
	cached, ok := k.keys.GetIfPresent(id)
	if !ok {
		// Peek does not refresh the entry, so repeating an id does not keep it cached.
		if checked, ok := k.unknown.GetIfPresent(id); ok && k.age(checked) < freshFor {
			return &cachedKey{refusal: errUnknown}, nil
		}
		// Without a cached key, waiting is better than an error: on a busy machine, a
		// server that has just started needs longer.
		found, err := k.lookUp(ctx, id, firstFactor*k.timeout)
		if err != nil {
			k.log.ErrorContext(ctx, "key lookup failed", "cause", err, "request_id", problem.RequestID(ctx))
			return nil, problem.New(problem.Unavailable, "API keys cannot be verified at the moment. Try again in a minute.")
		}
		k.cache(id, found)
		return found, nil
	}
	switch age := k.age(cached.checked.Load()); {
	case age < freshFor:
		return cached, nil
	case background && age < staleFor:
		if cached.refreshing.CompareAndSwap(false, true) {
			go k.refresh(context.WithoutCancel(ctx), id, cached)
		}
		return cached, nil
	}
	return k.refresh(ctx, id, cached), nil
}

// cache clones the id, which would otherwise retain the header it is part of.
func (k *Keyring) cache(id string, found *cachedKey) {
	id = strings.Clone(id)
	if found.hash == nil {
		k.unknown.Set(id, found.checked.Load())
		k.keys.Invalidate(id)
		return
	}
	k.keys.Set(id, found)
}

// age returns the time since a lookup, or staleFor if the clock was set back.
func (k *Keyring) age(checked int64) time.Duration {
	age := time.Duration(k.now().UnixNano() - checked)
	if age < 0 {
		return staleFor
	}
	return age
}

func (k *Keyring) refresh(ctx context.Context, id string, cached *cachedKey) *cachedKey {
	defer cached.refreshing.Store(false)
	fresh, err := k.lookUp(ctx, id, k.timeout)
	if err != nil {
		cached.checked.Store(k.now().UnixNano()) // retry in a second, not with every request
		return cached
	}
	fresh.recorded.CompareAndSwap(0, cached.recorded.Load())
	if latest, ok := k.keys.GetIfPresent(id); ok && latest == cached { // unless ForgetAccount was called meanwhile
		k.cache(id, fresh)
	}
	return fresh
}

// lookUp reads a key from the database, once for concurrent requests. It has a
// timer of its own because an unresponsive database ignores deadlines.
func (k *Keyring) lookUp(ctx context.Context, id string, timeout time.Duration) (*cachedKey, error) {
	lookup := k.lookups.DoChan(id, func() (_ any, err error) {
		// The first request may be canceled while others wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		defer func() { // singleflight would end the program
			if panicked := recover(); panicked != nil {
				err = fmt.Errorf("key lookup panicked: %v", panicked)
			}
		}()
		return k.query(ctx, id)
	})
	select {
	case result := <-lookup:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*cachedKey), nil
	case <-time.After(timeout):
		return nil, context.DeadlineExceeded
	}
}

// query reads a key of an account or of a session, or an access token.
func (k *Keyring) query(ctx context.Context, id string) (*cachedKey, error) {
	found := &cachedKey{refusal: errUnknown}
	found.checked.Store(k.now().UnixNano())
	if accessID, isToken := strings.CutPrefix(id, accessPrefix); isToken {
		return found, k.queryToken(ctx, id, accessID, found)
	}
	row, err := k.store.Keys.APIKey.Query().Where(apikey.ID(id)).WithAccount(func(account *ent.AccountQuery) {
		account.WithKeys(func(keys *ent.APIKeyQuery) { keys.Where(apikey.RevokedAtIsNil()).Order(oldestFirst...) })
	}).Only(ctx)
	if ent.IsNotFound(err) {
		row, err := k.store.Keys.Session.Query().Where(session.KeyID(id), validAt(k.now())).WithAccount().Only(ctx)
		if err == nil {
			found.set(id, row.KeyHash, row.Edges.Account)
			found.caller.Browser = true
		}
		return found, ent.MaskNotFound(err)
	}
	if err != nil {
		return nil, err
	}
	found.set(id, row.SecretHash, row.Edges.Account)
	switch {
	case found.hash == nil:
	case row.RevokedAt != nil:
		found.refusal = errRevoked
	case Suspended(found.caller.Plan, row.Edges.Account.Edges.Keys)[id]:
		found.refusal = errSuspended
	}
	return found, nil
}

func (k *Keyring) queryToken(ctx context.Context, id, accessID string, found *cachedKey) error {
	g, err := readGrant(ctx, k.store.Keys, "access_id = $1", accessID)
	if err != nil || g == nil {
		return err
	}
	acc, err := k.store.Keys.Account.Get(ctx, g.account)
	if err != nil {
		return ent.MaskNotFound(err) // not found: it was deleted between two statements
	}
	hash, err := hex.DecodeString(g.accessHash)
	if err != nil {
		return err
	}
	found.set(id, hash, acc)
	found.caller.PrivateQueries = g.PrivateQueries
	found.caller.Application, found.resource, found.expires = g.UsageKey(), g.Resource, g.accessExpires
	return nil
}

// set fills in a key, unless its account was deleted between two statements.
func (c *cachedKey) set(id string, hash []byte, acc *ent.Account) {
	if acc != nil {
		c.hash, c.refusal = hash, nil
		c.caller = CallerOf(acc, id)
	}
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
	accessID, isToken := strings.CutPrefix(id, accessPrefix)
	if !isToken {
		return k.store.Write.APIKey.Update().Where(apikey.ID(id)).SetLastUsedAt(at.UTC()).Exec(ctx)
	}
	return k.store.Update(ctx, func(tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE oauth_grants SET last_used_at = $1 WHERE access_id = $2", at.Unix(), accessID)
		return err
	})
}
