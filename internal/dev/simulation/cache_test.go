package simulation

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/core/clock"
	"palmares/internal/core/problem"
)

const (
	// visibleWithin is the documented guarantee for a new release.
	visibleWithin = 2 * time.Second
	pollEvery     = time.Second // of a server for new releases
	renewers      = 4
)

// edition is what a response is of. A restored backup starts a new era.
type edition struct{ era, release int }

func (e edition) before(o edition) bool {
	return e.era < o.era || e.era == o.era && e.release < o.release
}

type cacheWorld struct {
	*world
	cache *cache.Cache

	mu        sync.Mutex
	stored    edition // in the database
	changes   int     // of the database
	down      bool
	latency   time.Duration
	served    edition // the newest that was served
	published edition // what the server has noticed
	warming   int     // executions of renewals
}

// simulateCache checks that a new release is visible in time, that no response is
// older than an earlier one, that none is of another query or of a time before a
// backup was restored, and that renewals do not pile up.
func simulateCache(base *world) {
	w := &cacheWorld{world: base, cache: cache.New(1<<20, []byte("secret"), discard), stored: edition{1, 1}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.begin()
	go clock.Every(ctx, pollEvery, w.poll)
	time.Sleep(pollEvery)
	for w.left() > 0 {
		w.change()
		for range 1 + w.IntN(4) {
			w.burst()
			time.Sleep(w.upTo(2 * time.Second))
		}
		time.Sleep(w.upTo(3 * time.Minute))
	}
}

// poll publishes a new release, as a server does.
func (w *cacheWorld) poll() {
	w.mu.Lock()
	stored, published, down := w.stored, w.published, w.down
	w.mu.Unlock()
	switch {
	case down || stored == published:
		return
	case stored.era != published.era:
		w.cache.Restart(stored.release)
	case w.cache.Renew(stored.release) != nil:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = stored
	w.happened("published %v", stored)
}

func (w *cacheWorld) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = w.oneIn(5)
	w.latency = w.upTo(50 * time.Millisecond)
	if w.oneIn(3) {
		w.latency = w.upTo(900 * time.Millisecond) // renewals do not wait for more than 500 ms
	}
	switch w.IntN(6) {
	case 0:
		w.stored = edition{w.stored.era + 1, 1 + w.IntN(w.stored.release)}
	case 1, 2, 3:
		w.stored.release++
	}
	w.changes++
	w.planned("the database has %v, down: %t, and takes %s", w.stored, w.down, w.latency)
	if w.down {
		return
	}
	// Only a database that works has to show its release in time.
	stored, changes := w.stored, w.changes
	time.AfterFunc(visibleWithin, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.changes == changes && w.published != stored {
			w.violated("the server publishes %v %s after %v was stored", w.published, visibleWithin, stored)
		}
	})
}

// burst requests several queries at once.
func (w *cacheWorld) burst() {
	var sent sync.WaitGroup
	for range 1 + w.IntN(10) {
		query := cache.Key{Operation: fmt.Sprintf("query %d", w.IntN(20))}
		after := w.upTo(1500*time.Millisecond) / time.Duration(1+w.IntN(10))
		sent.Go(func() {
			time.Sleep(after)
			w.request(query)
		})
	}
	sent.Wait()
}

type requestedKey struct{}

func (w *cacheWorld) request(query cache.Key) {
	w.mu.Lock()
	least := w.published
	if w.served.era == least.era && least.before(w.served) {
		least = w.served
	}
	w.mu.Unlock()
	response, err := w.cache.Get(context.WithValue(context.Background(), requestedKey{}, true), query, func(ctx context.Context) (*cache.Entry, int, error) {
		return w.execute(ctx, query)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if problem.Of(err).Code != problem.Unavailable {
			w.violated("%s: %v", query.Operation, err)
		}
		return
	}
	var got edition
	var number int
	if _, err := fmt.Sscanf(string(response.Body()), "query %d of %d %d", &number, &got.era, &got.release); err != nil || query.Operation != fmt.Sprintf("query %d", number) {
		w.violated("%s: got the response %q", query.Operation, response.Body())
	}
	if got.before(least) {
		w.violated("%s: got a response of %v after one of %v", query.Operation, got, least)
	}
	if w.served.before(got) && got.era == w.published.era { // otherwise the server has not noticed the backup yet
		w.served = got
	}
}

// execute reads the newest release.
func (w *cacheWorld) execute(ctx context.Context, query cache.Key) (*cache.Entry, int, error) {
	w.mu.Lock()
	read, down, latency := w.stored, w.down, w.latency
	warming := ctx.Value(requestedKey{}) == nil
	if warming {
		if w.warming++; w.warming > renewers {
			w.violated("%d queries are renewed at the same time", w.warming)
		}
	}
	w.mu.Unlock()
	time.Sleep(latency)
	if warming {
		w.mu.Lock()
		w.warming--
		w.mu.Unlock()
	}
	if down {
		return nil, 0, problem.New(problem.Unavailable, "The database is down.")
	}
	body := fmt.Sprintf("%s of %d %d", query.Operation, read.era, read.release)
	return cache.NewEntry([]byte(body), http.Header{}), read.release, nil
}
