package rest_test

import (
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

var update = flag.Bool("update", false, "rewrite the golden files and the example responses")

var config = rest.Config{
	PublicURL: "https://palmares.example", ServiceName: "palmares", ServiceURL: "https://palmares.example",
	Credit: "Source : palmares (https://palmares.example)",
}

// serving returns a handler that serves a catalog, with CORS.
func serving(t testing.TB, catalog release.Database) http.Handler {
	t.Helper()
	handler, _ := handlerOver(t, catalog)
	return middleware.CORS(handler)
}

// handlerOver returns a handler that serves a catalog without middleware, and
// its cache.
func handlerOver(t testing.TB, catalog release.Database) (*rest.Handler, *cache.Cache) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	responses := cache.New(1<<20, nil, log)
	handler := check.Try(rest.NewHandler(config, graphtest.New(graph.Config{Catalog: catalog, Log: log}), responses)).OK(t)
	return handler, responses
}

// demoOn imports all editions of the demo catalog and serves it. Like the server, it
// knows the newest release before the first request.
func demoOn(t testing.TB, s *store.Store) http.Handler {
	t.Helper()
	release := feedtest.PublishDemo(t, s)
	handler, responses := handlerOver(t, s)
	responses.Publish(release)
	return middleware.CORS(handler)
}

// onDemo runs a test with the demo catalog on each database.
func onDemo(t *testing.T, test func(t *testing.T, handler http.Handler)) {
	t.Helper()
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) { test(t, demoOn(t, s)) })
}

// onSQLite serves the demo catalog, for tests that do not depend on the
// database.
func onSQLite(t testing.TB) http.Handler { return demoOn(t, testkit.Open(t, testkit.SQLite(t))) }

// request returns a request with a Developer key.
func request(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Developer}))
}

func serve(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func get(handler http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	return serve(handler, request(http.MethodGet, target, headers...))
}

// golden compares a result with a file, which -update rewrites.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		check.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		check.OK(t, os.WriteFile(name, got, 0o644))
	}
	want := check.Try(os.ReadFile(name)).OK(t, "run go test ./rest -run 'Golden|OpenAPI' -update")
	check.Equal(t, string(got), string(want), name)
}

// listen serves a handler on a free port and returns its URL.
func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
