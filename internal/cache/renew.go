package cache

import (
	"cmp"
	"context"
	"slices"
	"time"

	"palmares/internal/problem"
)

// The busiest answers are worked out again before a release is served, but
// nobody waits long for the news.
const (
	mostRenewed = 100
	renewTime   = 500 * time.Millisecond
)

// Publish makes answers of older releases unreachable. A release that is not
// newer changes nothing: somebody was slow.
func (c *Cache) Publish(release int) {
	for {
		now := c.newest.Load()
		if int64(release) <= now || c.newest.CompareAndSwap(now, int64(release)) {
			return
		}
	}
}

// Renew works out again what was asked most, and then publishes the release:
// its first readers need not wait. It does so after a while at the latest,
// whatever is left by then; but not where the database fails meanwhile. Then
// what is kept goes on being served, whole and of one release, and somebody
// has to try again.
func (c *Cache) Renew(release int) error {
	if release <= c.Newest() {
		return nil
	}
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if release <= c.Newest() {
		return nil // while we waited
	}
	deadline, patience := time.After(renewTime), time.After(longestWait)
	for i, b := range c.busiest(c.Newest(), c.renewed) {
		done := make(chan error, 1)
		go func() { done <- c.again(b) }()
		late := deadline
		if i == 0 {
			late = patience // the first tells whether the database is there
		}
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			continue
		case <-late:
		}
		if i == 0 {
			return problem.New(problem.Timeout, "The request took too long.")
		}
		break
	}
	c.Publish(release)
	c.forget(release)
	return nil
}

// again works out an answer that was asked before. It fails only where the
// database does: what was asked may be gone with the new release. It is done
// for nobody in particular, and not with what somebody's request may do.
func (c *Cache) again(b busy) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			c.log.Error("working out an answer again panicked", "operation", name(b.question), "panic", caught)
		}
	}()
	_, _, err = c.make(context.Background(), b.question, b.work)
	if code := problem.Of(err).Code; err != nil && (code == problem.Unavailable || code == problem.Timeout) {
		return err
	}
	return nil
}

// Restart forgets everything, where release numbers begin anew: a backup was
// restored.
func (c *Cache) Restart(release int) {
	c.newest.Store(int64(release))
	c.entries.InvalidateAll()
}

type busy struct {
	question Question
	work     Make
	uses     int64
}

// busiest are the questions that were asked most often of a release.
func (c *Cache) busiest(release, most int) []busy {
	var all []busy
	for key, value := range c.entries.All() {
		if key.release == release {
			all = append(all, busy{key.question, value.work, value.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b busy) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), most)]
}

// forget makes room at once: nobody can ask for older releases any more.
func (c *Cache) forget(release int) {
	for key := range c.entries.Keys() {
		if key.release < release {
			c.entries.Invalidate(key)
		}
	}
}
