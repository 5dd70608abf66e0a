package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// failed is an answer that was our own fault.
type failed struct{ what, id, body string }

// Whoever is told that something went wrong on our side is told an id, and the
// log has the cause for it: of each of many who waited for the same, too.
func TestEveryFailureHasItsLine(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	line := blackbox.NewLine(t, cfg.DatabaseURL)
	cfg.DatabaseURL = line.URL
	key := newKey(t, cfg, "pro")
	numbers := freeAddress(t)
	s := startServer(t, cfg, "--demo", "--metrics-listen", numbers)
	line.Cut()
	if text, _ := scrape(t, numbers); !strings.Contains(text, "palmares_database_up 0") {
		t.Error("numbers say that the database is there")
	}

	var mu sync.Mutex
	var failures []failed
	ask := func(what, method, path, body string, headers ...string) {
		got := s.call(t, method, path, body, headers...)
		text, _ := io.ReadAll(got.Body)
		mu.Lock()
		defer mu.Unlock()
		if got.StatusCode < 500 {
			t.Errorf("%s: %d %s", what, got.StatusCode, text)
		}
		failures = append(failures, failed{what, got.Header.Get("X-Request-Id"), string(text)})
	}
	var many sync.WaitGroup
	for range 20 {
		many.Go(func() { ask("REST", http.MethodGet, "/api/v1/stats", "") })
		many.Go(func() { ask("GraphQL", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`) })
		many.Go(func() { ask("a page", http.MethodGet, "/tools", "", "Accept", "text/html") })
	}
	many.Wait()
	ask("a key", http.MethodGet, "/api/v1/tools", "", "Authorization", "Bearer "+key)
	ask("GraphQL with a key", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`, "Authorization", "Bearer "+key)
	ask("a feed", http.MethodGet, "/feeds/changes.atom", "")
	ask("readiness", http.MethodGet, "/readyz", "")
	ask("the days", http.MethodGet, "/status", "")
	ask("signing in", http.MethodGet, "/account", "", "Cookie", "palmares_session=x")
	ask("a stream", http.MethodPost, "/graphql", `{"query":"subscription {catalogPublished {release}}"}`, "Accept", "text/event-stream")

	for _, f := range failures { // lines are gathered
		logOf(s, `"request_id":"`+f.id+`"`)
	}
	causes := map[string]int{}
	for text := range strings.Lines(s.log.String()) {
		var entry struct{ Msg, Cause, Request_id string }
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatalf("no JSON: %s", text)
		}
		if entry.Cause != "" && entry.Msg != "request" {
			causes[entry.Request_id]++
		}
	}
	for _, f := range failures {
		if f.id == "" || causes[f.id] == 0 {
			t.Errorf("%s: no cause of %q in the log", f.what, f.id)
		}
		if strings.HasPrefix(f.what, "GraphQL") && !strings.Contains(f.body, `"requestId":"`+f.id+`"`) {
			t.Errorf("%s does not tell its id: %s", f.what, f.body)
		}
	}
	if t.Failed() {
		t.Log(s.log)
	}
}
