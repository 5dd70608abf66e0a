// Package middleware holds the links of the HTTP chain that know nothing of the
// catalog: request ids, the request log, CORS, limits and panics.
package middleware

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// MethodQuery is the method of RFC 10008: like GET, but with a body.
const MethodQuery = "QUERY"

// Link wraps a handler.
type Link func(http.Handler) http.Handler

// Chain puts links around a handler, the first outermost.
func Chain(handler http.Handler, links ...Link) http.Handler {
	for _, link := range slices.Backward(links) {
		handler = link(handler)
	}
	return handler
}

// When applies a link to some requests only.
func When(applies func(*http.Request) bool, link Link) Link {
	return func(next http.Handler) http.Handler {
		linked := link(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if applies(r) {
				linked.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// RequestID gives each request an id, for the log and for error responses.
func RequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header()["X-Request-Id"] = []string{id}
		next.ServeHTTP(w, r.WithContext(problem.WithRequestID(r.Context(), id)))
	})
}

// Recover turns a panic into an error response that shows nothing of it.
func Recover(log *slog.Logger) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				caught := recover()
				if caught == nil {
					return
				}
				if caught == http.ErrAbortHandler {
					panic(caught) // net/http's way to drop a connection
				}
				log.ErrorContext(r.Context(), "handler panicked", "panic", caught, "stack", string(debug.Stack()), "request_id", problem.RequestID(r.Context()))
				problem.Write(w, fmt.Errorf("panic: %v", caught))
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// LimitBody rejects a request whose declared body is larger than its path
// allows, before anything reads it: the first read makes net/http send "100
// Continue", which invites the client to send all of it. If limit returns 0, the
// path allows no body; if it is negative, the handler decides. The handler has
// to limit bodies of unknown length.
func LimitBody(limit func(*http.Request) int64, refuse Refuse) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 { // nearly always
				next.ServeHTTP(w, r)
				return
			}
			switch most := limit(r); {
			case most == 0:
				refuse(w, r, problem.New(problem.TooLarge, "This path takes no request body. Send the request without one."))
			case most > 0 && r.ContentLength > most:
				refuse(w, r, problem.New(problem.TooLarge, "The request body has %d bytes. At most %d are allowed.", r.ContentLength, most))
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

// Values of the CORS headers. They are shared by all responses: never modify
// them.
var (
	everyone = []string{"*"}
	// exposed lists the response headers that scripts of other origins may
	// read, beside those that browsers always let them read (such as
	// Cache-Control and Last-Modified).
	exposed = []string{strings.Join([]string{
		"Accept-Query", "Allow", "Cache-Status", "Content-Disposition", "Content-Location", "Deprecation", "ETag", "Link", "Memento-Datetime",
		"RateLimit", "RateLimit-Policy", "Retry-After", "Sunset", "WWW-Authenticate",
		"X-GraphQL-Cost", "X-GraphQL-Cost-Limit",
		"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Tier",
		"X-Request-Id", "X-Service-Release", "X-Service-Updated-At", "X-Total-Count",
	}, ", ")}
	// accepted lists the request headers that scripts of other origins may
	// send. Tracing libraries, Apollo Client and clients that resume an event
	// stream add theirs to every request; a browser drops the whole request
	// when one of them is missing here.
	accepted = strings.Join([]string{
		"Authorization", "Content-Type", "If-None-Match", "Last-Event-ID", "traceparent",
		"apollographql-client-name", "apollographql-client-version",
	}, ", ")
)

// CORS lets pages of every origin read responses, and handles preflight
// requests. It sets the headers on all responses, because a shared cache may
// reuse one for another origin.
func CORS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["Access-Control-Allow-Origin"] = everyone
		header["Access-Control-Expose-Headers"] = exposed
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, "+MethodQuery)
			header.Set("Access-Control-Allow-Headers", accepted)
			header.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Lines buffers log lines and writes them together every few milliseconds,
// because writing each line by itself would slow down a busy server.
type Lines struct {
	w      io.Writer
	mu     sync.Mutex
	buffer *bufio.Writer // a timer is running while it holds anything
}

const (
	flushAfter = 50 * time.Millisecond
	flushSize  = 64 << 10
)

// NewLines returns a buffer that writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w, buffer: bufio.NewWriterSize(w, flushSize)} }

// Write implements io.Writer.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buffer.Buffered() == 0 {
		time.AfterFunc(flushAfter, l.Flush)
	}
	return l.buffer.Write(line)
}

// Flush writes the buffered lines.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buffer.Flush() != nil {
		l.buffer.Reset(l.w) // the error could not be logged, and must not affect later lines
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
			response := &statusWriter{ResponseWriter: w, ctx: r.Context()}
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
	ctx    context.Context
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
	n, err := writeJoined(w.ctx, w.ResponseWriter, data)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
