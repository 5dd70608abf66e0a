// Package lookup caches what most requests need from the database, such as API keys:
// changes take effect within 2 seconds, and known values remain in use during an outage.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/internal/core/cache"
)

const (
	// A value is looked up again after FreshFor: in the background at first, and by a
	// request that waits after StaleFor, because every server must refuse a revoked
	// key within 2 seconds.
	FreshFor = time.Second
	StaleFor = 1900 * time.Millisecond
	// refreshTimeout is short, because the last value is used after it. Without one,
	// waiting is better than an error: on a busy machine, a server that has just
	// started needs longer.
	refreshTimeout = 800 * time.Millisecond
	firstFactor    = 3
	missingSize    = 2 << 20 // memory for ids without a value
)

// ErrNotFound is the error of an id without a value.
var ErrNotFound = errors.New("not found")

// Read reads the value of an id from the database, or returns ErrNotFound; any other
// error is an outage. It receives the last known value, or the zero value. The weight
// is the approximate size of the value in bytes.
type Read[V any] func(ctx context.Context, id string, last V) (value V, weight int, err error)

// Table caches the values of ids.
type Table[V any] struct {
	Now     func() time.Time
	Timeout time.Duration // to look up a known value again

	read    Read[V]
	known   *cache.Table[*entry[V]]
	missing *cache.Table[*entry[V]] // nil if such ids are not cached
	pending singleflight.Group
	changes atomic.Int64
}

// entry is the result of the last lookup.
type entry[V any] struct {
	value      V
	err        error        // ErrNotFound or nil
	checked    atomic.Int64 // when it was looked up, in nanoseconds
	refreshing atomic.Bool
}

// New returns a table whose values are within the budget of a cache.
func New[V any](budget *cache.Cache, name string, read Read[V]) *Table[V] {
	return &Table[V]{read: read, Now: time.Now, Timeout: refreshTimeout, known: cache.NewTable[*entry[V]](budget, name)}
}

// CacheMissing makes a table cache ids without a value, too, in memory of their own, so
// that they evict no values.
func (t *Table[V]) CacheMissing() {
	t.missing = cache.NewTable[*entry[V]](cache.New(missingSize, nil, nil), "")
}

// Get returns the value of an id without waiting if it was fresh a moment ago.
func (t *Table[V]) Get(ctx context.Context, id string) (V, error) {
	return t.get(ctx, id, StaleFor)
}

// GetFresh returns the fresh value of an id.
func (t *Table[V]) GetFresh(ctx context.Context, id string) (V, error) {
	return t.get(ctx, id, FreshFor)
}

func (t *Table[V]) get(ctx context.Context, id string, usableFor time.Duration) (V, error) {
	var none V
	key := cache.Key{Operation: id}
	last, known := t.known.Get(cache.Timeless, key)
	if !known {
		if cache.CachedOnly(ctx) {
			return none, ErrNotFound
		}
		if t.missing != nil {
			if missing, ok := t.missing.Get(cache.Timeless, key); ok && t.age(missing) < FreshFor {
				return none, ErrNotFound
			}
		}
		found, err := t.lookUp(ctx, id, none, firstFactor*t.Timeout)
		if err != nil {
			return none, err
		}
		return found.value, found.err
	}
	switch age := t.age(last); {
	case age < FreshFor:
	case age < usableFor:
		if last.refreshing.CompareAndSwap(false, true) {
			go t.refresh(context.WithoutCancel(ctx), id, last)
		}
	default:
		last = t.refresh(ctx, id, last)
	}
	return last.value, last.err
}

// age returns the time since a lookup, or StaleFor if the clock was set back.
func (t *Table[V]) age(e *entry[V]) time.Duration {
	age := time.Duration(t.Now().UnixNano() - e.checked.Load())
	if age < 0 {
		return StaleFor
	}
	return age
}

// refresh returns the last entry if the lookup fails.
func (t *Table[V]) refresh(ctx context.Context, id string, last *entry[V]) *entry[V] {
	defer last.refreshing.Store(false)
	found, err := t.lookUp(ctx, id, last.value, t.Timeout)
	if err != nil {
		last.checked.Store(t.Now().UnixNano()) // retry in a second, not with every request
		return last
	}
	return found
}

// lookUp reads a value, once for concurrent requests.
func (t *Table[V]) lookUp(ctx context.Context, id string, last V, timeout time.Duration) (*entry[V], error) {
	changes := t.changes.Load()
	found, err, _ := t.pending.Do(fmt.Sprint(changes, " ", id), func() (_ any, err error) {
		defer func() {
			if panicked := recover(); panicked != nil { // in the background, it would end the process
				err = fmt.Errorf("lookup panicked: %v", panicked)
			}
		}()
		// The first request may be canceled while others wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		found := &entry[V]{}
		found.checked.Store(t.Now().UnixNano()) // before reading
		value, weight, err := t.read(ctx, id, last)
		key := cache.Key{Operation: strings.Clone(id)} // it may be part of a longer text, such as a header
		in := t.known
		switch {
		case errors.Is(err, ErrNotFound):
			t.known.Delete(cache.Timeless, key) // an outage must not bring it back
			if found.err, in = ErrNotFound, t.missing; in == nil {
				return found, nil
			}
		case err != nil:
			return nil, err
		default:
			found.value = value
		}
		in.Put(cache.Timeless, key, found, weight)
		if t.changes.Load() != changes { // the value may be from before
			in.Delete(cache.Timeless, key)
		}
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(*entry[V]), nil
}

// Forget drops the values that match, so that a change takes effect on this server
// immediately.
func (t *Table[V]) Forget(matches func(V) bool) {
	t.changes.Add(1)
	t.known.DeleteFunc(func(e *entry[V]) bool { return matches(e.value) })
}
