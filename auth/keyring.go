package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"palmares/ent"
	"palmares/ent/apikey"
	"palmares/ent/session"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// trustedFor is how long what is known of a key is taken for true; then it
	// is asked anew, and taken for true meanwhile, but not for long: a revoked
	// one must be refused everywhere within 2 seconds.
	trustedFor   = time.Second
	stillTrusted = 1900 * time.Millisecond
	// lookupTime bounds the wait for a database that does not answer; who was
	// known before is then still known.
	lookupTime = 800 * time.Millisecond
	keptKeys   = 10_000
	notedEvery = time.Minute
	// Ids that no key has are remembered apart from the keys, so that a flood
	// of them evicts no key: about 1 MB at most.
	keptUnknown = 10_000
)

// Keyring knows the keys that are in use.
type Keyring struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time
	wait  time.Duration // for the database
	known *lru.Cache[string, *knownKey]
	// unknown are the ids that no key had when they were last looked up, and
	// when that was, in nanoseconds.
	unknown *lru.Cache[string, int64]
	asked   singleflight.Group

	usedMu sync.Mutex
	used   map[string]time.Time // to be written down
}

// knownKey is a key as it last was in the database.
type knownKey struct {
	hash    []byte // nil for an id that nobody has
	caller  Caller
	refused *problem.Problem // why it opens nothing, if so
	checked atomic.Int64     // when, in nanoseconds
	noted   atomic.Int64     // when its use was last noted
	asking  atomic.Bool      // it is being asked anew
}

// NewKeyring reads keys from a database.
func NewKeyring(s *store.Store, log *slog.Logger) *Keyring {
	known, err := lru.New[string, *knownKey](keptKeys)
	if err != nil {
		panic(err) // the size above is wrong
	}
	unknown, err := lru.New[string, int64](keptUnknown)
	if err != nil {
		panic(err)
	}
	return &Keyring{store: s, log: log, now: time.Now, wait: lookupTime, known: known, unknown: unknown, used: map[string]time.Time{}}
}

var noSharing = []string{"private, no-store"}

// Identify is the link of the chain that says who is calling.
func (k *Keyring) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := k.caller(r)
		if err != nil {
			problem.Refuse(w, r, err)
			return
		}
		if caller.Key == "" { // who says nothing is anonymous
			next.ServeHTTP(w, r)
			return
		}
		// No cache between us may hand this answer to another caller.
		w.Header()["Cdn-Cache-Control"] = noSharing
		next.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), caller)))
	})
}

func (k *Keyring) caller(r *http.Request) (Caller, error) {
	key, sent, err := bearer(r)
	if err != nil || !sent {
		return Caller{Plan: Anonymous}, err
	}
	known, err := k.find(r.Context(), key.ID)
	switch {
	case err != nil:
		return Caller{}, err
	case known.hash == nil || !key.opens(known.hash):
		return Caller{}, errUnknown
	case known.refused != nil:
		return Caller{}, known.refused
	}
	k.note(key.ID, known)
	return known.caller, nil
}

// find is what is known of a key, asked anew every second. Nobody waits for
// that who uses a key all the time, and a database that does not answer leaves
// what was known before.
func (k *Keyring) find(ctx context.Context, id string) (*knownKey, error) {
	known, before := k.known.Get(id)
	if !before {
		if k.recentlyUnknown(id) {
			return noKey, nil
		}
		fresh, err := k.ask(ctx, id)
		if err != nil {
			k.log.ErrorContext(ctx, "a key could not be looked up", "cause", err, "request_id", problem.RequestID(ctx))
			return nil, problem.New(problem.Unavailable, "Keys cannot be checked at the moment.")
		}
		k.remember(id, fresh)
		return fresh, nil
	}
	switch age := k.age(known.checked.Load()); {
	case age < trustedFor:
		return known, nil
	case age < stillTrusted:
		if known.asking.CompareAndSwap(false, true) {
			go k.again(context.WithoutCancel(ctx), id, known)
		}
		return known, nil
	}
	return k.again(ctx, id, known), nil
}

// noKey is what is known of an id that no key has.
var noKey = &knownKey{}

// remember caches what a look-up found. The id is copied, or it would retain
// the whole header that it was sent in.
func (k *Keyring) remember(id string, found *knownKey) {
	id = strings.Clone(id)
	if found.hash == nil {
		k.unknown.Add(id, found.checked.Load())
		k.known.Remove(id)
		return
	}
	k.known.Add(id, found)
}

// recentlyUnknown reports whether an id was looked up within the last second
// and no key had it.
func (k *Keyring) recentlyUnknown(id string) bool {
	checked, there := k.unknown.Peek(id) // the oldest leave first, however often they are sent
	return there && k.age(checked) < trustedFor
}

// age is how long ago something was checked. After the clock was set back,
// everything is too old to be trusted.
func (k *Keyring) age(checked int64) time.Duration {
	age := time.Duration(k.now().UnixNano() - checked)
	if age < 0 {
		return stillTrusted
	}
	return age
}

// again asks anew for a key that was known before.
func (k *Keyring) again(ctx context.Context, id string, known *knownKey) *knownKey {
	defer known.asking.Store(false)
	fresh, err := k.ask(ctx, id)
	if err != nil {
		known.checked.Store(k.now().UnixNano()) // ask again in a second, not at each request
		return known
	}
	fresh.noted.CompareAndSwap(0, known.noted.Load())
	if latest, there := k.known.Peek(id); there && latest == known { // and was not forgotten meanwhile
		k.remember(id, fresh)
	}
	return fresh
}

