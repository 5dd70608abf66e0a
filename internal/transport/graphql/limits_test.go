package graphql_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

func TestResponseLimitOverHTTP(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	limits := graph.DefaultLimits
	limits.Response = 500
	h := newHandler(newExecutorWith(s, limits))
	for accept, status := range map[string]int{"application/graphql-response+json": http.StatusBadRequest, "application/json": http.StatusOK} {
		for _, query := range []string{"{tools {items {slug name tagline}}}", "{__schema {types {name}}}"} {
			r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(fmt.Sprintf(`{"query": %q}`, query)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != status || !strings.Contains(w.Body.String(), `"RESPONSE_TOO_LARGE"`) || strings.Contains(w.Body.String(), `"data"`) {
				t.Errorf("%s, %s: got %d %s, want %d RESPONSE_TOO_LARGE", accept, query, w.Code, w.Body, status)
			}
		}
	}
}

// A query that takes too long is the caller's error, unless the database is
// unavailable. A timeout of the server's own operation is a server error.
func TestQueryTimeout(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		healthy := true
		var log bytes.Buffer
		limits := graph.DefaultLimits
		limits.Time = time.Nanosecond
		e := graphtest.New(graph.Config{
			Catalog: s, Limits: limits, Log: slog.New(slog.NewTextHandler(&log, nil)), Healthy: func() bool { return healthy },
		})
		check.OK(t, e.Preload(t.Context())) // callers are not blamed for waiting for the catalog
		log.Reset()
		h := newHandler(e)
		const query = `{tools {items {slug}}}`
		for _, media := range []string{"application/json", "application/graphql-response+json"} {
			got := serve(h, post(`{"query":"`+query+`"}`, media))
			if body := got.Body.String(); got.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `"code":"QUERY_TIMEOUT"`) ||
				!strings.Contains(body, "The query took longer than 1ns. Request fewer items or use simpler filters.") || got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: got %d %s, want 422 QUERY_TIMEOUT", media, got.Code, body)
			}
		}
		if log.Len() > 0 {
			t.Errorf("got log lines %s, want none", &log)
		}

		healthy = false
		got := serve(h, post(`{"query":"`+query+`"}`, ""))
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `"code":"UNAVAILABLE"`) || got.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 503 UNAVAILABLE", got.Code, got.Body)
		}

		healthy = true
		op, err := graph.NewOperation(query)
		check.OK(t, err)
		if got := e.Execute(t.Context(), graph.Request{Operation: op}).Problem(); got == nil || got.Code != "TIMEOUT" || got.Code.Status() != http.StatusServiceUnavailable {
			t.Errorf("the server's own operation: got %+v, want 503 TIMEOUT", got)
		}
		check.Contains(t, log.String(), "code=TIMEOUT", "log lines: %s", &log)
	})
}

// A response stays cached until the next release.
func TestChangesAreCachedPerRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		responses := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
		h := graphql.NewHandler(newExecutor(s), responses, graphql.StreamConfig{})
		const body = `{"query":"{changes(order: newest_first, first: 1) {nodes {release}}}"}`
		for range 2 {
			expect(t, "first", serve(h, post(body, "")).Body.String(), `{"data":{"changes":{"nodes":[{"release":1}]}}}`)
		}
		expect(t, "executions", responses.Misses.Load(), 1)
		feedtest.Publish(t, s, bytes.Replace(demo.Catalog(), []byte("2026-11-10"), []byte("2026-11-11"), 1))
		responses.Publish(2)
		for range 2 {
			expect(t, "second", serve(h, post(body, "")).Body.String(), `{"data":{"changes":{"nodes":[{"release":2}]}}}`)
		}
		expect(t, "executions", responses.Misses.Load(), 2)
	})
}
