package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/apikey"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// The command prints the document that a server without a catalog serves.
func TestOpenAPICommand(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	s := blackbox.Serve(t, cfg)
	response := check.Try(http.Get("http://" + s.Address + "/api/v1/openapi.json")).OK(t)
	defer response.Body.Close()
	served := blackbox.ReadAll(t, response.Body)
	printed := blackbox.MustRun(t, blackbox.Command(t, cfg, "openapi", "--listen", s.Address)).Out
	check.Equal(t, printed, served+"\n")
	elsewhere := blackbox.MustRun(t, blackbox.Command(t, cfg, "openapi", "--public-url", "https://data.example/")).Out
	check.True(t, strings.Contains(elsewhere, `"url": "https://data.example"`), "got %s, want the public URL", elsewhere)
}

// expectContinue announces a body over a raw connection and reads the
// response's first lines, without sending any of the body.
func expectContinue(t *testing.T, address, method, path string, header ...string) (first string, response *http.Response, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	check.OK(t, err)
	defer conn.Close()
	check.OK(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: " + address, "Expect: 100-continue"}, header...)
	check.Try(io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n")).OK(t)
	reader := bufio.NewReader(conn)
	peeked, err := reader.Peek(len("HTTP/1.1 100"))
	check.OK(t, err, "%s %s", method, path)
	if first = string(peeked); strings.HasSuffix(first, " 100") {
		return first, nil, ""
	}
	response, err = http.ReadResponse(reader, &http.Request{Method: method})
	check.OK(t, err, "%s %s", method, path)
	defer response.Body.Close()
	data := check.Try(io.ReadAll(response.Body)).OK(t, "%s %s", method, path)
	return first, response, string(data)
}

// A body that is too large is rejected before the client sends it.
func TestLargeBodiesAreRejectedBeforeContinue(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		cmd := blackbox.Command(t, cfg, "serve", "--listen", "127.0.0.1:0", "--demo", "--stripe-api-base", "http://127.0.0.1:1")
		cmd.Env = append(cmd.Env, "STRIPE_SECRET_KEY=sk_test_x", "STRIPE_WEBHOOK_SECRET=whsec_x")
		s := blackbox.ServeCommand(t, cmd)
		const form, json, large = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json", "Content-Length: 99000000"
		for _, test := range []struct {
			method, path string
			header       []string
			status       int
			want         string
		}{
			{"POST", "/graphql", []string{json, large}, 413, `"code":"REQUEST_TOO_LARGE"`},
			{"POST", "/en/login", []string{form, large}, 413, "(maximum 16,384)"},
			{"POST", "/fr/login/code", []string{form, "Content-Length: 16385"}, 413, "16\u00a0385"},
			{"POST", "/fr/account/webhooks", []string{form, large}, 413, "</html>"},
			{"POST", "/billing/stripe", []string{json, large}, 413, `{"error":"The request body is too large: 99000000 bytes (maximum 1048576)."}`},
			{"GET", "/api/v1/tools", []string{large}, 413, `{"error":"This path does not accept a request body.`},
			{"GET", "/api/v1/tools", []string{"Content-Length: 1"}, 413, `{"error":"`},
			{"GET", "/api/v1/tools", []string{"Transfer-Encoding: chunked"}, 413, `{"error":"`},
			{"GET", "/api/v1/openapi.json", []string{large}, 413, `{"error":"`},
			{"GET", "/feeds/changes.atom", []string{large}, 413, `{"error":"`},
			{"GET", "/readyz", []string{large}, 413, `{"error":"`},
			{"GET", "/fr/tools", []string{large, "Accept: text/html"}, 413, "</html>"},
			{"POST", "/api/v1/tools", []string{json, large}, 405, `{"error":"`},
			{"POST", "/en/tools", []string{form, large}, 405, "</html>"},
			{"POST", "/nowhere", []string{form, large}, 404, ""},
		} {
			name := fmt.Sprint(test.method, " ", test.path, " ", test.header)
			first, response, body := expectContinue(t, s.Address, test.method, test.path, test.header...)
			switch {
			case response == nil:
				t.Errorf("%s: got %s, want %d", name, first, test.status)
			case response.StatusCode != test.status || !strings.Contains(body, test.want):
				t.Errorf("%s: got %d %s, want %d with %s", name, response.StatusCode, body, test.status, test.want)
			}
		}
		// For bodies of an allowed size, the server sends 100 Continue.
		for path, media := range map[string]string{"/graphql": json, "/en/login": form, "/billing/stripe": json} {
			if first, _, _ := expectContinue(t, s.Address, "POST", path, media, "Content-Length: 30"); first != "HTTP/1.1 100" {
				t.Errorf("POST %s: got %s, want 100 Continue", path, first)
			}
		}
	})
}

// failure is a response with a 5xx status.
type failure struct{ name, id, body string }

