package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const credit = "Source : palmares (https://palmares.example)"

func newExecutor(c release.Database) *graph.Executor { return newExecutorWith(c, graph.DefaultLimits) }

func newExecutorWith(c release.Database, limits document.Limits) *graph.Executor {
	return graphtest.New(graph.Config{Catalog: c, Credit: credit, Limits: limits})
}

func syntheticFeed(t testing.TB, opts synth.Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &buf, opts))
	return buf.Bytes()
}

// onDemoCatalog runs a test with an executor for the demo catalog on each database.
func onDemoCatalog(t *testing.T, test func(t *testing.T, e *graph.Executor)) {
	t.Helper()
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		test(t, newExecutor(s))
	})
}

func execute(t testing.TB, e *graph.Executor, plan auth.Plan, query string, variables ...map[string]any) *graph.Result {
	t.Helper()
	req := graph.Request{Query: query}
	if len(variables) > 0 {
		req.Variables = variables[0]
	}
	return e.Execute(auth.WithCaller(t.Context(), auth.Caller{Plan: plan}), req)
}

// mustExecute executes a query that must succeed and returns its data as text.
func mustExecute(t testing.TB, e *graph.Executor, query string, variables ...map[string]any) string {
	t.Helper()
	result := execute(t, e, auth.Developer, query, variables...)
	check.Must(t, len(result.Errors), 0, "%s: %v", query, result.Errors)
	return string(result.Data)
}

// decode decodes JSON into a value of type T.
func decode[T any](t testing.TB, data string) T {
	t.Helper()
	var value T
	check.OK(t, json.Unmarshal([]byte(data), &value), "for %s", data)
	return value
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}

// wantRejected checks the code and message of the first error.
func wantRejected(t testing.TB, result *graph.Result, code, message string) {
	t.Helper()
	if len(result.Errors) == 0 {
		t.Errorf("got %s, want error %s", result.Data, code)
		return
	}
	first := result.Errors[0]
	check.Equal[any](t, first.Extensions["code"], code)
	check.Equal(t, first.Message, message)
}
