package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
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

func limitedTo(c release.Database, bytes int64) *graph.Executor {
	limits := graph.DefaultLimits
	limits.Response = bytes
	return graphtest.New(graph.Config{Catalog: c, Credit: credit, Limits: limits})
}

const tooLarge = "The response is larger than %d bytes. Request fewer items or fields, and read the rest page by page."

func TestResponseLimit(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		const field = "changes(first: 200) {nodes {before after}}"
		one := int64(len(mustExecute(t, newExecutor(s), aliased(1, field))))

		result := execute(t, limitedTo(s, 3*one), "", aliased(49, field))
		wantRejected(t, result, "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, 3*one))
		check.True(t, result.Data == nil, "got %d bytes of data, want none", len(result.Data))

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
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
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
		check.True(t, few <= all/2, "got %d statements, want at most half of %d", few, all)
	})
}

// The limit does not apply to the server's own operations.
func TestResponseLimitExemptsOwnOperations(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	operation, err := graph.NewOperation("{tools {items {slug name tagline}}}")
	check.OK(t, err)
	result := limitedTo(s, 10).Execute(context.Background(), graph.Request{Operation: operation})
	check.Equal(t, len(result.Errors), 0, "%v and %d bytes", result.Errors, len(result.Data))
	check.True(t, len(result.Data) >= 500, "got %v and %d bytes, want no errors and at least 500 bytes", result.Errors, len(result.Data))
}