// Every 5xx response has a request ID, and the log has the cause for that ID, even
// if many requests waited for the same result.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	proxies := testkit.StartToxiproxy(t)
	cfg.DatabaseURL = proxies.Between("database", cfg.DatabaseURL)
	key := blackbox.NewKey(t, cfg, "pro")
	metrics := testkit.FreeAddress(t)
	s := blackbox.Serve(t, cfg, "--demo", "--metrics-listen", metrics)
	proxies.Cut("database")
	if text, _ := scrape(t, metrics); !strings.Contains(text, "palmares_database_up 0") {
		t.Errorf("got metrics %s, want palmares_database_up 0", text)
	}

	var mu sync.Mutex
	var failures []failure
	send := func(name, method, path, body string, headers ...string) {
		got := s.Call(t, method, path, body, headers...)
		text, _ := io.ReadAll(got.Body)
		mu.Lock()
		defer mu.Unlock()
		check.True(t, got.StatusCode >= 500, "%s: got %d %s, want a 5xx status", name, got.StatusCode, text)
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
	for text := range strings.Lines(s.Log.String()) {
		var entry struct{ Msg, Cause, Request_id string }
		err := json.Unmarshal([]byte(text), &entry)
		check.MustTrue(t, err == nil, "got log line %q, want JSON", text)
		if entry.Cause != "" && entry.Msg != "request" {
			causes[entry.Request_id]++
		}
	}
	for _, f := range failures {
		check.True(t, f.id != "" && causes[f.id] != 0,
			"%s: got no cause for request ID %q in the log, want one", f.name, f.id)
		check.True(t, !strings.HasPrefix(f.name, "GraphQL") || strings.Contains(f.body, `"requestId":"`+f.id+`"`),
			"%s: got %s, want its request ID", f.name, f.body)
	}
	if t.Failed() {
		t.Log(s.Log)
	}
}

// Counts survive a restart. After a crash, at most those of the last second are
// lost.
func TestCountsSurviveRestarts(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		key := blackbox.NewKey(t, cfg, "developer")
		last := ""
		for round, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
			s := blackbox.Serve(t, cfg, "--demo")
			for range 10 {
				s.Call(t, http.MethodGet, "/api/v1/stats", "")
				last = s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key).Header.Get("X-RateLimit-Remaining")
			}
			check.Equal(t, last, fmt.Sprint(990-10*round), "round %d: remaining", round)
			if end == syscall.SIGKILL {
				db := testkit.Open(t, cfg)
				wait.Until(t, "all counts are saved", func() bool {
					used, err := db.Read.Usage.Query().Aggregate(ent.Sum(usage.FieldRequests)).Int(t.Context())
					return err == nil && used == 10*(round+1)
				})
				_ = db.Close()
			}
			http.DefaultClient.CloseIdleConnections() // the server would wait for them
			_ = s.Cmd.Process.Signal(end)
			<-s.Done
			if round == 0 {
				db := testkit.Open(t, cfg)
				if saved, err := db.Read.APIKey.Query().Where(apikey.LastUsedAtNotNil()).Exist(t.Context()); !saved || err != nil {
					t.Errorf("last use of the key: got %t, %v, want it saved when the server stops", saved, err)
				}
				_ = db.Close()
			}
		}
		s := blackbox.Serve(t, cfg)
		granted := 0
		for range 100 {
			if s.Call(t, http.MethodGet, "/api/v1/stats", "").StatusCode == 200 {
				granted++
			}
		}
		check.Equal(t, granted, 70, "requests granted")
	})
}

// Metrics have their own listener and show that Redis is unavailable.
func TestMetricsWithRedisUnavailable(t *testing.T) {
	t.Parallel()
	redis := testkit.StartRedis(t)
	address := testkit.FreeAddress(t)
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo", "--redis-url", redis.URL, "--metrics-listen", address)
	read := func() string {
		got := (&blackbox.Server{Address: address}).Call(t, http.MethodGet, "/metrics", "")
		body, _ := io.ReadAll(got.Body)
		return string(body)
	}
	check.Contains(t, read(), "palmares_quota_redis_failures_total 0")
	s.Call(t, http.MethodGet, "/api/v1/stats", "")
	check.Contains(t, read(), "palmares_quota_duration_seconds_count 1")
	redis.Stop()
	check.Equal(t, s.Call(t, http.MethodGet, "/api/v1/stats", "").StatusCode, 200)
	wait.Until(t, "the metrics show that Redis is unavailable", func() bool {
		text := read()
		return strings.Contains(text, "palmares_quota_redis_failures_total 1") && strings.Contains(text, "palmares_quota_fallback 1")
	})
	check.Equal(t, s.Call(t, http.MethodGet, "/metrics", "").StatusCode, 404, "/metrics on the public listener")
}
