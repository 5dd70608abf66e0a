package main

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// surfaces are the three ways in, which share one gate.
var surfaces = []struct{ name, method, path, body string }{
	{"REST", http.MethodGet, "/api/v1/stats", ""},
	{"embeddings", http.MethodGet, "/api/embeddings/plume", ""},
	{"GraphQL", http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`},
}

// onEachStore runs a test on each database, and once with Redis.
func onEachStore(t *testing.T, test func(t *testing.T, cfg store.Config, args ...string)) {
	t.Helper()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		t.Run("alone", func(t *testing.T) { test(t, cfg) })
		if cfg.DatabaseURL != "" {
			t.Run("redis", func(t *testing.T) { test(t, cfg, "--redis-url", testkit.StartRedis(t).URL) })
		}
	})
}

func TestGate(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, cfg store.Config, args ...string) {
		s := startServer(t, cfg, append(args, "--demo", "--trusted-proxies", "127.0.0.1")...)
		developer, pro := newKey(t, cfg, "developer"), newKey(t, cfg, "pro")
		left := 1000
		for i, surface := range surfaces {
			t.Run(surface.name, func(t *testing.T) {
				ask := func(headers ...string) *http.Response {
					return s.call(t, surface.method, surface.path, surface.body, headers...)
				}
				got := ask("Authorization", "Bearer "+developer)
				left--
				if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "free" || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
					t.Errorf("a Developer: %d, %v", got.StatusCode, got.Header)
				}
				midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Format(time.RFC3339)
				if reset := got.Header.Get("X-RateLimit-Reset"); reset != midnight {
					t.Errorf("it resets at %s", reset)
				}
				if cdn := got.Header.Get("CDN-Cache-Control"); cdn != "private, no-store" {
					t.Errorf("a CDN may %q", cdn)
				}
				got = ask("Authorization", "bearer "+pro)
				if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "pro" || got.Header.Get("X-RateLimit-Remaining") != "" || got.Header.Get("X-RateLimit-Reset") != "" {
					t.Errorf("a Pro: %d, %v", got.StatusCode, got.Header)
				}

				wrong := developer[:len(developer)-1] + "x"
				if wrong == developer {
					wrong = developer[:len(developer)-1] + "y"
				}
				for name, headers := range map[string][]string{
					"nothing":         {""},
					"a word":          {"Bearer"},
					"no scheme":       {developer},
					"another scheme":  {"Basic " + developer},
					"no space":        {"Bearer" + developer},
					"two spaces":      {"Bearer  " + developer},
					"a space inside":  {"Bearer " + developer[:20] + " " + developer[20:]},
					"one letter off":  {"Bearer " + wrong},
					"upper case":      {"Bearer " + strings.ToUpper(developer)},
					"cut":             {"Bearer " + developer[:30]},
					"5 kB":            {"Bearer pal_" + strings.Repeat("A", 5000)},
					"unknown":         {"Bearer " + forged("pal_nobodyhasit0")},
					"two of them":     {"Bearer " + developer, "Bearer " + pro},
					"twice the same":  {"Bearer " + developer, "Bearer " + developer},
					"a list":          {"Bearer " + developer + ", Bearer " + pro},
					"quoted":          {`Bearer "` + developer + `"`},
					"a stolen public": {"Bearer " + forged(developer)},
				} {
					var pairs []string
					for _, value := range headers {
						pairs = append(pairs, "Authorization", value)
					}
					got := ask(pairs...)
					body, _ := io.ReadAll(got.Body)
					if got.StatusCode != 401 || got.Header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(string(body), `{"error":"`) || got.Header.Get("X-RateLimit-Tier") != "" {
						t.Errorf("%s: %d %s %v", name, got.StatusCode, body, got.Header)
					}
					if strings.Contains(string(body), developer[20:40]) {
						t.Errorf("%s: the answer shows the key", name)
					}
				}

				// An address has 100 a day, whichever way it takes, and the
				// others have theirs.
				status := 200
				if surface.name == "embeddings" {
					status = 401
				}
				from := fmt.Sprintf("203.0.113.%d", i)
				var answered, refused atomic.Int64
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						for range 10 {
							switch got := ask("X-Forwarded-For", from); got.StatusCode {
							case status:
								answered.Add(1)
							case 429:
								refused.Add(1)
								if got.Header.Get("Retry-After") == "" || got.Header.Get("X-RateLimit-Tier") != "" || got.Header.Get("Cache-Control") != "no-store" {
									t.Errorf("refused with %v", got.Header)
								}
							default:
								t.Errorf("%d", got.StatusCode)
							}
						}
					})
				}
				all.Wait()
				if surface.name == "embeddings" { // a request that needs a key is not counted
					if answered.Load() != 200 {
						t.Errorf("%d of 200 asked for a key", answered.Load())
					}
				} else if most := 100 + inFlight(s); answered.Load() < 100 || answered.Load() > most || answered.Load()+refused.Load() != 200 {
					t.Errorf("got %d answered and %d refused, want 100 and 100 (or up to %d answered)", answered.Load(), refused.Load(), most)
				}
				if got := ask("X-Forwarded-For", "2001:db8::1"); got.StatusCode != status {
					t.Errorf("another address: %d", got.StatusCode)
				}
				if got := ask("X-Forwarded-For", from, "Authorization", "Bearer "+developer); got.StatusCode != 200 {
					t.Errorf("with a key: %d", got.StatusCode)
				}
				left--
			})
		}

		// What is free.
		for _, path := range []string{"/api/v1/openapi.json", "/healthz", "/readyz"} {
			for _, headers := range [][]string{{"X-Forwarded-For", "203.0.113.0"}, {"Authorization", "Bearer nonsense"}} {
				if got := s.call(t, http.MethodGet, path, "", headers...); got.StatusCode != 200 {
					t.Errorf("%s: %d", path, got.StatusCode)
				}
			}
		}
		tag := s.call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+developer).Header.Get("ETag")
		left--
		for range 3 {
			got := s.call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+developer, "If-None-Match", tag)
			if got.StatusCode != 304 || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
				t.Errorf("%d, %s left of %d", got.StatusCode, got.Header.Get("X-RateLimit-Remaining"), left)
			}
		}

		// Who names no answer learns something new: that is not free.
		for _, any := range [][]string{{"If-None-Match", "*"}, {"If-None-Match", `"x"`, "If-None-Match", " * "}} {
			left--
			got := s.call(t, http.MethodGet, "/api/v1/stats", "", append(any, "Authorization", "Bearer "+developer)...)
			if got.StatusCode != 304 || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
				t.Errorf("%v: %d, %s left of %d", any, got.StatusCode, got.Header.Get("X-RateLimit-Remaining"), left)
			}
		}

		// A key in the address is refused, and no line holds any.
		for _, path := range []string{"/api/v1/stats?key=" + developer, "/api/v1/tools/" + developer, "/api/v1/stats?x=%70al_" + developer[4:]} {
			if got := s.call(t, http.MethodGet, path, ""); got.StatusCode != 401 {
				t.Errorf("%.30s: %d", path, got.StatusCode)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		s.ends(t)
		for _, secret := range []string{developer, pro, developer[16:48], pro[16:48]} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("the log holds a key")
			}
		}
		used := succeeds(t, palmares(t, cfg, "accounts", "list")).out
		if !strings.Contains(used, "developer") {
			t.Error(used)
		}
	})
}

