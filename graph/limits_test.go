package graph_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// aliased returns a query with n aliases of a root field.
func aliased(n int, field string) string {
	var query strings.Builder
	query.WriteString("{")
	for i := range n {
		fmt.Fprintf(&query, "a%d: %s ", i, field)
	}
	return query.String() + "}"
}

func limitedTo(c graph.Catalog, bytes int64) *graph.Executor {
	limits := graph.DefaultLimits
	limits.Response = bytes
	return graph.NewExecutor(graph.Config{Catalog: c, Credit: credit, Limits: limits, Log: slog.New(slog.DiscardHandler)})
}

const tooLarge = "The response is larger than %d bytes. Request fewer items or fields, and read the rest page by page."

func TestResponseLimit(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		const field = "changes(first: 200) {nodes {before after}}"
		one := int64(len(mustExecute(t, newExecutor(s), aliased(1, field))))

		result := execute(t, limitedTo(s, 3*one), "", aliased(49, field))
		wantRejected(t, result, "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, 3*one))
		if result.Data != nil {
			t.Errorf("got %d bytes of data, want none", len(result.Data))
		}

		// A response whose size is exactly the limit is sent.
		whole := mustExecute(t, newExecutor(s), aliased(4, field))
		fields := int64(len(whole) - len(`{"a0":,"a1":,"a2":,"a3":}`))
		if result := execute(t, limitedTo(s, fields), "", aliased(4, field)); len(result.Errors) > 0 || string(result.Data) != whole {
			t.Errorf("got %v, want a response of %d bytes", result.Errors, len(whole))
		}
		wantRejected(t, execute(t, limitedTo(s, fields-1), "", aliased(4, field)), "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, fields-1))
	})
}

// Pending fields read nothing once the response is too large.
func TestResponseLimitStopsReading(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		query := aliased(49, "changes(first: 200) {nodes {before after}}")
		execute(t, newExecutor(s), "", query) // loads the release
		var statements atomic.Int64
		s.Read.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				if ctx.Err() == nil {
					statements.Add(1)
				}
				return next.Query(ctx, q)
			})
		}))
		execute(t, limitedTo(s, 100_000_000), "", query)
		all := statements.Swap(0)
		execute(t, limitedTo(s, 10_000), "", query)
		few := statements.Load()
		if few > all/2 {
			t.Errorf("got %d statements, want at most half of %d", few, all)
		}
	})
}

func TestResponseLimitOverHTTP(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	h := newHandler(limitedTo(s, 500))
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

// The limit does not apply to the server's own operations.
func TestResponseLimitExemptsOwnOperations(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	operation, err := graph.NewOperation("{tools {items {slug name tagline}}}")
	if err != nil {
		t.Fatal(err)
	}
	result := limitedTo(s, 10).Execute(context.Background(), graph.Request{Operation: operation})
	if len(result.Errors) > 0 || len(result.Data) < 500 {
		t.Errorf("got %v and %d bytes, want no errors and at least 500 bytes", result.Errors, len(result.Data))
	}
}

// A query that takes too long is the caller's error, unless the database is
// unavailable. A timeout of the server's own operation is a server error.
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
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Execute(t.Context(), graph.Request{Operation: op}).Problem(); got == nil || got.Code != "TIMEOUT" || got.Code.Status() != http.StatusServiceUnavailable {
			t.Errorf("the server's own operation: got %+v, want 503 TIMEOUT", got)
		}
		if !strings.Contains(log.String(), "code=TIMEOUT") {
			t.Errorf("got log lines %s, want one about the timeout", &log)
		}
	})
}
