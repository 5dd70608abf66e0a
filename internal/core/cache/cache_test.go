package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

func newCache() *Cache {
	c := New(1<<20, nil, slog.New(slog.DiscardHandler))
	c.Publish(1)
	return c
}

var tools = Key{Operation: "tools", Variables: "?limit=2"}

// executing returns an Execute that responds with the release and counts its
// executions.
func executing(times *atomic.Int64, release *atomic.Int64) Execute {
	return func(context.Context) (*Entry, int, error) {
		times.Add(1)
		return NewEntry(fmt.Append(nil, "release ", release.Load()), http.Header{}), int(release.Load()), nil
	}
}

func body(r Response) string { return string(r.forms[identity].body) }

// Concurrent requests for one response execute it once.
func TestConcurrentRequestsExecuteOnce(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	proceed := make(chan struct{})
	slow := func(ctx context.Context) (*Entry, int, error) {
		<-proceed
		return executing(&times, &release)(ctx)
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if got, err := c.Get(t.Context(), tools, slow); err != nil || body(got) != "release 1" {
				t.Errorf("got %q and %v, want release 1", body(got), err)
			}
		})
	}
	wait.Until(t, "all requests wait for the response", func() bool { return waiting(c) == 1000 })
	close(proceed)
	all.Wait()
	check.Equal(t, times.Load(), 1, "executions")
	check.Try(c.Get(t.Context(), Key{Operation: "tools", Variables: "?limit=3"}, slow)).OK(t)
	check.Equal(t, times.Load(), 2)
}

// A caller that disconnects does not cancel the execution for others.
func TestOneCallerLeaves(t *testing.T) {
	c := newCache()
	started, proceed := make(chan struct{}), make(chan struct{})
	slow := func(ctx context.Context) (*Entry, int, error) {
		close(started)
		<-proceed
		return NewEntry([]byte("x"), nil), 1, ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.Get(ctx, tools, slow)
		left <- err
	}()
	<-started
	stayed := make(chan error)
	go func() {
		_, err := c.Get(t.Context(), tools, slow)
		stayed <- err
	}()
	wait.Until(t, "both requests wait for the response", func() bool { return waiting(c) == 2 })
	leave()
	check.Is(t, <-left, context.Canceled, "caller that left")
	close(proceed)
	check.Equal(t, <-stayed, nil, "caller that stayed")
}

// waiting returns how many requests wait for the response to tools.
func waiting(c *Cache) int {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f := c.flights[key{edition: c.Edition(), query: tools}]; f != nil {
		return f.waiting
	}
	return 0
}

// When all callers have disconnected, the execution is canceled, and the next caller
// starts another one.
func TestAllCallersLeave(t *testing.T) {
	c := newCache()
	started, stopped := make(chan struct{}), make(chan error)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-started
		leave()
	}()
	check.Try(c.Get(ctx, tools, func(ctx context.Context) (*Entry, int, error) {
		close(started)
		<-ctx.Done()
		stopped <- ctx.Err()
		return nil, 0, ctx.Err()
	})).Is(t, context.Canceled, "caller that left")
	entry := check.Try(c.Get(t.Context(), tools, func(context.Context) (*Entry, int, error) { return NewEntry([]byte("x"), nil), 1, nil })).OK(t, "later caller")
	check.True(t, entry.Entry != nil, "later caller: got no response, want one")
	wait.Receive(t, "the execution stops", stopped)
}

// Errors and panics reach all waiting callers, and are not cached.
func TestFailuresAreNotCached(t *testing.T) {
	var log strings.Builder
	c := New(1<<20, nil, slog.New(slog.NewTextHandler(&log, nil)))
	c.Publish(1)
	for _, fails := range []Execute{
		func(context.Context) (*Entry, int, error) { return nil, 0, errors.New("no") },
		func(context.Context) (*Entry, int, error) { panic("on purpose") },
	} {
		check.Try(c.Get(t.Context(), tools, fails)).Fails(t)
	}
	check.Contains(t, log.String(), "on purpose", "log")
	var times, release atomic.Int64
	release.Store(1)
	got := check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t, "afterwards")
	check.Equal(t, body(got), "release 1", "afterwards")
}

// A response without a release is not cached.
func TestBeforeTheFirstRelease(t *testing.T) {
	c := New(1<<20, nil, slog.New(slog.DiscardHandler))
	var times, release atomic.Int64
	for range 2 {
		check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
	}
	c.Publish(1)
	release.Store(1)
	got, _ := c.Get(t.Context(), tools, executing(&times, &release))
	check.Equal(t, times.Load(), 3)
	check.Equal(t, body(got), "release 1")
}

func TestCacheStaysWithinItsSize(t *testing.T) {
	c := newCache()
	large := strings.Repeat("x", 20_000)
	for i := range 500 {
		work := func(context.Context) (*Entry, int, error) { return NewEntry([]byte(large), nil), 1, nil }
		check.Try(c.Get(t.Context(), Key{Operation: "tools", Variables: fmt.Sprint(i)}, work)).OK(t)
	}
	c.items.CleanUp()
	w := c.Weight()
	check.True(t, w <= 1<<20 && w >= 1<<19, "got %d bytes in the cache, want %d to %d", w, 1<<19, 1<<20)
}

// silentWriter discards a response.
type silentWriter struct{ header http.Header }

func (w silentWriter) Header() http.Header         { return w.header }
func (w silentWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w silentWriter) WriteHeader(int)             {}

// Streams whose clients read slowly take little memory in every encoding.
func TestMemoryOfStreams(t *testing.T) {
	const streams, most = 4, 5 << 20
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for _, encoding := range []string{"identity", "gzip", "br", "zstd"} {
		before := heap()
		started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, streams)
		for range streams {
			go func() {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", encoding+", identity;q=0.1")
				entry := NewEntry([]byte("list"), http.Header{})
				ended <- Response{Entry: entry}.Stream(silentWriter{http.Header{}}, r, time.Minute, func(w io.Writer) error {
					for i := range 60_000 { // megabytes
						if _, err := fmt.Fprintf(w, "Outil %d, note %d, à partir de %d €/mois\n", i, i*7919%1000, i*104_729%10_007); err != nil {
							return err
						}
					}
					started <- struct{}{}
					<-finish
					return nil
				})
			}()
		}
		for range streams {
			<-started
		}
		each := (heap() - before) / streams
		check.True(t, each <= most, "%s: got %d bytes for each stream, want at most %d", encoding, each, most)
		close(finish)
		for range streams {
			check.Equal(t, <-ended, nil, encoding)
		}
	}
}
