package rest_test

import (
	"bytes"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

var update = flag.Bool("update", false, "write the golden files and the document's examples again")

// config is a public server's.
var config = rest.Config{
	PublicURL: "https://palmares.example", ServiceName: "palmares", ServiceURL: "https://palmares.example",
	Credit: "Source : palmares (https://palmares.example)",
}

// serving is the handler over a database.
func serving(t testing.TB, catalog graph.Catalog) http.Handler {
	t.Helper()
	handler, _ := handlerOver(t, catalog)
	return middleware.OpenToAll(handler)
}

// handlerOver is it bare, with its cache.
func handlerOver(t testing.TB, catalog graph.Catalog) (*rest.Handler, *cache.Cache) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	answers := cache.New(1<<20, nil, log)
	handler, err := rest.NewHandler(config, graph.NewExecutor(graph.Config{Catalog: catalog, Limits: graph.DefaultLimits, Log: log}), answers)
	if err != nil {
		t.Fatal(err)
	}
	return handler, answers
}

// demoOn publishes the demo catalog.
func demoOn(t testing.TB, s *store.Store) http.Handler {
	t.Helper()
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(demo.Catalog), feed.Options{}); err != nil {
		t.Fatal(err)
	}
	return serving(t, s)
}

// onDemo runs a test over the demo catalog on each database.
func onDemo(t *testing.T, test func(t *testing.T, handler http.Handler)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) { test(t, demoOn(t, s)) })
}

// onSQLite is for what no database has a say in.
func onSQLite(t testing.TB) http.Handler { return demoOn(t, testkit.Open(t, testkit.SQLite(t))) }

// request is one of a caller with a key.
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

// golden compares with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v\nto write it: go test ./rest -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

// listen serves on a port of its own.
func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
