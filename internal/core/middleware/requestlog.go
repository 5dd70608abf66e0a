package middleware

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"palmares/internal/core/problem"
)

// Lines gathers log lines for a moment and writes them together: a busy server
// answers faster than a system takes single lines.
type Lines struct {
	w  io.Writer
	mu sync.Mutex
	// pending waits for a timer that is set while there is any.
	pending []byte
}

const (
	gatherTime = 50 * time.Millisecond
	gatherSize = 64 << 10
)

// NewLines writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Write takes whole lines.
func (l *Lines) Write(line []byte) (int, error) {
	l.add(func(pending []byte) []byte { return append(pending, line...) })
	return len(line), nil
}

func (l *Lines) add(line func([]byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		time.AfterFunc(gatherTime, l.Flush)
	}
	l.pending = line(l.pending)
	if len(l.pending) >= gatherSize {
		l.flush()
	}
}

// Flush writes what is gathered.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

func (l *Lines) flush() {
	if len(l.pending) > 0 {
		_, _ = l.w.Write(l.pending) // there is nobody to tell
		l.pending = l.pending[:0]
	}
}

// Observed is a request and what came of it.
type Observed struct {
	Request *http.Request
	Header  http.Header // of the answer
	Status  int
	Took    time.Duration
}

// Log writes a line for each request: its path, never its query, which may
// hold anything. For machines that is JSON of the form that slog gives it,
// made by hand, since every request has one. Observers are told the same.
func Log(log *slog.Logger, lines *Lines, observers ...func(Observed)) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			watched := &statusWriter{ResponseWriter: w}
			defer func() {
				for _, observe := range observers {
					observe(Observed{r, w.Header(), watched.status, time.Since(start)})
				}
				if lines != nil {
					lines.add(func(pending []byte) []byte { return appendRequest(pending, r, watched, start, time.Now()) })
					return
				}
				log.InfoContext(r.Context(), "request", "method", r.Method, "path", Masked(r.URL.Path), "status", watched.status,
					"bytes", watched.bytes, "took", time.Since(start), "request_id", problem.RequestID(r.Context()))
			}()
			next.ServeHTTP(watched, r)
		})
	}
}

func appendRequest(line []byte, r *http.Request, answer *statusWriter, start, end time.Time) []byte {
	line = append(line, `{"time":"`...)
	line = end.AppendFormat(line, time.RFC3339Nano)
	line = append(line, `","level":"INFO","msg":"request","method":`...)
	line = appendText(line, r.Method)
	line = append(line, `,"path":`...)
	line = appendText(line, Masked(r.URL.Path))
	line = append(line, `,"status":`...)
	line = strconv.AppendInt(line, int64(answer.status), 10)
	line = append(line, `,"bytes":`...)
	line = strconv.AppendInt(line, answer.bytes, 10)
	line = append(line, `,"took":`...)
	line = strconv.AppendInt(line, int64(end.Sub(start)), 10)
	line = append(line, `,"request_id":`...)
	line = appendText(line, problem.RequestID(r.Context()))
	if span := trace.SpanContextFromContext(r.Context()); span.HasTraceID() {
		line = append(line, `,"trace_id":`...)
		line = appendText(line, span.TraceID().String())
	}
	return append(line, "}\n"...)
}

// appendText writes a JSON text; mostly it needs no escapes.
func appendText(line []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a text can always be written
			return append(line, quoted...)
		}
	}
	line = append(line, '"')
	line = append(line, text...)
	return append(line, '"')
}

// secretShaped is what looks like an API key, which some send in the address.
var secretShaped = regexp.MustCompile(`pal_[0-9A-Za-z]{8,}`)

// Masked is a path without keys.
func Masked(path string) string {
	if !strings.Contains(path, "pal_") {
		return path
	}
	return secretShaped.ReplaceAllString(path, "pal_…")
}

// statusWriter remembers what was answered.
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
