package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// openStream opens a stream and returns without reading it.
func (s *server) openStream(t *testing.T, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/graphql", strings.NewReader(`{"query":"subscription {catalogPublished {release}}"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// Streams are limited per client address, and end when another process revokes
// their key.
func TestStreamLimits(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		key := newKey(t, cfg, "developer")
		s := startServer(t, cfg, "--demo", "--trusted-proxies", "127.0.0.1")
		for _, host := range []string{"1", "2", "3", "4", "5:6:7:8"} {
			if got := s.openStream(t, "X-Forwarded-For", "2001:db8::"+host); got.StatusCode != 200 {
				t.Fatalf("got %d for %s, want 200", got.StatusCode, host)
			}
		}
		got := s.openStream(t, "X-Forwarded-For", "2001:db8::9")
		if got.StatusCode != 429 || got.Header.Get("Retry-After") != "60" {
			t.Errorf("got %d, Retry-After %q, want 429 after 60", got.StatusCode, got.Header.Get("Retry-After"))
		}
		if got := s.openStream(t, "X-Forwarded-For", "2001:db8:0:1::1"); got.StatusCode != 200 {
			t.Errorf("got %d for another network, want 200", got.StatusCode)
		}

		stream := s.openStream(t, "Authorization", "Bearer "+key)
		if stream.StatusCode != 200 {
			t.Fatalf("got %d with a key, want 200", stream.StatusCode)
		}
		succeeds(t, palmares(t, cfg, "keys", "revoke", key))
		body, err := io.ReadAll(stream.Body) // until the stream ends
		if err != nil || !strings.HasSuffix(string(body), ": reconnect to continue\n\n") || strings.Contains(string(body), "complete") {
			t.Errorf("got %q, %v, want the stream to end with a hint to reconnect", body, err)
		}
		if got := s.openStream(t, "Authorization", "Bearer "+key); got.StatusCode != 401 {
			t.Errorf("got %d with a revoked key, want 401", got.StatusCode)
		}
	})
}
