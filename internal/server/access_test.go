package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
	"palmares/internal/transport/saved"
)

// interfaces are the APIs that share one quota.
var interfaces = []struct{ name, method, path, body string }{
	{"REST", http.MethodGet, "/api/v1/stats", ""},
	{"embeddings", http.MethodGet, "/api/embeddings/plume", ""},
	{"all embeddings", http.MethodGet, "/api/embeddings", ""},
	{"saved queries", http.MethodGet, "/q/palmares/growth", ""},
	{"GraphQL", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`},
	{"GraphQL embeddings", http.MethodPost, "/graphql", `{"query":"{embeddings(slug: \"plume\") {hash}}"}`},
}

// basic returns the Authorization header of HTTP Basic.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// free returns how many responses from the cache do not count against an address within a
// second, in which the clock stands.
func free(path string) int64 {
	if strings.HasPrefix(path, saved.Path) {
		return 10
	}
	return 0
}

func TestKeysAndQuotas(t *testing.T) {
	servertest.Each(t, func(t *testing.T, s *servertest.Server) { testKeysAndQuotas(t, s.Store, "") })
}

func TestKeysAndQuotasWithRedis(t *testing.T) {
	db := testkit.Open(t, testkit.Postgres(t))
	feedtest.Publish(t, db, demo.Catalog())
	testKeysAndQuotas(t, db, testkit.StartRedis(t).URL)
}

func testKeysAndQuotas(t *testing.T, db *store.Store, redis string) {
	t.Helper()
	log := &testkit.Log{}
	s := servertest.New(t, servertest.On(db), func(c *server.Config) {
		c.RedisURL, c.Log, c.Proxies = redis, slog.New(slog.NewTextHandler(log, nil)), []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	})
	developer, pro := s.Key(auth.Developer), s.Key(auth.Pro)
	left := 1000
	for i, api := range interfaces {
		t.Run(api.name, func(t *testing.T) {
			send := func(headers ...string) *httptest.ResponseRecorder {
				if api.path == "/graphql" {
					headers = append(headers, "Accept", "application/graphql-response+json")
				}
				return s.Do(api.method, api.path, api.body, headers...)
			}
			got := send("Authorization", "Bearer "+developer)
			left--
			if got.Code != 200 || got.Header().Get("X-RateLimit-Tier") != "free" || got.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
				t.Errorf("Developer: got %d %v, want 200 and %d remaining", got.Code, got.Header(), left)
			}
			midnight := s.Clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour).Format(time.RFC3339)
			check.Equal(t, got.Header().Get("X-RateLimit-Reset"), midnight, "X-RateLimit-Reset")
			check.Equal(t, got.Header().Get("CDN-Cache-Control"), "private, no-store", "CDN-Cache-Control")
			got = send("Authorization", "bearer "+pro)
			if got.Code != 200 || got.Header().Get("X-RateLimit-Tier") != "pro" || got.Header().Get("X-RateLimit-Remaining") != "" || got.Header().Get("X-RateLimit-Reset") != "" {
				t.Errorf("Pro: got %d %v, want 200 without a limit", got.Code, got.Header())
			}

			// HTTP Basic equals Bearer where spreadsheets read, and only there.
			for _, authorization := range []string{basic(developer, ""), basic(developer, "ignored: é"), strings.Replace(basic(developer, "x"), "Basic", "bAsIc", 1)} {
				got := send("Authorization", authorization)
				if api.path == "/graphql" {
					check.Equal(t, got.Code, 401, "%s: %v", authorization[:8], got.Header())
					check.Equal(t, got.Header().Get("WWW-Authenticate"), "Bearer", "%s: %v", authorization[:8], got.Header())
					continue
				}
				left--
				if got.Code != 200 || got.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(left) || got.Header().Get("CDN-Cache-Control") != "private, no-store" {
					t.Errorf("%s: got %d %v, want 200 and %d remaining", authorization[:8], got.Code, got.Header(), left)
				}
			}

			// Keys that are mistyped are tested in package auth.
			for name, headers := range map[string][]string{
				"empty":              {""},
				"scheme only":        {"Bearer"},
				"no scheme":          {developer},
				"another scheme":     {"Digest " + developer},
				"Basic, not encoded": {"Basic " + developer},
				"Basic, no user":     {basic("", developer)},
				"Basic, no colon":    {"Basic " + base64.StdEncoding.EncodeToString([]byte(developer))},
				"Basic, padding":     {strings.TrimRight(basic(developer, ""), "=")},
				"Basic, unknown":     {basic(forged("pal_nobodyhasit0"), "")},
				"Basic, forged":      {basic(forged(developer), "")},
				"Basic, a space":     {basic(" "+developer, "")},
				"Basic and Bearer":   {basic(developer, ""), "Bearer " + developer},
				"no space":           {"Bearer" + developer},
				"two spaces":         {"Bearer  " + developer},
				"a space inside":     {"Bearer " + developer[:20] + " " + developer[20:]},
				"unknown":            {"Bearer " + forged("pal_nobodyhasit0")},
				"two keys":           {"Bearer " + developer, "Bearer " + pro},
				"the same key twice": {"Bearer " + developer, "Bearer " + developer},
				"a list":             {"Bearer " + developer + ", Bearer " + pro},
				"quoted":             {`Bearer "` + developer + `"`},
				"forged secret":      {"Bearer " + forged(developer)},
			} {
				var pairs []string
				for _, value := range headers {
					pairs = append(pairs, "Authorization", value)
				}
				got := send(pairs...)
				body := got.Body.String()
				if got.Code != 401 || got.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(body, `{"error":"`) || got.Header().Get("X-RateLimit-Tier") != "" {
					t.Errorf("%s: got %d %s %v, want 401", name, got.Code, body, got.Header())
				}
				check.Lacks(t, body, developer[20:40], "%s: a response that contains the key", name)
			}

			// An address has a quota of 100 requests a day. Other addresses have
			// their own.
			status := 200
			if strings.HasSuffix(api.name, "embeddings") {
				status = 401
			}
			from := fmt.Sprintf("203.0.113.%d", i)
			var granted, rejected atomic.Int64
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range 10 {
						switch got := send("X-Forwarded-For", from); got.Code {
						case status:
							granted.Add(1)
						case 429:
							rejected.Add(1)
							if got.Header().Get("Retry-After") == "" || got.Header().Get("X-RateLimit-Tier") != "" || got.Header().Get("Cache-Control") != "no-store" {
								t.Errorf("429: got headers %v, want Retry-After and no-store", got.Header())
							}
						default:
							t.Errorf("got %d, want %d or 429", got.Code, status)
						}
					}
				})
			}
			all.Wait()
			if api.method == http.MethodGet && strings.HasSuffix(api.name, "embeddings") { // refused before any work
				check.Equal(t, granted.Load(), 200, "of 200 responses with 401")
			} else if least := 100 + free(api.path); granted.Load() < least || granted.Load() > least+inFlight(log) || granted.Load()+rejected.Load() != 200 {
				t.Errorf("got %d granted and %d rejected, want %d granted (or up to %d more)", granted.Load(), rejected.Load(), least, inFlight(log))
			}
			check.Equal(t, send("X-Forwarded-For", "2001:db8::1").Code, status, "another address")
			check.Equal(t, send("X-Forwarded-For", from, "Authorization", "Bearer "+developer).Code, 200, "with a key")
			left--
		})
	}

	// Requests to these paths do not count.
	for _, path := range []string{"/api/v1/openapi.json", "/api/v1/openapi.yaml", "/healthz", "/readyz"} {
		for _, headers := range [][]string{{"X-Forwarded-For", "203.0.113.0"}, {"Authorization", "Bearer nonsense"}} {
			check.Equal(t, s.Get(path, headers...).Code, 200, path)
		}
	}
	tag := s.Get("/api/v1/stats", "Authorization", "Bearer "+developer).Header().Get("ETag")
	left--
	for range 3 {
		got := s.Get("/api/v1/stats", "Authorization", "Bearer "+developer, "If-None-Match", tag)
		check.Equal(t, got.Code, 304)
		check.Equal(t, got.Header().Get("X-RateLimit-Remaining"), fmt.Sprint(left))
	}

	// A wildcard reveals whether the resource exists, so it counts.
	for _, any := range [][]string{{"If-None-Match", "*"}, {"If-None-Match", `"x"`, "If-None-Match", " * "}} {
		left--
		got := s.Get("/api/v1/stats", append(any, "Authorization", "Bearer "+developer)...)
		check.Equal(t, got.Code, 304, any)
		check.Equal(t, got.Header().Get("X-RateLimit-Remaining"), fmt.Sprint(left), any)
	}

	// A key in the URL is rejected, and the log contains no key.
	for _, path := range []string{"/api/v1/stats?key=" + developer, "/api/v1/tools/" + developer, "/api/v1/stats?x=%70al_" + developer[4:]} {
		check.Equal(t, s.Get(path).Code, 401, "%.30s", path)
	}
	for _, secret := range []string{developer, pro, developer[16:48], pro[16:48]} {
		if text := log.String(); strings.Contains(text, secret) || !strings.Contains(text, "/api/v1/stats") {
			t.Error("got a key in the log, or no requests, want requests without keys")
		}
	}
}

