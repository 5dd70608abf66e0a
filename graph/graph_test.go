package graph_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/feed"
	"palmares/internal/feed/demo"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

const credit = "Source : palmares (https://palmares.example)"

func newExecutor(s graph.Catalog) *graph.Executor {
	return graph.NewExecutor(graph.Config{Catalog: s, Credit: credit, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
}

// publish imports a feed.
func publish(t testing.TB, s *store.Store, data []byte) {
	t.Helper()
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(data), feed.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
}

// onDemo runs test with an executor over the demo catalog, on each database.
func onDemo(t *testing.T, test func(t *testing.T, e *graph.Executor)) {
	t.Helper()
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, demo.Catalog)
		test(t, newExecutor(s))
	})
}

// ask executes a query that must succeed and returns its data as text.
func ask(t testing.TB, e *graph.Executor, query string, variables ...map[string]any) string {
	t.Helper()
	answer := e.Execute(auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Developer}), request(query, variables...))
	if len(answer.Errors) > 0 {
		t.Fatalf("%s\n%v", query, answer.Errors)
	}
	return string(answer.Data)
}

func request(query string, variables ...map[string]any) graph.Request {
	req := graph.Request{Query: query}
	if len(variables) > 0 {
		req.Variables = variables[0]
	}
	return req
}

// decoded reads an answer's data into a value of the test's own shape.
func decoded[T any](t testing.TB, data string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return value
}

func TestSmoke(t *testing.T) {
	onDemo(t, func(t *testing.T, e *graph.Executor) {
		t.Log(ask(t, e, `{feed{release updatedAt credit} stats{toolsTotal toolsTested toolsAvgScore toolsRetired comparisonsTotal}
		 tools(limit:2, filter:{search:"ecrit"}){items{slug name icp icpCode category{slug label tools(limit:2){slug}} comparisons{slug toolA{slug} winner{name ... on Tool{price}}} priceHistory{changedAt price} embeddings{hash chunkCount}} meta{total pages}}
		 toolConnection(first:2, sort:price_desc){edges{cursor node{slug priceAmount}} totalCount pageInfo{hasNextPage endCursor}}
		 categories{slug avgScore tools(limit:1){name}} 
		 retiredTools(limit:1){items{slug reason note comparisons{slug}}}
		 toolGroups(by:tier){key count avgScore minScore maxScore} scoreHistogram{from to count} priceChangeCounts{month category count}}`))
	})
}
