package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// aliased repeats a root field under n names.
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

const tooLarge = "The response has more than %d bytes: request fewer items or fields, and read the rest page by page."

func TestResponseLimit(t *testing.T) {
	data := synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		const slice = "changes(first: 200) {nodes {before after}}"
		one := int64(len(ask(t, newExecutor(s), aliased(1, slice))))

		answer := execute(t, limitedTo(s, 3*one), "", aliased(49, slice))
		refusedWith(t, answer, "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, 3*one))
		if answer.Data != nil {
			t.Errorf("got %d bytes of data, want none", len(answer.Data))
		}

		// What fits exactly is served.
		whole := ask(t, newExecutor(s), aliased(4, slice))
		fields := int64(len(whole) - len(`{"a0":,"a1":,"a2":,"a3":}`))
		if answer := execute(t, limitedTo(s, fields), "", aliased(4, slice)); len(answer.Errors) > 0 || string(answer.Data) != whole {
			t.Errorf("got %v, want a response of %d bytes", answer.Errors, len(whole))
		}
		refusedWith(t, execute(t, limitedTo(s, fields-1), "", aliased(4, slice)), "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, fields-1))
	})
}

// Fields that wait for their turn read nothing once the response is too large.
func TestResponseLimitStopsReading(t *testing.T) {
	data := synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		query := aliased(49, "changes(first: 200) {nodes {before after}}")
		execute(t, newExecutor(s), "", query) // by now the release is known
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
				t.Errorf("%s, %s: got %d %s", accept, query, w.Code, w.Body)
			}
		}
	}
}

// Fixed operations, such as REST's, have no limit.
func TestResponseLimitSparesFixedOperations(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	operation, err := graph.NewOperation("{tools {items {slug name tagline}}}")
	if err != nil {
		t.Fatal(err)
	}
	answer := limitedTo(s, 10).Execute(context.Background(), graph.Request{Operation: operation})
	if len(answer.Errors) > 0 || len(answer.Data) < 500 {
		t.Errorf("got %v and %d bytes", answer.Errors, len(answer.Data))
	}
}
