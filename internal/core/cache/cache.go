package cache

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"palmares/internal/core/problem"
)

// Key identifies a response within a release. Equivalent requests have the same
// key.
type Key struct {
	Operation string
	Variables string
	Keyed     bool // the response may contain data that requires an API key
}

// Execute executes a query. It returns the release that was read, or 0 if there is
// none, even with an error. The cache retains the function to execute the query
// again for the next release, so it should reference as little memory as possible.
type Execute func(ctx context.Context) (entry *Entry, release int, err error)

// Cache holds the responses of the newest release and tables of other values, all
// within one memory budget.
type Cache struct {
	size   int64
	log    *slog.Logger
	secret []byte       // signs ETags
	served atomic.Int64 // the newest edition; only changed while publishing is locked
	items  items

	flightsMu  sync.Mutex
	flights    map[key]*flight
	publishing sync.Mutex
	renewing   chan struct{} // a semaphore: only one renewal runs at a time
	renewLimit int           // how many queries are executed again for a new release

	Hits, Misses atomic.Int64
}

// items are the methods of otter.Cache that are used. With its type, every package that
// uses a Cache would compile all of otter again, because it is generic.
type items interface {
	GetIfPresent(key) (*item, bool)
	Set(key, *item) (*item, bool)
	Invalidate(key) (*item, bool)
	InvalidateAll()
	All() iter.Seq2[key, *item]
	CleanUp()
	SetMaximum(uint64)
	EstimatedSize() int
	WeightedSize() uint64
}

// key identifies an item.
type key struct {
	table   string // "" for responses
	edition Edition
	query   Key
}

// item is a response and the function to execute it again, or a value of a table.
type item struct {
	*Entry
	work   Execute
	value  any
	weight uint32
}

// flight is a running execution, shared by all requests that wait for it.
type flight struct {
	done    chan struct{}
	entry   *Entry
	err     error
	waiting int                // number of waiting requests
	stop    context.CancelFunc // called when none is left
}

func newFlight() *flight { return &flight{done: make(chan struct{}), waiting: 1, stop: func() {}} }

// itemWeight is the memory that an item takes in addition to its value: the key,
// the bookkeeping of the cache and the allocator's rounding.
const itemWeight = 500

// New returns a cache of up to size bytes, which signs its ETags with a secret.
func New(size int64, secret []byte, log *slog.Logger) *Cache {
	c := &Cache{size: size, log: log, secret: secret, flights: map[key]*flight{}, renewing: make(chan struct{}, 1), renewLimit: maxRenewed}
	c.items = otter.Must(&otter.Options[key, *item]{
		MaximumWeight: uint64(size),
		Weigher:       func(_ key, value *item) uint32 { return value.weight },
	})
	return c
}

func (c *Cache) set(k key, i *item, weight int) {
	i.weight = uint32(weight + itemWeight + len(k.query.Operation) + len(k.query.Variables))
	c.items.Set(k, i)
}

// maxTime is slightly longer than an operation may take.
const maxTime = 6 * time.Second

// Response is an entry for one request.
type Response struct {
	*Entry
	executed bool // for this request, and not cached before
}

// Get returns the cached response to a query, or executes the query once for all
// concurrent requests. Errors are not cached.
func (c *Cache) Get(ctx context.Context, q Key, work Execute) (Response, error) {
	k := key{edition: c.Edition(), query: q}
	if found, ok := c.items.GetIfPresent(k); ok {
		c.Hits.Add(1)
		return Response{Entry: found.Entry}, nil
	}
	if CachedOnly(ctx) {
		return Response{}, problem.New(problem.NotFound, "The response is not cached.")
	}
	c.Misses.Add(1)
	f, first := c.join(ctx, k, work)
	select {
	case <-ctx.Done():
		c.leave(k, f)
		return Response{}, ctx.Err()
	case <-f.done:
		if f.err != nil && !first {
			c.logShared(ctx, q, f.err)
		}
		return Response{f.entry, true}, f.err
	}
}

// logShared logs an error for a request that waited for the execution of another
// one, so that the cause can be found by either request ID.
func (c *Cache) logShared(ctx context.Context, q Key, err error) {
	if p := problem.Of(err); p.Code.Status() >= http.StatusInternalServerError {
		c.log.ErrorContext(ctx, "shared execution failed", "operation", name(q), "code", p.Code, "cause", cmp.Or(p.Cause, err), "request_id", problem.RequestID(ctx))
	}
}

// name returns the first line of an operation, shortened for the log.
func name(q Key) string {
	line, _, _ := strings.Cut(q.Operation, "\n")
	return line[:min(len(line), 100)]
}

