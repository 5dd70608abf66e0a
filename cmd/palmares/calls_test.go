package main

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"palmares/auth"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Requests with a key are counted by endpoint exactly as they count against its
// quota.
func TestCallsByEndpoint(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := startServer(t, cfg, "--demo")
		key := newKey(t, cfg, "developer")
		authorized := []string{"Authorization", "Bearer " + key}
		for _, api := range interfaces {
			for range 2 {
				s.call(t, api.method, api.path, api.body, authorized...)
			}
			s.call(t, api.method, api.path, api.body) // anonymous
		}
		s.call(t, http.MethodGet, "/api/v1/tools/plume", "", authorized...)
		tag := s.call(t, http.MethodGet, "/api/v1/tools", "", authorized...).Header.Get("ETag")
		s.call(t, http.MethodGet, "/api/v1/tools", "", append(authorized, "If-None-Match", tag)...) // free
		s.call(t, http.MethodGet, "/api/v1/nothing", "", authorized...)
		s.call(t, http.MethodGet, "/api/v1/openapi.json", "", authorized...) // free
		s.call(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"plume"}}}`,
			append(authorized, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")...)
		http.DefaultClient.CloseIdleConnections() // the server would wait for them
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		<-s.done

		db := testkit.Open(t, cfg)
		got, total := map[string]int{}, 0
		for _, row := range db.Read.KeyUsage.Query().AllX(t.Context()) {
			if parsed, _ := auth.ParseKey(key); row.Key != parsed.ID {
				t.Errorf("got key %q, want %q", row.Key, parsed.ID)
			}
			got[row.Endpoint] += row.Requests // the day may have changed
			total += row.Requests
		}
		want := map[string]int{
			"/api/v1/stats": 2, "/api/embeddings/{slug}": 2, "/api/embeddings": 2, "/q/{handle}/{name}": 2, "/graphql": 4,
			"/api/v1/tools/{slug}": 1, "/api/v1/tools": 1, "other": 1, "/mcp": 1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		used := 0
		for _, row := range db.Read.Usage.Query().AllX(t.Context()) {
			used += row.Requests
		}
		if used != total {
			t.Errorf("got %d requests by endpoint, want %d as in the quota", total, used)
		}
	})
}

// Only requests of accounts are recorded, and those of browsers without the key of
// their session.
func TestRecordedKeys(t *testing.T) {
	db := testkit.Open(t, testkit.SQLite(t))
	a := &access{calls: quota.NewBreakdown(db, slog.New(slog.DiscardHandler)), quota: &quota.Gate{}}
	a.recordCalls(func(r *http.Request) string { return r.URL.Path })
	for _, caller := range []auth.Caller{
		{Plan: auth.Anonymous}, {Account: 1, Key: "key"}, {Account: 1, Key: "session", Browser: true}, {Account: 1, Key: "token"},
	} {
		r := httptest.NewRequest("GET", "/x", nil)
		a.quota.Record(r.WithContext(auth.WithCaller(t.Context(), caller)), 1, 1)
	}
	a.calls.Write(t.Context())
	var got []string
	for _, row := range db.Write.KeyUsage.Query().AllX(t.Context()) {
		got = append(got, fmt.Sprintf("%q %d", row.Key, row.Requests))
	}
	slices.Sort(got)
	if want := `"" 1, "key" 1, "token" 1`; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// BenchmarkRecordCall measures the overhead of counting a request with a key by endpoint.
func BenchmarkRecordCall(b *testing.B) {
	mux := http.NewServeMux()
	for _, path := range []string{"/api/v1/tools", "/api/v1/tools/{slug}", "/api/v1/stats", "/graphql", "/mcp", "/"} {
		mux.Handle(path, http.NotFoundHandler())
	}
	a := &access{calls: quota.NewBreakdown(nil, slog.New(slog.DiscardHandler)), quota: &quota.Gate{}}
	a.recordCalls((&routes{mux: mux}).label)
	for _, path := range []string{"/graphql", "/api/v1/tools/plume"} {
		b.Run(path, func(b *testing.B) {
			r := httptest.NewRequest("GET", path, nil)
			r = r.WithContext(auth.WithCaller(b.Context(), auth.Caller{Plan: auth.Developer, Account: 1, Key: "0123456789ab"}))
			b.ReportAllocs()
			for b.Loop() {
				a.quota.Record(r, 20000, 1)
			}
		})
	}
}
