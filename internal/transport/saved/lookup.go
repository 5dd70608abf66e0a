package saved

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

const (
	// freshFor is how long another server's change may go unnoticed.
	freshFor = time.Second
	// lookupTimeout is short, because cached values are used after it.
	lookupTimeout = 800 * time.Millisecond
)

// lookups reads values from the database on demand and caches them.
type lookups[V comparable] struct {
	table   *cache.Table[*cachedValue[V]]
	changes *atomic.Int64 // made through this server
	pending singleflight.Group
}

// cachedValue is a value as it was in the database at its last lookup.
type cachedValue[V comparable] struct {
	value   V
	checked atomic.Int64 // when, in nanoseconds
	changes atomic.Int64 // the number of changes made by then
}

func (l *lookups[V]) isFresh(found *cachedValue[V]) bool {
	age := time.Now().UnixNano() - found.checked.Load()
	return age >= 0 && age < int64(freshFor) && found.changes.Load() == l.changes.Load()
}

// get returns a fresh value. read receives the last known value and returns it if
// nothing has changed; if the value does not exist, its error is a problem. While
// the database is down, the last known value remains in use.
func (l *lookups[V]) get(ctx context.Context, key cache.Key, read func(ctx context.Context, last V) (V, int, error)) (*cachedValue[V], error) {
	last, known := l.table.Get(cache.Timeless, key)
	switch {
	case known && l.isFresh(last):
		return last, nil
	case !known && cache.CachedOnly(ctx):
		return nil, errNotFound
	case !known:
		last = &cachedValue[V]{}
	}
	lookup := l.pending.DoChan(key.Operation+"\n"+key.Variables, func() (_ any, err error) {
		defer func() { // singleflight would end the process
			if panicked := recover(); panicked != nil {
				err = fmt.Errorf("lookup panicked: %v", panicked)
			}
		}()
		// The first request may be canceled while others wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		now, changes := time.Now(), l.changes.Load() // before reading
		value, weight, err := read(ctx, last.value)
		if p := problem.Of(err); err != nil {
			if known && p.Code != problem.Internal && p.Code != problem.Timeout { // it no longer exists, so an outage must not bring it back
				l.table.Delete(cache.Timeless, key)
			}
			return nil, err
		}
		found := last
		if !known || value != last.value {
			found = &cachedValue[V]{value: value}
		}
		found.checked.Store(now.UnixNano())
		found.changes.Store(changes)
		if found != last {
			l.table.Put(cache.Timeless, key, found, weight)
		}
		return found, nil
	})
	var err error
	select {
	case result := <-lookup:
		if result.Err == nil {
			return result.Val.(*cachedValue[V]), nil
		}
		err = result.Err
	case <-time.After(lookupTimeout): // a frozen database ignores deadlines
		err = context.DeadlineExceeded
	}
	switch p := problem.Of(err); {
	case p.Code != problem.Internal && p.Code != problem.Timeout:
		return nil, err
	case known:
		last.checked.Store(time.Now().UnixNano()) // retry in a second, not on every request
		return last, nil
	}
	return nil, &problem.Problem{Code: problem.Unavailable, Message: "Saved queries cannot be read at the moment. Try again in a minute.", Cause: err}
}
