package middleware

import (
	"net/http"
	"strings"
)

// Values of the CORS headers. They are shared by all responses: never modify
// them.
var (
	everyone = []string{"*"}
	// exposed lists the response headers that scripts of other origins may
	// read, beside those that browsers always let them read (such as
	// Cache-Control and Last-Modified).
	exposed = []string{strings.Join([]string{
		"Allow", "Content-Disposition", "Content-Location", "ETag", "Link", "Retry-After", "WWW-Authenticate",
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

// OpenToAll lets pages of every origin read the answers, and answers their
// browsers' preflights. Every answer says so, also to callers that did not ask:
// a shared cache may keep it for one that does.
func OpenToAll(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["Access-Control-Allow-Origin"] = everyone
		header["Access-Control-Expose-Headers"] = exposed
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
			header.Set("Access-Control-Allow-Headers", accepted)
			header.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
