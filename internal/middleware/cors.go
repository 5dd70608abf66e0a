package middleware

import (
	"net/http"
	"strings"
)

// exposed are the headers that a page of another origin may read. These
// slices are sent with every answer, and never changed.
var (
	everyone = []string{"*"}
	exposed  = []string{strings.Join([]string{
		"ETag", "Link", "Retry-After", "X-GraphQL-Cost", "X-GraphQL-Cost-Limit",
		"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Tier",
		"X-Request-Id", "X-Service-Updated-At", "X-Total-Count",
	}, ", ")}
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
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match")
			header.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
