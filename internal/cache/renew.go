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
	// Some are worked out at a time, so that a long one holds up nobody.
	renewers = 4
)

// Renew works out again what was asked most, and then publishes the release:
// its first readers need not wait. It does so after a while at the latest,
// whatever is left by then; but not where the database fails meanwhile. Then
// what is kept goes on being served, whole and of one release, and somebody
// has to try again.
func (c *Cache) Renew(release int) error { return c.renew(c.newest().of(release), false) }

// renew is told whether the database has shown that it is there.
func (c *Cache) renew(e edition, there bool) error {
	if e <= c.newest() {
		return nil
	}
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if e <= c.newest() {
		return nil // while we waited
	}
	if err := c.warm(c.busiest(c.newest(), c.renewed), there); err != nil {
		return err
	}
	c.publish(e)
	c.forget(e)
	return nil
}

// warm works out answers again until all are, or the time is over. It fails
// where the database does: one answer at least must show that it is there.
func (c *Cache) warm(all []busy, there bool) error {
	ended := make(chan struct{})
	defer close(ended)
	done := c.inTurn(all, ended)
	deadline, patience := time.After(renewTime), time.After(longestWait)
	var failed error
	late := false
	for left := len(all); left > 0; {
		select {
		case err := <-done:
			left--
			switch {
			case err == nil:
				there = true
			case problem.Of(err).Code == problem.Unavailable:
				return err
			default: // the database, or only what was asked of it, is slow
				failed = err
			}
		case <-deadline:
			deadline, late = nil, true
		case <-patience:
			return problem.New(problem.Timeout, "The request took too long.")
		}
		if there && late {
			return nil
		}
	}
	if there {
		return nil
	}
	return failed // nil where there was nothing to work out
}

// inTurn works answers out again, some at a time, until ended; it tells of each
// how that went.
func (c *Cache) inTurn(all []busy, ended <-chan struct{}) <-chan error {
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
				done <- c.again(b)
			}
		}()
	}
	return done
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

type busy struct {
	question Question
	work     Make
	uses     int64
}

// busiest are the questions that were asked most often of an edition.
func (c *Cache) busiest(e edition, most int) []busy {
	var all []busy
	for key, value := range c.entries.All() {
		if key.edition == e {
			all = append(all, busy{key.question, value.work, value.uses.Load()})
		}
	}
	slices.SortFunc(all, func(a, b busy) int { return cmp.Compare(b.uses, a.uses) })
	return all[:min(len(all), most)]
}

// forget makes room at once: nobody can ask for older editions any more.
func (c *Cache) forget(e edition) {
	for key := range c.entries.Keys() {
		if key.edition < e {
			c.entries.Invalidate(key)
		}
	}
}
