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
// that, the request's context is canceled and refuse writes an error instead of
// what the handler writes. Responses are not buffered: one that has started may
// take as long as it needs.
func Deadline(limit time.Duration, log *slog.Logger, refuse Refuse) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			timer := newPausableTimer(limit, cancel)
			defer timer.stop()
			before := w.Header().Clone()
			next.ServeHTTP(&timedWriter{w, timer}, r.WithContext(context.WithValue(ctx, timerKey{}, timer)))
			if timer.stop() {
				return
			}
			log.ErrorContext(ctx, "request timed out", "path", MaskKeys(r.URL.Path), "limit", limit, "request_id", problem.RequestID(ctx))
			clear(w.Header())
			maps.Copy(w.Header(), before)
			refuse(w, r, timedOut(r))
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

// pausableTimer calls expire when its time is up. Pauses may overlap.
type pausableTimer struct {
	mu      sync.Mutex
	timer   *time.Timer
	ends    time.Time
	left    time.Duration // remaining time while paused
	pauses  int
	expired bool
}

func newPausableTimer(limit time.Duration, expire func()) *pausableTimer {
	t := &pausableTimer{ends: time.Now().Add(limit)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(limit, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.pauses == 0 {
			t.expired = true
			expire()
		}
	})
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
	if t.pauses--; t.pauses == 0 && !t.expired {
		t.ends = time.Now().Add(t.left)
		t.timer.Reset(max(t.left, 0))
	}
}

// stop stops the timer permanently, because resume does not restart it, and reports
// whether it had not expired.
func (t *pausableTimer) stop() bool {
	t.pause()
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.expired
}

// timedWriter stops the timer when the response starts, and discards a response that
// starts too late.
type timedWriter struct {
	http.ResponseWriter
	timer *pausableTimer
}

func (w *timedWriter) WriteHeader(status int) {
	if w.timer.stop() {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *timedWriter) Write(data []byte) (int, error) {
	if !w.timer.stop() {
		return 0, http.ErrHandlerTimeout
	}
	return w.ResponseWriter.Write(data)
}
