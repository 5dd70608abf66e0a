package cache

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"palmares/internal/problem"
)

// Key names an answer: whoever asks the same of the same release gets the
// same.
type Key struct {
	edition  edition
	question Question
}

// Question is what is asked, in the one form that stands for all ways to ask
// it.
type Question struct {
	Operation string
	Variables string
	Keyed     bool // it may hold what only callers with a key may read
}

// Make works an answer out, and tells the release that it is of, or 0 if of
// none; with an error, too. It is kept with the answer, and must not hold on to
// more than it takes.
type Make func(ctx context.Context) (entry *Entry, release int, err error)

// Cache keeps answers of the newest release.
type Cache struct {
	log     *slog.Logger
	served  atomic.Int64 // the newest edition
	entries *otter.Cache[Key, *kept]

	flightsMu sync.Mutex
	flights   map[Key]*flight
	renewing  sync.Mutex // one at a time
	renewed   int        // how many answers are worked out again

	Hits, Misses atomic.Int64
}

// flight is an answer in the making, for all who wait for it.
type flight struct {
	done    chan struct{}
	entry   *Entry
	err     error
	waiting int                // how many wait for it
	stop    context.CancelFunc // when nobody does any more
}

// kept is an answer with the way to work it out again.
type kept struct {
	*Entry
	work Make
	uses atomic.Int64
}

func newFlight() *flight { return &flight{done: make(chan struct{}), waiting: 1, stop: func() {}} }

// heldBy is how many times its question's length an answer holds, with what it
// takes to work it out again.
const heldBy = 4

// New keeps answers of up to so many bytes together.
func New(size int64, log *slog.Logger) *Cache {
	c := &Cache{log: log, flights: map[Key]*flight{}, renewed: mostRenewed}
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
	key := Key{c.newest(), q}
	if found, ok := c.entries.GetIfPresent(key); ok {
		c.Hits.Add(1)
		found.uses.Add(1)
		return found.Entry, nil
	}
	c.Misses.Add(1)
	f, first := c.join(ctx, key, work)
	patience := time.NewTimer(longestWait)
	defer patience.Stop()
	select {
	case <-patience.C: // a frozen database heeds no deadline
		c.leave(key, f)
		c.log.ErrorContext(ctx, "an answer was not worked out in time", "operation", name(q), "cause", "it still is after "+longestWait.String(), "request_id", problem.RequestID(ctx))
		return nil, problem.New(problem.Timeout, "The request took too long.")
	case <-ctx.Done():
		c.leave(key, f)
		return nil, ctx.Err()
	case <-f.done:
		if f.err != nil && !first {
			c.tell(ctx, q, f.err)
		}
		return f.entry, f.err
	}
}

// tell writes down for who waited what was only told of who asked first: each
// has an id of their own to find it by.
func (c *Cache) tell(ctx context.Context, q Question, err error) {
	p := problem.Of(err)
	if p.Code.Status() < http.StatusInternalServerError {
		return
	}
	cause := p.Cause
	if cause == nil {
		cause = err
	}
	c.log.ErrorContext(ctx, "an answer that others asked for as well failed", "operation", name(q), "code", p.Code, "cause", cause, "request_id", problem.RequestID(ctx))
}

// name is the first line of an operation, not too much of it.
func name(q Question) string {
	line, _, _ := strings.Cut(q.Operation, "\n")
	return line[:min(len(line), longestName)]
}

const longestName = 100

// join takes part in making an answer, or begins it as the first.
func (c *Cache) join(ctx context.Context, key Key, work Make) (f *flight, first bool) {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f, flying := c.flights[key]; flying {
		f.waiting++
		return f, false
	}
	if found, ok := c.entries.GetIfPresent(key); ok { // it landed a moment ago
		f := newFlight()
		f.entry = found.Entry
		close(f.done)
		return f, false
	}
	f = newFlight()
	c.flights[key] = f
	// Who asked first may go away while others wait.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	go func() {
		defer stop()
		f.entry, f.err = c.fill(working, key.question, work)
		c.flightsMu.Lock()
		c.ground(key, f) // before anybody hears of it: who comes later finds it kept, or tries again
		c.flightsMu.Unlock()
		close(f.done)
	}()
	return f, true
}

// leave is for who waits no longer. An answer that nobody waits for is not
// worked out any further: else callers who hang up would cost as much as
// others do.
func (c *Cache) leave(key Key, f *flight) {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f.waiting--; f.waiting == 0 {
		c.ground(key, f)
		f.stop()
	}
}

// ground makes who comes later begin anew. Its caller holds the lock.
func (c *Cache) ground(key Key, f *flight) {
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}

// fill makes an answer and keeps it.
func (c *Cache) fill(ctx context.Context, q Question, work Make) (entry *Entry, err error) {
	defer func() {
		if caught := recover(); caught != nil { // which would end the process, out of reach of the chain
			entry, err = nil, fmt.Errorf("panic: %v", caught)
			c.log.ErrorContext(ctx, "working out an answer panicked", "operation", q.Operation, "panic", caught, "stack", string(debug.Stack()), "request_id", problem.RequestID(ctx))
		}
	}()
	entry, of, err := c.make(ctx, q, work)
	// It may be of a release that we have not heard of, also where it is that
	// something is not there any more.
	if failed := c.renew(of, true); failed != nil {
		return nil, failed
	}
	return entry, err
}

// make works an answer out and keeps it for its edition.
func (c *Cache) make(ctx context.Context, q Question, work Make) (*Entry, edition, error) {
	begun := c.newest()
	entry, release, err := work(ctx)
	of := begun.of(release)
	if err == nil && release > 0 {
		c.entries.Set(Key{of, q}, &kept{Entry: entry, work: work})
	}
	return entry, of, err
}

// Entries is how many answers are kept, about.
func (c *Cache) Entries() int { return c.entries.EstimatedSize() }

// Weight is how many bytes are kept.
func (c *Cache) Weight() uint64 { return c.entries.WeightedSize() }
