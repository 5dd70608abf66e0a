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

// Refuse writes the error response to a rejected request.
type Refuse func(http.ResponseWriter, *http.Request, error)

// Deadline limits how long a handler may take to start its response. After
// that, refuse writes an error instead, and the request's context is canceled.
// The handler runs in its own goroutine, because a database that hangs may ignore
// the context; anything an abandoned handler writes is discarded. Responses are
// not buffered: one that has started may take as long as it needs.
func Deadline(limit time.Duration, log *slog.Logger, refuse Refuse) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			timer := newPausableTimer(limit)
			defer timer.stop()
			gate := &gatedWriter{to: w, header: w.Header().Clone()}
			done := make(chan any, 1)
			go func() {
				// Recover in the outer chain does not see panics of this goroutine, which
				// would end the process.
				defer func() { done <- recover() }()
				Recover(log)(next).ServeHTTP(gate, r.WithContext(context.WithValue(ctx, timerKey{}, timer)))
			}()
			var aborted any
			select {
			case aborted = <-done:
			case <-timer.expired:
				if gate.close() {
					log.ErrorContext(ctx, "request timed out", "path", MaskKeys(r.URL.Path), "limit", limit, "request_id", problem.RequestID(ctx))
					refuse(w, r, timedOut(r))
					return
				}
				aborted = <-done // the response has just started
			}
			if aborted != nil {
				panic(aborted) // http.ErrAbortHandler, which Recover passes on
			}
			gate.start() // sends the headers of handlers that wrote nothing
		})
	}
}

// timedOut returns the error for the caller. A handler that was waiting for a
// commit may have changed data.
func timedOut(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return problem.New(problem.Timeout, "The server took too long to respond. Try again in a minute.")
	}
	return problem.New(problem.Timeout, "The server took too long to respond, and your change may or may not have been saved. Check before you try again.")
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

// pausableTimer closes expired when its time is up. Pauses may overlap.
type pausableTimer struct {
	expired chan struct{}
	mu      sync.Mutex
	timer   *time.Timer
	ends    time.Time
	left    time.Duration // remaining time while paused
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

// stop stops the timer permanently: resume does not restart it.
func (t *pausableTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses++
	t.timer.Stop()
}

// gatedWriter forwards a response unless it starts too late. The first write
// decides, so that only one goroutine ever uses the underlying writer.
type gatedWriter struct {
	to     http.ResponseWriter
	header http.Header // the handler's own; copied when the response starts

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

// close prevents the handler from writing and reports whether it did: a response
// that has started is not affected.
func (g *gatedWriter) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = !g.started
	return g.closed
}
