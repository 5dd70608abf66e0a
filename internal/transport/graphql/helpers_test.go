package graphql_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/transport/graphql"
)

func newExecutor(c release.Database) *graph.Executor { return newExecutorWith(c, graph.DefaultLimits) }

func newExecutorWith(c release.Database, limits document.Limits) *graph.Executor {
	return graphtest.New(graph.Config{Catalog: c, Credit: "Source : palmares (https://palmares.example)", Limits: limits})
}

func newHandler(e *graph.Executor) *graphql.Handler {
	return newStreamHandler(e, graphql.StreamConfig{Network: func(r *http.Request) string { return r.RemoteAddr }}) // each connection is its own caller
}

func newStreamHandler(e *graph.Executor, config graphql.StreamConfig) *graphql.Handler {
	return graphql.NewHandler(e, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)), config)
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}
