package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// Lines buffers log lines and writes them together every few milliseconds,
// because writing each line by itself would slow down a busy server.
type Lines struct {
	w       io.Writer
	mu      sync.Mutex
	pending []byte // a timer is running while there is any
}

const (
	flushAfter = 50 * time.Millisecond
	flushSize  = 64 << 10
)

// NewLines returns a buffer that writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Write implements io.Writer for whole lines.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		time.AfterFunc(flushAfter, l.Flush)
	}
	l.pending = append(l.pending, line...)
	if len(l.pending) >= flushSize {
		l.flush()
	}
	return len(line), nil
}

// Flush writes the buffered lines.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

func (l *Lines) flush() {
	if len(l.pending) > 0 {
		_, _ = l.w.Write(l.pending) // an error could not be logged
		l.pending = l.pending[:0]
	}
}

// Observed is a request and its response.
type Observed struct {
	Request *http.Request
	Header  http.Header // of the response
	Status  int
	Took    time.Duration
}

// Log logs each request with its path but without its query, which may hold
// anything, and passes it to observers.
func Log(log *slog.Logger, observers ...func(Observed)) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			response := &statusWriter{ResponseWriter: w}
			defer func() {
				took := time.Since(start)
				for _, observe := range observers {
					observe(Observed{r, w.Header(), response.status, took})
				}
				if !log.Enabled(r.Context(), slog.LevelInfo) {
					return
				}
				// Every request has a line, so it is written without looking up the source line, as Info would.
				line := slog.NewRecord(start.Add(took), slog.LevelInfo, "request", 0)
				line.AddAttrs(slog.String("method", r.Method), slog.String("path", Masked(r.URL.Path)),
					slog.Int("status", response.status), slog.Int64("bytes", response.bytes), slog.Duration("took", took),
					slog.String("request_id", problem.RequestID(r.Context())))
				_ = log.Handler().Handle(r.Context(), line) // an error could not be logged
			}()
			next.ServeHTTP(response, r)
		})
	}
}

// keyPattern matches API keys, which some clients send in the path.
var keyPattern = regexp.MustCompile(`pal_[0-9A-Za-z]{8,}`)

// Masked returns a path without API keys.
func Masked(path string) string {
	if !strings.Contains(path, "pal_") {
		return path
	}
	return keyPattern.ReplaceAllString(path, "pal_…")
}

// statusWriter records the status and size of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
