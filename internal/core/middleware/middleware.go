// Package middleware contains the HTTP middleware that does not depend on the
// catalog: request IDs, the request log, CORS, limits and panic recovery.
package middleware

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// MethodQuery is the method of RFC 10008: like GET, but with a body.
const MethodQuery = "QUERY"

// Middleware wraps a handler.
type Middleware func(http.Handler) http.Handler

// Chain wraps a handler in middleware, the first outermost.
func Chain(handler http.Handler, chain ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(chain) {
		handler = wrap(handler)
	}
	return handler
}

// When applies middleware only to matching requests.
func When(matches func(*http.Request) bool, wrap Middleware) Middleware {
	return func(next http.Handler) http.Handler {
		wrapped := wrap(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if matches(r) {
				wrapped.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// RequestID assigns each request an ID for the log and for error responses. It need not
// be unpredictable.
func RequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strconv.FormatUint(rand.Uint64()|1<<63, 36) // always 13 characters
		w.Header()["X-Request-Id"] = []string{id}
		next.ServeHTTP(w, r.WithContext(problem.WithRequestID(r.Context(), id)))
	})
}

// Recover turns a panic into an error response that reveals no details.
func Recover(log *slog.Logger) Middleware {
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

// LimitBody rejects a request whose Content-Length exceeds the limit, before
// anything reads the body: the first read makes net/http send "100 Continue",
// which invites the client to send all of it. A limit of 0 allows no body, and a
// negative limit leaves the check to the handler. Handlers must limit bodies of
// unknown length themselves.
func LimitBody(limit func(*http.Request) int64, refuse Refuse) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 {
				next.ServeHTTP(w, r)
				return
			}
			switch allowed := limit(r); {
			case allowed == 0:
				refuse(w, r, problem.New(problem.TooLarge, "This path does not accept a request body."))
			case allowed > 0 && r.ContentLength > allowed:
				refuse(w, r, problem.New(problem.TooLarge, "The request body is too large: %d bytes (maximum %d).", r.ContentLength, allowed))
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

// Values of the CORS headers. They are shared by all responses: never modify
// them.
var (
	allowedOrigin = []string{"*"}
	// exposedHeaders lists the response headers that scripts from other origins
	// may read, in addition to those that browsers always expose (such as
	// Cache-Control and Last-Modified).
	exposedHeaders = []string{strings.Join([]string{
		"Accept-Query", "Allow", "Cache-Status", "Content-Disposition", "Content-Location", "Content-Range", "Deprecation", "ETag", "Link", "Memento-Datetime",
		"RateLimit", "RateLimit-Policy", "Retry-After", "Sunset", "WWW-Authenticate",
		"X-GraphQL-Cost", "X-GraphQL-Cost-Limit",
		"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Tier",
		"X-Request-Id", "X-Service-Release", "X-Service-Updated-At", "X-Total-Count",
		"X-Unknown-Parameters", "X-Unknown-Values",
	}, ", ")}
	// allowedHeaders lists the request headers that scripts from other origins
	// may send. Tracing libraries, Apollo Client, agents and clients that resume an
	// event stream add theirs to every request; a browser blocks the whole request if
	// one of them is not listed here.
	allowedHeaders = strings.Join([]string{
		"Authorization", "Content-Type", "If-None-Match", "If-Range", "Last-Event-ID", "Range", "traceparent",
		"apollographql-client-name", "apollographql-client-version", "MCP-Protocol-Version",
	}, ", ")
)

// CORS lets pages from any origin read responses, and handles preflight
// requests. It sets the headers on all responses, because a shared cache may
// reuse a response for another origin.
func CORS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["Access-Control-Allow-Origin"] = allowedOrigin
		header["Access-Control-Expose-Headers"] = exposedHeaders
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, "+MethodQuery)
			header.Set("Access-Control-Allow-Headers", allowedHeaders)
			header.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// LogBuffer collects log lines and writes them every few milliseconds, because
// writing each line separately would slow down a busy server.
type LogBuffer struct {
	w      io.Writer
	mu     sync.Mutex
	buffer *bufio.Writer // a flush is scheduled unless it is empty
}

const (
	flushAfter = 50 * time.Millisecond
	flushSize  = 64 << 10
)

// NewLogBuffer returns a buffer that writes to w.
func NewLogBuffer(w io.Writer) *LogBuffer {
	return &LogBuffer{w: w, buffer: bufio.NewWriterSize(w, flushSize)}
}

// Write implements io.Writer.
func (l *LogBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buffer.Buffered() == 0 {
		time.AfterFunc(flushAfter, l.Flush)
	}
	return l.buffer.Write(line)
}

// Flush writes the buffered lines.
func (l *LogBuffer) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buffer.Flush() != nil {
		l.buffer.Reset(l.w) // otherwise all later writes would fail with the same error
	}
}

// Observed is a request and its response.
type Observed struct {
	Request *http.Request
	Header  http.Header // of the response
	Status  int
	Took    time.Duration
}

// Log logs each request and passes it to observers. Query strings are not
// logged, because they may contain personal data.
func Log(log *slog.Logger, observers ...func(Observed)) Middleware {
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
				// Info would look up the source line, which is too slow to do for every request.
				line := slog.NewRecord(start.Add(took), slog.LevelInfo, "request", 0)
				line.AddAttrs(slog.String("method", r.Method), slog.String("path", MaskKeys(r.URL.Path)),
					slog.Int("status", response.status), slog.Int64("bytes", response.bytes), slog.Duration("took", took),
					slog.String("request_id", problem.RequestID(r.Context())))
				_ = log.Handler().Handle(r.Context(), line)
			}()
			next.ServeHTTP(response, r)
		})
	}
}

// keyPattern matches API keys, tokens of applications and other tokens, which some clients
// mistakenly send in the path.
var keyPattern = regexp.MustCompile(`(pal|oat|ort|oac|qt|dt)_[0-9A-Za-z]{8,}`)

// MaskKeys masks the keys and tokens in a path.
func MaskKeys(path string) string {
	if !strings.Contains(path, "_") {
		return path
	}
	return keyPattern.ReplaceAllString(path, "${1}_…")
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
