package cache

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"palmares/internal/core/problem"
)

// The most requested responses are executed again before a release is served,
// but the release does not wait long for them.
const (
	maxRenewed = 100
	renewTime  = 500 * time.Millisecond
	// Some are executed at a time, so that a slow one does not hold up the others.
	renewers = 4
)

// Renew executes the most requested queries again, and then publishes the
// release, so that its first readers need not wait. It publishes after
// renewTime at the latest, unless the database fails: then the cached release
// stays, complete and consistent, and the caller has to try again.
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
		return nil // published while this one waited
	}
	if err := c.warm(c.mostRequested(), healthy); err != nil {
		return err
	}
	c.publish(e)
	c.forget(e)
	return nil
}

// warm executes queries, some at a time, until all are done or the time is over.
// It fails where the database does: at least one response must show that it is
// healthy.
func (c *Cache) warm(all []popular, healthy bool) error {
	next, done := make(chan popular, len(all)), make(chan error, len(all))
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
				done <- c.executeAgain(p)
			}
		}()
	}
	deadline, patience := time.After(renewTime), time.After(maxWait)
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
		case <-patience:
			return problem.New(problem.Timeout, "The request took too long.")
		}
		if healthy && overdue {
			return nil
		}
	}
	if healthy {
		return nil
	}
	return failed // nil where there was nothing to execute
}

// executeAgain executes a query for a new release. It fails only where the
// database does: its subject may no longer exist. It runs without any request's
// context, and so without the rights of its caller.
func (c *Cache) executeAgain(p popular) error {
	_, _, err := c.execute(context.Background(), p.query, p.work)
	if code := problem.Of(err).Code; err != nil && (code == problem.Unavailable || code == problem.Timeout) {
		return err
	}
	return nil
}

// popular is a cached query that was requested often.
type popular struct {
	query Key
	work  Execute
	uses  int64
}

// mostRequested returns the most requested queries of the current edition.
func (c *Cache) mostRequested() []popular {
	var all []popular
	for k, value := range c.items.All() {
		if k.edition == c.Edition() && value.work != nil {
			all = append(all, popular{k.query, value.work, value.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b popular) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), c.renewed)]
}

// forget makes room at once: older editions can no longer be requested.
func (c *Cache) forget(e Edition) {
	for k := range c.items.Keys() {
		if k.edition < e && k.edition != Timeless {
			c.items.Invalidate(k)
		}
	}
}

// Edition is a release as the cache numbers them. Release numbers start again
// when a backup is restored, and editions do not: a response that was still
// executing at that time cannot be mistaken for a newer one.
type Edition int64

// Timeless is the edition of what no release changes.
const Timeless Edition = 0

const epochBits = 32

// Of returns the edition of a release in the same epoch.
func (e Edition) Of(release int) Edition { return e>>epochBits<<epochBits | Edition(release) }

// next returns the edition of a release in the next epoch.
func (e Edition) next(release int) Edition { return (e>>epochBits+1)<<epochBits | Edition(release) }

func (e Edition) release() int { return int(int32(e)) }

// Edition returns the newest edition, which is the one that is served.
func (c *Cache) Edition() Edition { return Edition(c.served.Load()) }

// Newest returns the release whose responses are served.
func (c *Cache) Newest() int { return c.Edition().release() }

// Publish serves a release, unless it is older than the one that is served.
func (c *Cache) Publish(release int) { c.publish(c.Edition().Of(release)) }

// publish makes older editions unreachable. One that is not newer changes
// nothing: its reader was slow.
func (c *Cache) publish(e Edition) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.served.Store(int64(max(e, c.Edition())))
}

// Restart drops everything, where release numbers start again: a backup was
// restored.
func (c *Cache) Restart(release int) {
	c.publishing.Lock()
	c.served.Store(int64(c.Edition().next(release)))
	c.publishing.Unlock()
	c.items.InvalidateAll()
}
