package cache

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"palmares/internal/problem"
)

// Key names an answer: whoever asks the same of the same release gets the
// same.
type Key struct {
	release  int
	question Question
}

// Question is what is asked, in the one form that stands for all ways to ask
// it.
type Question struct {
	Operation string
	Variables string
	Keyed     bool // it may hold what only callers with a key may read
}

// Make works an answer out, and tells the release that it is of. It is kept
// with the answer, and must not hold on to more than it takes.
type Make func(ctx context.Context) (entry *Entry, release int, err error)

// Cache keeps answers of the newest release.
type Cache struct {
	log     *slog.Logger
	newest  atomic.Int64
	entries *otter.Cache[Key, *kept]

	flightsMu sync.Mutex
	flights   map[Key]*flight

	Hits, Misses atomic.Int64
}

// flight is an answer in the making, for all who wait for it.
type flight struct {
	done  chan struct{}
	entry *Entry
	err   error
}

// kept is an answer with the way to work it out again.
type kept struct {
	*Entry
	work Make
	uses atomic.Int64
}

func newFlight() *flight { return &flight{done: make(chan struct{})} }

// heldBy is how many times its question's length an answer holds, with what it
// takes to work it out again.
const heldBy = 4

// New keeps answers of up to so many bytes together.
func New(size int64, log *slog.Logger) *Cache {
	c := &Cache{log: log, flights: map[Key]*flight{}}
	c.entries = otter.Must(&otter.Options[Key, *kept]{
		MaximumWeight: uint64(size),
		Weigher: func(key Key, value *kept) uint32 {
			return uint32(value.weight() + heldBy*(len(key.question.Operation)+len(key.question.Variables)))
		},
	})
	return c
}

// longestWait is a little longer than an answer may take to be worked out.
const longestWait = 6 * time.Second

// Get is the answer to a question: one that is kept, or one that is made, once
// for all who ask at the same time. Errors are not kept.
func (c *Cache) Get(ctx context.Context, q Question, work Make) (*Entry, error) {
	key := Key{int(c.newest.Load()), q}
	if found, ok := c.entries.GetIfPresent(key); ok {
		c.Hits.Add(1)
		found.uses.Add(1)
		return found.Entry, nil
	}
	c.Misses.Add(1)
	f := c.join(ctx, key, work)
	patience := time.NewTimer(longestWait)
	defer patience.Stop()
	select {
	case <-patience.C: // a frozen database heeds no deadline
		return nil, problem.New(problem.Timeout, "The request took too long.")
	case <-ctx.Done():
		return nil, ctx.Err() // the others still wait for it
	case <-f.done:
		return f.entry, f.err
	}
}

// join takes part in making an answer, or begins it.
func (c *Cache) join(ctx context.Context, key Key, work Make) *flight {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f, flying := c.flights[key]; flying {
		return f
	}
	if found, ok := c.entries.GetIfPresent(key); ok { // it landed a moment ago
		f := newFlight()
		f.entry = found.Entry
		close(f.done)
		return f
	}
	f := newFlight()
	c.flights[key] = f
	go func() {
		f.entry, f.err = c.fill(context.WithoutCancel(ctx), key.question, work)
		c.flightsMu.Lock()
		delete(c.flights, key) // before anybody hears of it: who comes later finds it kept, or tries again
		c.flightsMu.Unlock()
		close(f.done)
	}()
	return f
}

// fill makes an answer and keeps it.
func (c *Cache) fill(ctx context.Context, q Question, work Make) (entry *Entry, err error) {
	defer func() {
		if caught := recover(); caught != nil { // which would end the process, out of reach of the chain
			entry, err = nil, fmt.Errorf("panic: %v", caught)
			c.log.Error("working out an answer panicked", "operation", q.Operation, "panic", caught, "stack", string(debug.Stack()), "request_id", problem.RequestID(ctx))
		}
	}()
	entry, release, err := work(ctx)
	if err != nil {
		return nil, err
	}
	c.Publish(release)
	if release > 0 {
		c.entries.Set(Key{release, q}, &kept{Entry: entry, work: work})
	}
	return entry, nil
}

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

// Renew works out again what was asked most, for a release that is about to be
// published: its first readers need not wait. It publishes it after a while at
// the latest, whatever is still being worked out then.
func (c *Cache) Renew(ctx context.Context, release int, most int, within time.Duration) {
	deadline := time.After(within)
	for _, b := range c.busiest(int(c.newest.Load()), most) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := c.fill(ctx, b.question, b.work); err != nil {
				c.log.Warn("an answer was not worked out again", "operation", b.question.Operation, "cause", err)
			}
		}()
		select {
		case <-done:
			continue
		case <-deadline:
		}
		break
	}
	c.Publish(release)
	c.forget(release)
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

// Newest is the release whose answers are served.
func (c *Cache) Newest() int { return int(c.newest.Load()) }

// Weight is how many bytes are kept.
func (c *Cache) Weight() uint64 { return c.entries.WeightedSize() }
