package graphql_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/catalog/feed"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/transport/graphql"
)

func newExecutor(c graph.Catalog) *graph.Executor { return newExecutorWith(c, graph.DefaultLimits) }

func newExecutorWith(c graph.Catalog, limits document.Limits) *graph.Executor {
	return graph.NewExecutor(graph.Config{Catalog: c, Credit: "Source : palmares (https://palmares.example)", Limits: limits, Log: slog.New(slog.DiscardHandler)})
}

func newHandler(e *graph.Executor) *graphql.Handler {
	return newStreamHandler(e, graphql.StreamConfig{Network: func(r *http.Request) string { return r.RemoteAddr }}) // each connection is its own caller
}

func newStreamHandler(e *graph.Executor, config graphql.StreamConfig) *graphql.Handler {
	return graphql.NewHandler(e, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)), config)
}

// publish imports a feed.
func publish(t testing.TB, s *store.Store, data []byte) {
	t.Helper()
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(data), feed.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}
