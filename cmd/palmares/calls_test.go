package main

import (
	"maps"
	"net/http"
	"syscall"
	"testing"

	"palmares/auth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// Requests with a key are counted by endpoint exactly as they count against its
// quota.
func TestCallsByEndpoint(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		key := blackbox.NewKey(t, cfg, "developer")
		authorized := []string{"Authorization", "Bearer " + key}
		for _, api := range interfaces {
			for range 2 {
				s.Call(t, api.method, api.path, api.body, authorized...)
			}
			s.Call(t, api.method, api.path, api.body) // anonymous
		}
		s.Call(t, http.MethodGet, "/api/v1/tools/plume", "", authorized...)
		tag := s.Call(t, http.MethodGet, "/api/v1/tools", "", authorized...).Header.Get("ETag")
		s.Call(t, http.MethodGet, "/api/v1/tools", "", append(authorized, "If-None-Match", tag)...) // free
		s.Call(t, http.MethodGet, "/api/v1/nothing", "", authorized...)
		s.Call(t, http.MethodGet, "/api/v1/openapi.json", "", authorized...) // free
		s.Call(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"plume"}}}`,
			append(authorized, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")...)
		http.DefaultClient.CloseIdleConnections() // the server would wait for them
		_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		<-s.Done

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