// join joins a running execution, or starts one.
func (c *Cache) join(ctx context.Context, k key, work Execute) (f *flight, first bool) {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f, found := c.flights[k]; found {
		f.waiting++
		return f, false
	}
	if found, ok := c.items.GetIfPresent(k); ok { // it has just finished
		f := newFlight()
		f.entry = found.Entry
		close(f.done)
		return f, false
	}
	f = newFlight()
	c.flights[k] = f
	// The first caller may disconnect while others wait.
	working, stop := context.WithTimeout(context.WithoutCancel(ctx), maxTime)
	f.stop = stop
	go func() {
		defer stop()
		f.entry, f.err = c.fill(working, k.query, work)
		c.flightsMu.Lock()
		c.removeFlight(k, f) // before done is closed: later requests use the cached response, or execute again
		c.flightsMu.Unlock()
		close(f.done)
	}()
	return f, true
}

// leave stops waiting for a flight. An execution that no request waits for is
// canceled, so that callers who disconnect cost less.
func (c *Cache) leave(k key, f *flight) {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f.waiting--; f.waiting == 0 {
		c.removeFlight(k, f)
		f.stop()
	}
}

// removeFlight makes later requests start a new flight. The caller holds the lock.
func (c *Cache) removeFlight(k key, f *flight) {
	if c.flights[k] == f {
		delete(c.flights, k)
	}
}

// fill executes a query and caches the response.
func (c *Cache) fill(ctx context.Context, q Key, work Execute) (*Entry, error) {
	entry, edition, err := c.execute(ctx, q, work)
	// The response may belong to a release that this server has not detected yet,
	// even if it is an error, such as for a tool that no longer exists.
	if renewErr := c.renew(edition); renewErr != nil {
		return nil, renewErr
	}
	return entry, err
}

// execute executes a query and caches the response for its edition.
func (c *Cache) execute(ctx context.Context, q Key, work Execute) (entry *Entry, edition Edition, err error) {
	defer func() {
		if caught := recover(); caught != nil { // the middleware does not see panics of this goroutine
			entry, err = nil, fmt.Errorf("panic: %v", caught)
			c.log.ErrorContext(ctx, "query execution panicked", "operation", name(q), "panic", caught, "stack", string(debug.Stack()), "request_id", problem.RequestID(ctx))
		}
	}()
	before := c.Edition()
	entry, release, err := work(ctx)
	edition = before.Of(release)
	switch {
	case err == nil && release > 0:
		c.add(edition, q, entry, work)
	case entry != nil:
		entry.sign(c.secret, q)
	}
	return entry, edition, err
}

// add signs and caches a response.
func (c *Cache) add(edition Edition, q Key, entry *Entry, work Execute) {
	entry.sign(c.secret, q)
	c.set(key{edition: edition, query: q}, &item{Entry: entry, work: work}, entry.weight())
}

// Size returns how many bytes the cache may hold.
func (c *Cache) Size() int64 { return c.size }

// Reserve reduces the cache by memory that is used elsewhere, within the same
// budget.
func (c *Cache) Reserve(bytes int64) { c.items.SetMaximum(uint64(max(c.size-bytes, c.size/4))) }

// Entries returns the approximate number of cached items.
func (c *Cache) Entries() int { return c.items.EstimatedSize() }

// Weight returns how many bytes the cached items take.
func (c *Cache) Weight() uint64 { return c.items.WeightedSize() }

type cachedOnlyKey struct{}

// WithCachedOnly returns a context in which Get returns an error instead of
// executing a query that is not cached.
func WithCachedOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, cachedOnlyKey{}, true)
}

// CachedOnly reports whether ctx comes from WithCachedOnly.
func CachedOnly(ctx context.Context) bool { return ctx.Value(cachedOnlyKey{}) != nil }

// Table caches values of one kind, such as parsed documents, parsed requests or
// counts, within the same budget as the responses. Any value may be evicted at any
// time.
type Table[V any] struct {
	cache *Cache
	name  string
}

// NewTable returns the table with a name. Tables with the same name share their
// values.
func NewTable[V any](c *Cache, name string) *Table[V] { return &Table[V]{c, name} }

// Get returns a cached value. The edition is Timeless for values that do not depend
// on the release.
func (t *Table[V]) Get(e Edition, q Key) (value V, ok bool) {
	found, ok := t.cache.items.GetIfPresent(key{t.name, e, q})
	if !ok {
		return value, false
	}
	return found.value.(V), true
}

// Delete removes a value.
func (t *Table[V]) Delete(e Edition, q Key) { t.cache.items.Invalidate(key{t.name, e, q}) }

// DeleteFunc removes the values that match.
func (t *Table[V]) DeleteFunc(matches func(V) bool) {
	for k, found := range t.cache.items.All() {
		if k.table == t.name && matches(found.value.(V)) {
			t.cache.items.Invalidate(k)
		}
	}
}

// Put caches a value; weight is its approximate size in bytes.
func (t *Table[V]) Put(e Edition, q Key, value V, weight int) {
	t.cache.set(key{t.name, e, q}, &item{value: value}, weight)
}
