package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// listed splits a header's comma-separated names, in lower case.
func listed(value string) (names []string) {
	for name := range strings.SplitSeq(value, ",") {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	return names
}

func TestPreflightAllowsClientHeaders(t *testing.T) {
	r := httptest.NewRequest(http.MethodOptions, "/graphql", nil)
	r.Header.Set("Origin", "https://dashboard.example")
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	w := httptest.NewRecorder()
	CORS(http.NotFoundHandler()).ServeHTTP(w, r)
	check.Equal(t, w.Code, http.StatusNoContent, "status")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, POST, QUERY",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, If-Range, Last-Event-ID, Range, traceparent, apollographql-client-name, apollographql-client-version, MCP-Protocol-Version",
	} {
		check.Equal(t, w.Header().Get(name), want, name)
	}
}

func TestResponseHeadersAreExposed(t *testing.T) {
	w := httptest.NewRecorder()
	CORS(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/tools", nil))
	check.Equal(t, w.Header().Get("Access-Control-Allow-Origin"), "*")
	exposed := listed(w.Header().Get("Access-Control-Expose-Headers"))
	for _, want := range []string{
		"accept-query", "allow", "cache-status", "content-disposition", "content-location", "deprecation", "etag", "link", "ratelimit", "ratelimit-policy", "retry-after", "sunset", "www-authenticate", "x-graphql-cost", "x-graphql-cost-limit",
		"x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-tier", "x-request-id", "x-service-release", "x-service-updated-at", "x-total-count",
	} {
		check.True(t, slices.Contains(exposed, want), "got exposed headers %q, want %s among them", exposed, want)
	}
}

func TestRequestLogLine(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/tools":           "/api/v1/tools",
		`/"quoted"\`:              `/"quoted"\`,
		"/caf%C3%A9/%0a%00":       "/café/\n\x00",
		"/x/pal_0123456789abcdef": "/x/pal_…",
		"/oat_0123456789abcdef/ort_0123456789abcdef": "/oat_…/ort_…",
		"/q/qt_0123456789ABCDEF":                     "/q/qt_…",
		"/x?q=secret":                                "/x",
	} {
		var out bytes.Buffer
		lines := NewLogBuffer(&out)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("four")) })
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r = r.WithContext(problem.WithRequestID(r.Context(), "R1"))
		var observed Observed
		Log(slog.New(slog.NewJSONHandler(lines, nil)), func(o Observed) { observed = o })(handler).ServeHTTP(httptest.NewRecorder(), r)
		lines.Flush()
		var fields map[string]any
		check.OK(t, json.Unmarshal(out.Bytes(), &fields), &out)
		check.True(t, fields["time"] != nil && fields["took"] == float64(observed.Took) && observed.Status == 200, "got %s, want a time and the duration of %+v", out.String(), observed)
		delete(fields, "time")
		delete(fields, "took")
		for name, value := range map[string]any{"level": "INFO", "msg": "request", "method": "GET", "path": want, "status": 200.0, "bytes": 4.0, "request_id": "R1"} {
			check.Equal(t, fields[name], value, "%s: %s", path, name)
			delete(fields, name)
		}
		check.Equal(t, len(fields), 0, "additional fields %v", fields)
	}
}

const soon = time.Millisecond

var quiet = slog.New(slog.DiscardHandler)

func refuse(w http.ResponseWriter, _ *http.Request, err error) { problem.Write(w, err) }

// withHeader represents the middleware around Deadline.
func withHeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "R1")
		next.ServeHTTP(w, r)
	})
}

// serveWithin starts a server whose handler has a deadline.
func serveWithin(t *testing.T, limit time.Duration, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(Chain(handler, withHeader, Recover(quiet), Deadline(limit, quiet, refuse)))
	t.Cleanup(server.Close)
	return server
}

func call(t *testing.T, server *httptest.Server, method string) (*http.Response, string) {
	t.Helper()
	r := check.Try(http.NewRequestWithContext(t.Context(), method, server.URL, nil)).OK(t)
	response := check.Try(server.Client().Do(r)).OK(t)
	defer response.Body.Close()
	body := check.Try(io.ReadAll(response.Body)).OK(t)
	return response, string(body)
}

// What a handler writes after the deadline is discarded, and it may write nothing.
func TestHandlerExceedsDeadline(t *testing.T) {
	for method, message := range map[string]string{
		http.MethodGet: "The server took too long to respond. Try again", http.MethodPost: "may or may not have been saved",
	} {
		for _, silent := range []bool{true, false} {
			server := serveWithin(t, soon, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Set-Cookie", "late=1")
				<-r.Context().Done()
				if silent {
					return
				}
				w.WriteHeader(http.StatusOK)
				check.Try(w.Write([]byte("late"))).Is(t, http.ErrHandlerTimeout, "%s: a late write", method)
			})
			response, body := call(t, server, method)
			check.Equal(t, response.StatusCode, http.StatusServiceUnavailable, method)
			check.Contains(t, body, message, method)
			check.Equal(t, response.Header.Get("X-Request-Id"), "R1", "%s: headers %v", method, response.Header)
			check.Equal(t, response.Header.Get("Set-Cookie"), "", "%s: headers %v", method, response.Header)
			check.True(t, response.Header.Get("Retry-After") != "", "%s: got headers %v, want only those of the chain and Retry-After", method, response.Header)
		}
	}
}

// A response that was started in time may take longer than the limit.
func TestStartedResponseIsNotCutOff(t *testing.T) {
	server := serveWithin(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		_, _ = w.Write([]byte("first,"))
		resume := PauseDeadline(r.Context())
		r.Context().Value(timerKey{}).(*pausableTimer).left = 0
		resume() // does not restart the timer
		time.Sleep(20 * soon)
		check.Equal(t, r.Context().Err(), nil, "context error")
		_, _ = w.Write([]byte("second"))
	})
	response, body := call(t, server, http.MethodGet)
	check.Equal(t, response.StatusCode, http.StatusOK, response.Header)
	check.Equal(t, body, "first,second", response.Header)
	check.Equal(t, response.Header.Get("Content-Type"), "text/csv", response.Header)
}

// Time spent waiting for other servers does not count.
func TestPausedDeadline(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * soon) }))
	defer other.Close()
	expired := make(chan struct{})
	timer := newPausableTimer(time.Hour, func() { close(expired) })
	ctx := context.WithValue(t.Context(), timerKey{}, timer)
	first, second := PauseDeadline(ctx), PauseDeadline(ctx)
	first()
	first()
	timer.mu.Lock()
	check.Equal(t, timer.pauses, 1, "pauses")
	timer.left = 0 // so that it expires when it resumes
	timer.mu.Unlock()
	r := check.Try(http.NewRequestWithContext(ctx, http.MethodGet, other.URL, nil)).OK(t)
	response := check.Try((&http.Client{Transport: PausingTransport{http.DefaultTransport}}).Do(r)).OK(t)
	_ = response.Body.Close()
	select {
	case <-expired:
		t.Error("got an expired timer, want it paused")
	default:
	}
	second()
	<-expired
	PauseDeadline(t.Context())() // does nothing without a deadline
}

// Handlers that write nothing or panic respond as they would without a deadline.
func TestDeadlineLeavesResponsesUnchanged(t *testing.T) {
	server := serveWithin(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Empty", "1") })
	response, body := call(t, server, http.MethodGet)
	check.Equal(t, response.StatusCode, http.StatusOK, "nothing written: %v", response.Header)
	check.Equal(t, response.Header.Get("X-Empty"), "1", "nothing written: %v", response.Header)
	check.Equal(t, body, "", "nothing written: %v", response.Header)
	server = serveWithin(t, time.Minute, func(http.ResponseWriter, *http.Request) { panic("a bug") })
	response, body = call(t, server, http.MethodGet)
	check.Equal(t, response.StatusCode, http.StatusInternalServerError, "panic")
	check.Lacks(t, body, "a bug", "panic")
	server = serveWithin(t, time.Minute, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if response, err := server.Client().Get(server.URL); err == nil {
		_ = response.Body.Close()
		t.Errorf("http.ErrAbortHandler: got %d, want a closed connection", response.StatusCode)
	}
}
