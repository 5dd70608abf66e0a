package cache

import (
	"cmp"
	"context"
	"slices"
	"time"

	"palmares/internal/core/problem"
)

// The most requested responses are executed again before a release is served,
// but the release does not wait long for them.
const (
	mostRenewed = 100
	renewTime   = 500 * time.Millisecond
	// Some are executed at a time, so that a slow one does not hold up the others.
	renewers = 4
)

// Renew executes the most requested questions again, and then publishes the
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
	if err := c.warm(c.busiest(c.Edition(), c.renewed), healthy); err != nil {
		return err
	}
	c.publish(e)
	c.forget(e)
	return nil
}

// warm executes questions until all are done, or the time is over. It fails
// where the database does: at least one response must show that it is healthy.
func (c *Cache) warm(all []busy, healthy bool) error {
	ended := make(chan struct{})
	defer close(ended)
	done := c.executeAll(all, ended)
	deadline, patience := time.After(renewTime), time.After(longestWait)
	var failed error
	late := false
	for left := len(all); left > 0; {
		select {
		case err := <-done:
			left--
			switch {
			case err == nil:
				healthy = true
			case problem.Of(err).Code == problem.Unavailable:
				return err
			default: // the database, or only this question, is slow
				failed = err
			}
		case <-deadline:
			deadline, late = nil, true
		case <-patience:
			return problem.New(problem.Timeout, "The request took too long.")
		}
		if healthy && late {
			return nil
		}
	}
	if healthy {
		return nil
	}
	return failed // nil where there was nothing to execute
}

// executeAll executes questions again, some at a time, until ended, and reports
// the result of each.
func (c *Cache) executeAll(all []busy, ended <-chan struct{}) <-chan error {
	next, done := make(chan busy), make(chan error, len(all))
	go func() {
		defer close(next)
		for _, b := range all {
			select {
			case next <- b:
			case <-ended:
				return
			}
		}
	}()
	for range renewers {
		go func() {
			for b := range next {
				done <- c.execute(b)
			}
		}()
	}
	return done
}

// execute executes a question again. It fails only where the database does:
// its subject may no longer exist in the new release. It runs without any
// request's context, and so without the rights of its caller.
func (c *Cache) execute(b busy) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			c.log.Error("renewing a response panicked", "operation", name(b.question), "panic", caught)
		}
	}()
	_, _, err = c.make(context.Background(), b.question, b.work)
	if code := problem.Of(err).Code; err != nil && (code == problem.Unavailable || code == problem.Timeout) {
		return err
	}
	return nil
}

type busy struct {
	question Key
	work     Execute
	uses     int64
}

// busiest are the most requested questions of an edition.
func (c *Cache) busiest(e Edition, most int) []busy {
	var all []busy
	for k, value := range c.items.All() {
		if k.edition == e && value.work != nil {
			all = append(all, busy{k.question, value.work, value.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b busy) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), most)]
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

// Of is the edition of a release in the same epoch.
func (e Edition) Of(release int) Edition { return e>>epochBits<<epochBits | Edition(release) }

// next is the edition of a release in the next epoch.
func (e Edition) next(release int) Edition { return (e>>epochBits+1)<<epochBits | Edition(release) }

func (e Edition) release() int { return int(int32(e)) }

// Edition is the newest edition, which is the one that is served.
func (c *Cache) Edition() Edition { return Edition(c.served.Load()) }

// publish makes older editions unreachable. One that is not newer changes
// nothing: its reader was slow.
func (c *Cache) publish(e Edition) {
	for {
		now := c.Edition()
		if e <= now || c.served.CompareAndSwap(int64(now), int64(e)) {
			return
		}
	}
}

// Newest is the release whose responses are served.
func (c *Cache) Newest() int { return c.Edition().release() }

// Publish serves a release, unless it is older than the one that is served.
func (c *Cache) Publish(release int) { c.publish(c.Edition().Of(release)) }

// Restart drops everything, where release numbers start again: a backup was
// restored.
func (c *Cache) Restart(release int) {
	for {
		now := c.Edition()
		if c.served.CompareAndSwap(int64(now), int64(now.next(release))) {
			break
		}
	}
	c.items.InvalidateAll()
}