// inFlight is how many requests may be granted twice: none, unless this machine
// was so busy that Redis took longer than a request waits for it. Then the
// server counts alone, without knowing those that are on their way to Redis.
func inFlight(s *server) int64 {
	if strings.Contains(s.log.String(), "redis unavailable") {
		return 20 // as many as the test sends at once
	}
	return 0
}

// forged has a key's public part, another secret, and the right checksum.
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

// Counts are kept over a restart, and all but the last second over a crash.
func TestCountsOverRestarts(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		key := newKey(t, cfg, "developer")
		last := ""
		for round, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
			s := startServer(t, cfg, "--demo")
			for range 10 {
				s.call(t, http.MethodGet, "/api/v1/stats", "")
				last = s.call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key).Header.Get("X-RateLimit-Remaining")
			}
			if want := fmt.Sprint(990 - 10*round); last != want {
				t.Errorf("round %d: %s left, not %s", round, last, want)
			}
			if end == syscall.SIGKILL {
				db := testkit.Open(t, cfg)
				wait.Until(t, "all that was counted is written", func() bool {
					used, err := db.Current().Usage.Query().Aggregate(ent.Sum(usage.FieldRequests)).Int(t.Context())
					return err == nil && used == 10*(round+1)
				})
				_ = db.Close()
			}
			http.DefaultClient.CloseIdleConnections() // or it waits for them
			_ = s.cmd.Process.Signal(end)
			<-s.done
		}
		s := startServer(t, cfg)
		answered := 0
		for range 100 {
			if s.call(t, http.MethodGet, "/api/v1/stats", "").StatusCode == 200 {
				answered++
			}
		}
		if answered != 70 {
			t.Errorf("the address had %d left, not 70", answered)
		}
	})
}