// ask looks a key up, once for all who want to know at the same time, and
// waits no longer than it should: a frozen database does not heed a deadline.
func (k *Keyring) ask(ctx context.Context, id string) (*knownKey, error) {
	looking := k.asked.DoChan(id, func() (any, error) {
		// Whoever asked first may go away; the others still want to know.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.wait)
		defer cancel()
		return k.survive(ctx, id)
	})
	patience := time.NewTimer(k.wait)
	defer patience.Stop()
	select {
	case result := <-looking:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*knownKey), nil
	case <-patience.C:
		return nil, context.DeadlineExceeded
	}
}

// survive turns a panic of ours into an error: it would end the program, as
// nobody else may catch it there.
func (k *Keyring) survive(ctx context.Context, id string) (_ *knownKey, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("looking up a key panicked: %v", panicked)
		}
	}()
	return k.look(ctx, id)
}

func (k *Keyring) look(ctx context.Context, id string) (*knownKey, error) {
	known := &knownKey{}
	known.checked.Store(k.now().UnixNano())
	row, err := k.store.Keys.APIKey.Query().Where(apikey.ID(id)).WithAccount().Only(ctx)
	if ent.IsNotFound(err) {
		return known, k.lookAmongSessions(ctx, id, known)
	}
	if err != nil {
		return nil, err
	}
	if row.Edges.Account == nil { // it was deleted between two statements, and its keys with it
		return known, nil
	}
	known.hash = row.SecretHash
	known.caller = Caller{Plan: Plan(row.Edges.Account.Plan), Account: row.AccountID, Key: id,
		Carried: row.Edges.Account.CarriedRequests, CarriedDay: row.Edges.Account.CarriedDay}
	if row.RevokedAt != nil {
		known.refused = errRevoked
		return known, nil
	}
	older, err := k.store.Keys.APIKey.Query().Where(apikey.AccountID(row.AccountID), olderThan(row), apikey.RevokedAtIsNil()).Count(ctx)
	if err == nil && older >= known.caller.Plan.Terms().Keys {
		known.refused = errSuspended
	}
	return known, err
}

// lookAmongSessions finds the key of a browser that is signed in.
func (k *Keyring) lookAmongSessions(ctx context.Context, id string, known *knownKey) error {
	row, err := k.store.Keys.Session.Query().Where(session.KeyID(id), validAt(k.now())).WithAccount().Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case row.Edges.Account == nil:
		return nil
	}
	known.hash = row.KeyHash
	known.caller = Caller{Plan: Plan(row.Edges.Account.Plan), Account: row.AccountID, Key: id,
		Carried: row.Edges.Account.CarriedRequests, CarriedDay: row.Edges.Account.CarriedDay}
	return nil
}

var (
	errUnknown   = problem.New(problem.Unauthenticated, "The API key is unknown.")
	errRevoked   = problem.New(problem.Unauthenticated, "The API key was revoked.")
	errSuspended = problem.New(problem.Unauthenticated, "The API key is suspended: its account has more keys than its plan, and older ones go first.")
)

// Forget makes the keyring ask anew, so that what was just done to a key is
// true here at once; other servers find out within a second.
func (k *Keyring) Forget(ids ...string) {
	for _, id := range ids {
		k.known.Remove(id)
		k.unknown.Remove(id)
	}
}

// Recheck returns the caller of an earlier request as its key identifies it
// now, with the plan that its account has by now, or the reason why the key is
// refused. It looks the key up at most once a second. While keys cannot be
// looked up, callers remain what they were.
func (k *Keyring) Recheck(ctx context.Context, caller Caller) (Caller, error) {
	if caller.Key == "" {
		return caller, nil
	}
	known, there := k.known.Get(caller.Key)
	var err error
	switch {
	case !there:
		known, err = k.find(ctx, caller.Key)
	case k.age(known.checked.Load()) >= trustedFor:
		known = k.again(ctx, caller.Key, known)
	}
	switch {
	case err != nil:
		return caller, nil
	case known.hash == nil:
		return Caller{}, errUnknown
	case known.refused != nil:
		return Caller{}, known.refused
	}
	return known.caller, nil
}

// note remembers that a key was used, at most once a minute.
func (k *Keyring) note(id string, known *knownKey) {
	now := k.now()
	last := known.noted.Load()
	if time.Duration(now.UnixNano()-last).Abs() < notedEvery || !known.noted.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	k.usedMu.Lock()
	defer k.usedMu.Unlock()
	k.used[id] = now
}

// WriteUsed writes down when keys were last used. What cannot be written now
// is written another time.
func (k *Keyring) WriteUsed(ctx context.Context) error {
	k.usedMu.Lock()
	used := k.used
	k.used = map[string]time.Time{}
	k.usedMu.Unlock()
	for id, at := range used {
		if err := k.store.Write.APIKey.Update().Where(apikey.ID(id)).SetLastUsedAt(at.UTC()).Exec(ctx); err != nil {
			k.usedMu.Lock()
			for id, at := range used {
				if _, newer := k.used[id]; !newer {
					k.used[id] = at
				}
			}
			k.usedMu.Unlock()
			return err
		}
		delete(used, id)
	}
	return nil
}
