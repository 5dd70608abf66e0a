package middleware

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// Refuse writes the response to a request that goes no further.
type Refuse func(http.ResponseWriter, *http.Request, error)

// Deadline limits how long a handler may take to start its response. After
// that, refuse writes one instead, and the request's context ends. The handler
// runs in its own goroutine, because a database that hangs may ignore the
// context; what an abandoned handler still writes is dropped. Responses are not
// buffered: one that has started may take as long as it needs.
func Deadline(limit time.Duration, log *slog.Logger, refuse Refuse) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			timer := newPausableTimer(limit)
			defer timer.stop()
			gate := &gatedWriter{to: w, header: w.Header().Clone()}
			done := make(chan any, 1)
			go func() {
				// Panics would end the process here, out of reach of the chain.
				defer func() { done <- recover() }()
				Recover(log)(next).ServeHTTP(gate, r.WithContext(context.WithValue(ctx, timerKey{}, timer)))
			}()
			var aborted any
			select {
			case aborted = <-done:
			case <-timer.expired:
				if gate.close() {
					log.ErrorContext(ctx, "request timed out", "path", Masked(r.URL.Path), "limit", limit, "request_id", problem.RequestID(ctx))
					refuse(w, r, timedOut(r))
					return
				}
				aborted = <-done // it had just started its response
			}
			if aborted != nil {
				panic(aborted) // http.ErrAbortHandler, which Recover passes on
			}
			gate.start() // sends the headers of handlers that wrote nothing
		})
	}
}

// timedOut returns the error for the caller. A handler that waits for a commit
// may have changed something.
func timedOut(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return problem.New(problem.Timeout, "The server took too long to respond. Try again in a minute.")
	}
	return problem.New(problem.Timeout, "The server took too long to respond, and your change may or may not have been saved. Check before you try again in a minute.")
}

// PauseDeadline stops the timer of Deadline until resume is called, while a
// third-party server is called with a timeout of its own.
func PauseDeadline(ctx context.Context) (resume func()) {
	timer, found := ctx.Value(timerKey{}).(*pausableTimer)
	if !found {
		return func() {}
	}
	timer.pause()
	return sync.OnceFunc(timer.resume)
}

// PausingTransport makes requests that do not count towards Deadline.
type PausingTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t PausingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	defer PauseDeadline(r.Context())()
	return t.RoundTripper.RoundTrip(r)
}

type timerKey struct{}

// pausableTimer closes expired once it has run for its time. Pauses may
// overlap.
type pausableTimer struct {
	expired chan struct{}
	mu      sync.Mutex
	timer   *time.Timer
	ends    time.Time
	left    time.Duration // while it is paused
	pauses  int
}

func newPausableTimer(limit time.Duration) *pausableTimer {
	t := &pausableTimer{expired: make(chan struct{}), ends: time.Now().Add(limit)}
	t.timer = time.AfterFunc(limit, sync.OnceFunc(func() { close(t.expired) }))
	return t
}

func (t *pausableTimer) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses++; t.pauses == 1 {
		t.timer.Stop()
		t.left = time.Until(t.ends)
	}
}

func (t *pausableTimer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses--; t.pauses == 0 {
		t.ends = time.Now().Add(t.left)
		t.timer.Reset(max(t.left, 0))
	}
}

// stop ends the timer for good: resume does not start it again.
func (t *pausableTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses++
	t.timer.Stop()
}

// gatedWriter passes a response on unless it comes too late. The first write
// decides, so that only one goroutine ever uses the writer behind it.
type gatedWriter struct {
	to     http.ResponseWriter
	header http.Header // the handler's own; copied when it starts its response

	mu      sync.Mutex
	started bool
	closed  bool
}

func (g *gatedWriter) Header() http.Header { return g.header }

func (g *gatedWriter) WriteHeader(status int) {
	if g.start() {
		g.to.WriteHeader(status)
	}
}

func (g *gatedWriter) Write(data []byte) (int, error) {
	if !g.start() {
		return 0, http.ErrHandlerTimeout
	}
	return g.to.Write(data)
}

// start reports whether the handler may write.
func (g *gatedWriter) start() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.started && !g.closed {
		g.started = true
		header := g.to.Header()
		clear(header)
		maps.Copy(header, g.header)
	}
	return g.started
}

// close keeps the handler from writing, unless it has started.
func (g *gatedWriter) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = !g.started
	return g.closed
}