// inFlight returns how many requests may be granted beyond the quota. There are
// none unless Redis timed out because this machine was busy. In that case, the
// server counts locally, without the requests that are in flight to Redis.
func inFlight(log *testkit.Log) int64 {
	if strings.Contains(log.String(), "redis unavailable") {
		return 20 // the number of concurrent requests in the test
	}
	return 0
}

// forged returns a key with the same ID, another secret and a valid checksum.
func forged(key string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := key[4:16] + strings.Repeat("A", 32)
	sum := crc32.ChecksumIEEE([]byte(body))
	check := ""
	for range 6 {
		check = string(digits[sum%62]) + check
		sum /= 62
	}
	return "pal_" + body + check
}

// Requests with a key are counted by endpoint exactly as they count against its
// quota.
func TestCallsByEndpoint(t *testing.T) {
	servertest.Each(t, func(t *testing.T, s *servertest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx) }()
		key := s.Key(auth.Developer)
		authorized := []string{"Authorization", "Bearer " + key}
		for _, api := range interfaces {
			for range 2 {
				s.Do(api.method, api.path, api.body, authorized...)
			}
			s.Do(api.method, api.path, api.body) // anonymous
		}
		s.Get("/api/v1/tools/plume", authorized...)
		tag := s.Get("/api/v1/tools", authorized...).Header().Get("ETag")
		s.Get("/api/v1/tools", append(authorized, "If-None-Match", tag)...) // free
		s.Get("/api/v1/nothing", authorized...)
		s.Get("/api/v1/openapi.json", authorized...) // free
		s.Do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"plume"}}}`,
			append(authorized, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")...)
		wait.Until(t, "calls are saved while the server runs", func() bool { return s.Store.Read.Usage.Query().CountX(t.Context()) > 0 })
		s.Get("/api/v1/tools/plume", authorized...)
		stop()
		check.OK(t, <-stopped) // it has saved all counts
		got := map[string]int{}
		for _, row := range s.Store.Read.Usage.Query().AllX(t.Context()) {
			parsed, _ := auth.ParseKey(key)
			check.True(t, row.Key == parsed.ID, "got key %q, want %q", row.Key, parsed.ID)
			got[row.Endpoint] += row.Requests // the day may have changed
		}
		want := map[string]int{
			"/api/v1/stats": 2, "/api/embeddings/{slug}": 2, "/api/embeddings": 2, "/q/{handle}/{name}": 2, "/graphql": 4,
			"/api/v1/tools/{slug}": 2, "/api/v1/tools": 1, "other": 1, "/mcp": 1,
		}
		check.True(t, maps.Equal(got, want), "got %v, want %v", got, want)
	})
}

// If Redis has never been reached, a server counts by itself, also what counts once a day.
func TestCountsWithoutRedis(t *testing.T) {
	s := servertest.New(t, func(c *server.Config) {
		c.RedisURL, c.FilesMB, c.Database = "redis://"+testkit.FreeAddress(t), 100, testkit.SQLite(t)
	})
	key := s.Key(auth.Developer)
	for _, request := range []struct{ path, left string }{
		{"/api/v1/stats", "999"}, {"/api/v1/stats", "998"}, {"/files/releases/1/tools.parquet", "997"}, {"/files/releases/1/tools.parquet", "997"},
	} {
		got := s.Get(request.path, "Authorization", "Bearer "+key)
		check.Equal(t, got.Header().Get("X-RateLimit-Remaining"), request.left, "%s: %d", request.path, got.Code)
	}
}

// On a public server without a mail server, nobody can sign in, no links are logged, and
// applications cannot connect.
func TestSignInDisabled(t *testing.T) {
	log := &testkit.Log{}
	s := servertest.New(t, func(c *server.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	if got := s.Get("/en/login"); got.Code != 200 || !strings.Contains(got.Body.String(), "Signing in is disabled") || strings.Contains(got.Body.String(), `id="email"`) {
		t.Errorf("got %d %s, want 200 without a form", got.Code, got.Body)
	}
	check.Equal(t, s.Do(http.MethodPost, "/en/login", "email=ana@example.com", "Content-Type", "application/x-www-form-urlencoded").Code, 403, "POST /en/login")
	check.True(t, !strings.Contains(log.String(), "ana@example.com"), "got the email address in the log, want none")
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/oauth/authorize", "/oauth/token", "/oauth/register"} {
		if got := s.Get(path).Code; got != 404 && got != 302 {
			t.Errorf("%s: got %d, want 404", path, got)
		}
	}
	got := s.Do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer x")
	challenge := got.Header().Get("WWW-Authenticate")
	check.True(t, got.Code == 401 && challenge == "Bearer", "got %d %s, want 401 Bearer", got.Code, challenge)
	check.Equal(t, s.Do(http.MethodPost, "/billing/stripe", "{}").Code, 404, "an event without Stripe")
}
