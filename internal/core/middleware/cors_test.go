package middleware

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

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
	allowed := listed(w.Header().Get("Access-Control-Allow-Headers"))
	for _, want := range []string{
		"authorization", "content-type", "if-none-match", "last-event-id", "traceparent", "apollographql-client-name", "apollographql-client-version",
	} {
		check.True(t, slices.Contains(allowed, want), "got allowed headers %q, want %s among them", allowed, want)
	}
}

func TestResponseHeadersAreExposed(t *testing.T) {
	w := httptest.NewRecorder()
	CORS(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/tools", nil))
	exposed := listed(w.Header().Get("Access-Control-Expose-Headers"))
	for _, want := range []string{
		"accept-query", "allow", "cache-status", "content-disposition", "content-location", "deprecation", "etag", "link", "ratelimit", "ratelimit-policy", "retry-after", "sunset", "www-authenticate", "x-graphql-cost", "x-graphql-cost-limit",
		"x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-tier", "x-request-id", "x-service-release", "x-service-updated-at", "x-total-count",
	} {
		check.True(t, slices.Contains(exposed, want), "got exposed headers %q, want %s among them", exposed, want)
	}
}
