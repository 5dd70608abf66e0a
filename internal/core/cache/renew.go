package cache

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"palmares/internal/core/problem"
)

// The most requested queries are executed again before a release is served,
// but the release does not wait long for them.
const (
	maxRenewed = 100
	renewTime  = 500 * time.Millisecond
	// Several are executed at a time, so that a slow one does not delay the others.
	renewers = 4
)

// Renew executes the most requested queries again and then publishes the release,
// so that its first readers do not have to wait. It publishes after renewTime at the
// latest, unless the database fails: then the cached release stays published, and
// the caller has to try again.
func (c *Cache) Renew(release int) error { return c.renew(c.Edition().Of(release), false) }

// renew is Renew for an edition; healthy is whether the database has just
// responded.
func (c *Cache) renew(e Edition, healthy bool) error {
	if e <= c.Edition() {
		return nil
	}
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if e <= c.Edition() {
		return nil // another renewal has published it
	}
	if err := c.warm(c.mostRequested(), healthy); err != nil {
		return err
	}
	c.publish(e)
	c.evictBefore(e)
	return nil
}

// warm executes queries, several at a time, until all are done or renewTime is
// over. It fails if the database does: at least one response must show that it is
// healthy.
func (c *Cache) warm(all []popularQuery, healthy bool) error {
	next, done := make(chan popularQuery, len(all)), make(chan error, len(all))
	for _, p := range all {
		next <- p
	}
	close(next)
	var ended atomic.Bool
	defer ended.Store(true)
	for range renewers {
		go func() {
			for p := range next {
				if ended.Load() {
					return
				}
				done <- c.reexecute(p)
			}
		}()
	}
	deadline, timeout := time.After(renewTime), time.After(maxWait)
	var failed error
	overdue := false
	for left := len(all); left > 0; {
		select {
		case err := <-done:
			left--
			switch {
			case err == nil:
				healthy = true
			case problem.Of(err).Code == problem.Unavailable:
				return err
			default: // the database, or only this query, is slow
				failed = err
			}
		case <-deadline:
			deadline, overdue = nil, true
		case <-timeout:
			return problem.New(problem.Timeout, "The request took too long.")
		}
		if healthy && overdue {
			return nil
		}
	}
	if healthy {
		return nil
	}
	return failed // nil if there was nothing to execute
}

// reexecute executes a query for a new release. It fails only if the database does:
// what the query is about may no longer exist. It runs without the context of a
// request, and so without the permissions of a caller.
func (c *Cache) reexecute(p popularQuery) error {
	_, _, err := c.execute(context.Background(), p.query, p.work)
	if code := problem.Of(err).Code; err != nil && (code == problem.Unavailable || code == problem.Timeout) {
		return err
	}
	return nil
}

// popularQuery is a cached query and how often it was requested.
type popularQuery struct {
	query Key
	work  Execute
	uses  int64
}

// mostRequested returns the most requested queries of the current edition.
func (c *Cache) mostRequested() []popularQuery {
	var all []popularQuery
	for k, value := range c.items.All() {
		if k.edition == c.Edition() && value.work != nil {
			all = append(all, popularQuery{k.query, value.work, value.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b popularQuery) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), c.renewLimit)]
}

// evictBefore evicts older editions, which can no longer be requested.
func (c *Cache) evictBefore(e Edition) {
	for k := range c.items.Keys() {
		if k.edition < e && k.edition != Timeless {
			c.items.Invalidate(k)
		}
	}
}

// Edition is the cache's own number of a release. When a backup is restored, release
// numbers are reused, but editions are not: a response that was still executing at
// that time cannot be mistaken for a newer one.
type Edition int64

// Timeless is the edition of values that do not depend on the release.
const Timeless Edition = 0

const epochBits = 32

// Of returns the edition of a release in the same epoch.
func (e Edition) Of(release int) Edition { return e>>epochBits<<epochBits | Edition(release) }

// next returns the edition of a release in the next epoch.
func (e Edition) next(release int) Edition { return (e>>epochBits+1)<<epochBits | Edition(release) }

func (e Edition) release() int { return int(int32(e)) }

// Edition returns the newest edition, which is the one being served.
func (c *Cache) Edition() Edition { return Edition(c.served.Load()) }

// Newest returns the release whose responses are served.
func (c *Cache) Newest() int { return c.Edition().release() }

// Publish serves a release, unless a newer one is already served.
func (c *Cache) Publish(release int) { c.publish(c.Edition().Of(release)) }

// publish makes older editions unreachable. It ignores an edition that is not newer,
// from a slow reader.
func (c *Cache) publish(e Edition) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.served.Store(int64(max(e, c.Edition())))
}

// Restart evicts everything and serves a release of a restored backup, whose number
// may have been used before.
func (c *Cache) Restart(release int) {
	c.publishing.Lock()
	c.served.Store(int64(c.Edition().next(release)))
	c.publishing.Unlock()
	c.items.InvalidateAll()
}
