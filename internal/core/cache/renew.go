package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

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
func (c *Cache) Renew(release int) error { return c.renew(c.Edition().Of(release)) }

func (c *Cache) renew(e Edition) error {
	if e <= c.Edition() {
		return nil
	}
	c.renewing <- struct{}{}
	defer func() { <-c.renewing }()
	if e <= c.Edition() {
		return nil // another renewal has published it
	}
	if err := c.warm(c.mostRequested()); err != nil {
		return err
	}
	c.publish(e)
	c.evictBefore(e)
	return nil
}

// warm executes queries until all are done or renewTime is over. It fails if the
// database does; a slow query only goes without renewal. Queries run without the
// context of a request, and so without the permissions of a caller.
func (c *Cache) warm(all []popularQuery) error {
	limited, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	executions, ending := errgroup.WithContext(limited)
	executions.SetLimit(renewers)
	go func() {
		for _, p := range all {
			executions.Go(func() error {
				if ending.Err() != nil {
					return nil
				}
				_, _, err := c.execute(context.Background(), p.query, p.work)
				if err != nil && problem.Of(err).Code == problem.Unavailable {
					return err
				}
				return nil // what the query is about may no longer exist
			})
		}
		_ = executions.Wait()
	}()
	<-ending.Done()
	var failed *problem.Problem
	if errors.As(context.Cause(ending), &failed) {
		return failed
	}
	return nil
}

// popularQuery is a cached query and how often it was used.
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
			all = append(all, popularQuery{k.query, value.work, value.Entry.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b popularQuery) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), c.renewLimit)]
}

// evictBefore evicts older editions, which can no longer be requested.
func (c *Cache) evictBefore(e Edition) {
	for k := range c.items.All() {
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
