package graph_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// A query that takes too long is its caller's error, unless the database is
// unavailable; an operation of ours that takes too long is our own.
func TestQueryTimeout(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, demo.Catalog)
		healthy := true
		var log bytes.Buffer
		limits := graph.DefaultLimits
		limits.Time = time.Nanosecond
		e := graph.NewExecutor(graph.Config{
			Catalog: s, Limits: limits, Log: slog.New(slog.NewTextHandler(&log, nil)), Healthy: func() bool { return healthy },
		})
		h := newHandler(e)
		const query = `{tools {items {slug}}}`
		for _, media := range []string{"application/json", "application/graphql-response+json"} {
			got := serve(h, post(`{"query":"`+query+`"}`, media))
			if body := got.Body.String(); got.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `"code":"QUERY_TIMEOUT"`) ||
				!strings.Contains(body, "The query took longer than 1ns: request fewer items or use simpler filters.") || got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: got %d %s, want 422 QUERY_TIMEOUT", media, got.Code, body)
			}
		}
		if log.Len() > 0 {
			t.Errorf("got the log lines %s, want none", &log)
		}

		healthy = false
		got := serve(h, post(`{"query":"`+query+`"}`, ""))
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `"code":"UNAVAILABLE"`) || got.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 503 UNAVAILABLE", got.Code, got.Body)
		}

		healthy = true
		op, err := graph.NewOperation(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Execute(t.Context(), graph.Request{Operation: op}).Problem(); got == nil || got.Code != "TIMEOUT" || got.Code.Status() != http.StatusServiceUnavailable {
			t.Errorf("got %+v for an operation of ours, want 503 TIMEOUT", got)
		}
		if !strings.Contains(log.String(), "code=TIMEOUT") {
			t.Errorf("got the log lines %s, want one of the timeout", &log)
		}
	})
}