// A revoked key, and a changed plan, become known to every server. How soon, the
// tests of auth check on a clock of their own.
func TestRevokedEverywhere(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		key := newKey(t, cfg, "developer")
		servers := []*server{startServer(t, cfg, "--demo"), startServer(t, cfg)}
		tier := func(s *server) string {
			got := s.call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key)
			return fmt.Sprint(got.StatusCode, got.Header.Get("X-RateLimit-Tier"))
		}
		everywhere := func(want string) {
			t.Helper()
			for _, s := range servers {
				wait.Until(t, want, func() bool { return tier(s) == want })
			}
		}
		everywhere("200free")
		email := strings.Fields(strings.Split(succeeds(t, palmares(t, cfg, "accounts", "list")).out, "\n")[1])[0]
		for plan, tier := range map[string]string{"pro": "200pro", "developer": "200free"} {
			succeeds(t, palmares(t, cfg, "accounts", "plan", email, plan))
			everywhere(tier)
		}
		succeeds(t, palmares(t, cfg, "keys", "revoke", key[4:16]))
		everywhere("401")
	})
}

func TestAccountCommands(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, c := range []struct {
			code int
			args string
			says string
		}{
			{0, "accounts create Ana@Example.com", "ana@example.com has the developer plan."},
			{1, "accounts create ana@example.com", "palmares: An account for ana@example.com already exists."},
			{1, "accounts create ana", "palmares: Enter a valid email address."},
			{2, "accounts create bo@example.com --plan gold", "--plan"},
			{1, "keys create nobody@example.com", "palmares: There is no account for nobody@example.com."},
			{1, "keys revoke nothing", "palmares: There is no active key with this id."},
			{0, "accounts plan ana@example.com pro", "ana@example.com has the pro plan."},
			{0, "accounts show ana@example.com", "0 requests of no bound"},
		} {
			got := runs(t, palmares(t, cfg, strings.Fields(c.args)...))
			if got.code != c.code || !strings.Contains(got.out+got.err, c.says) {
				t.Errorf("%s: exit %d\n%s%s", c.args, got.code, got.out, got.err)
			}
		}
		made := succeeds(t, palmares(t, cfg, "keys", "create", "ana@example.com", "--name", "a name"))
		if lines := strings.Split(made.out, "\n"); len(lines) != 2 || len(lines[0]) != 54 {
			t.Errorf("standard output: %q", made.out)
		}
		if list := succeeds(t, palmares(t, cfg, "keys", "list", "ana@example.com")).out; !strings.Contains(list, made.out[4:16]) || strings.Contains(list, made.out[16:48]) {
			t.Errorf("the list: %s", list)
		}
	})
}

// Operators see on a listener of their own that Redis is away.
func TestMetrics(t *testing.T) {
	t.Parallel()
	redis := testkit.StartRedis(t)
	address := freeAddress(t)
	s := startServer(t, blackbox.Demo(t), "--demo", "--redis-url", redis.URL, "--metrics-listen", address)
	read := func() string {
		got := (&server{address: address}).call(t, http.MethodGet, "/metrics", "")
		body, _ := io.ReadAll(got.Body)
		return string(body)
	}
	if !strings.Contains(read(), "palmares_quota_redis_failures_total 0") {
		t.Error(read())
	}
	redis.Stop()
	if got := s.call(t, http.MethodGet, "/api/v1/stats", ""); got.StatusCode != 200 {
		t.Errorf("%d", got.StatusCode)
	}
	wait.Until(t, "Redis to be missed", func() bool {
		said := read()
		return strings.Contains(said, "palmares_quota_redis_failures_total 1") && strings.Contains(said, "palmares_quota_fallback 1")
	})
	if got := s.call(t, http.MethodGet, "/metrics", ""); got.StatusCode != 404 {
		t.Errorf("everybody sees them: %d", got.StatusCode)
	}
}
