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

// failure is a response with a 5xx status.
type failure struct{ name, id, body string }

// Every 5xx response has a request id, and the log has the cause for that id,
// even if many requests waited for the same result.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	line := blackbox.NewLine(t, cfg.DatabaseURL)
	cfg.DatabaseURL = line.URL
	key := newKey(t, cfg, "pro")
	metrics := freeAddress(t)
	s := startServer(t, cfg, "--demo", "--metrics-listen", metrics)
	line.Cut()
	if text, _ := scrape(t, metrics); !strings.Contains(text, "palmares_database_up 0") {
		t.Errorf("got no palmares_database_up 0 in %s", text)
	}

	var mu sync.Mutex
	var failures []failure
	send := func(name, method, path, body string, headers ...string) {
		got := s.call(t, method, path, body, headers...)
		text, _ := io.ReadAll(got.Body)
		mu.Lock()
		defer mu.Unlock()
		if got.StatusCode < 500 {
			t.Errorf("%s: got %d %s, want a 5xx status", name, got.StatusCode, text)
		}
		failures = append(failures, failure{name, got.Header.Get("X-Request-Id"), string(text)})
	}
	var many sync.WaitGroup
	for range 20 {
		many.Go(func() { send("REST", http.MethodGet, "/api/v1/stats", "") })
		many.Go(func() { send("GraphQL", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`) })
		many.Go(func() { send("a page", http.MethodGet, "/tools", "", "Accept", "text/html") })
	}
	many.Wait()
	send("a key", http.MethodGet, "/api/v1/tools", "", "Authorization", "Bearer "+key)
	send("GraphQL with a key", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`, "Authorization", "Bearer "+key)
	send("a feed", http.MethodGet, "/feeds/changes.atom", "")
	send("readiness", http.MethodGet, "/readyz", "")
	send("the status page", http.MethodGet, "/status", "")
	send("the account page", http.MethodGet, "/account", "", "Cookie", "palmares_session=x")
	send("a stream", http.MethodPost, "/graphql", `{"query":"subscription {catalogPublished {release}}"}`, "Accept", "text/event-stream")

	for _, f := range failures { // log lines are written in batches
		logOf(s, `"request_id":"`+f.id+`"`)
	}
	causes := map[string]int{}
	for text := range strings.Lines(s.log.String()) {
		var entry struct{ Msg, Cause, Request_id string }
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatalf("got the log line %q, want JSON", text)
		}
		if entry.Cause != "" && entry.Msg != "request" {
			causes[entry.Request_id]++
		}
	}
	for _, f := range failures {
		if f.id == "" || causes[f.id] == 0 {
			t.Errorf("%s: got no cause for %q in the log", f.name, f.id)
		}
		if strings.HasPrefix(f.name, "GraphQL") && !strings.Contains(f.body, `"requestId":"`+f.id+`"`) {
			t.Errorf("%s: got %s, want its request id", f.name, f.body)
		}
	}
	if t.Failed() {
		t.Log(s.log)
	}
}
