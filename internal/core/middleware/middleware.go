// Package middleware holds the links of the chain that know nothing of the
// catalog: a request's id, its log line, and what a panic answers.
package middleware

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"palmares/internal/core/problem"
)

// Link wraps a handler.
type Link func(http.Handler) http.Handler

// Chain puts links around a handler, the first outermost.
func Chain(handler http.Handler, links ...Link) http.Handler {
	for i := len(links) - 1; i >= 0; i-- {
		handler = links[i](handler)
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

// RequestID names each request, for the log and for its errors.
func RequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header()["X-Request-Id"] = []string{id}
		next.ServeHTTP(w, r.WithContext(problem.WithRequestID(r.Context(), id)))
	})
}

// Recover turns a panic into an answer that shows nothing of it.
func Recover(log *slog.Logger) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				caught := recover()
				if caught == nil {
					return
				}
				if caught == http.ErrAbortHandler {
					panic(caught) // the server's own way to drop a connection
				}
				log.ErrorContext(r.Context(), "a handler panicked", "panic", caught, "stack", string(debug.Stack()), "request_id", problem.RequestID(r.Context()))
				problem.Write(w, fmt.Errorf("panic: %v", caught))
			}()
			next.ServeHTTP(w, r)
		})
	}
}
