package main

import (
	"encoding/base64"
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
	"palmares/ent/apikey"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
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

func TestKeysAndQuotas(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) { testKeysAndQuotas(t, cfg) })
}

func TestKeysAndQuotasWithRedis(t *testing.T) {
	t.Parallel()
	testKeysAndQuotas(t, testkit.Postgres(t), "--redis-url", testkit.StartRedis(t).URL)
}

func testKeysAndQuotas(t *testing.T, cfg store.Config, args ...string) {
	t.Helper()
	s := blackbox.Serve(t, cfg, append(args, "--demo", "--trusted-proxies", "127.0.0.1")...)
	developer, pro := blackbox.NewKey(t, cfg, "developer"), blackbox.NewKey(t, cfg, "pro")
	left := 1000
	for i, api := range interfaces {
		t.Run(api.name, func(t *testing.T) {
			send := func(headers ...string) *http.Response {
				if api.path == "/graphql" {
					headers = append(headers, "Accept", "application/graphql-response+json")
				}
				return s.Call(t, api.method, api.path, api.body, headers...)
			}
			got := send("Authorization", "Bearer "+developer)
			left--
			if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "free" || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
				t.Errorf("Developer: got %d %v, want 200 and %d remaining", got.StatusCode, got.Header, left)
			}
			midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Format(time.RFC3339)
			if reset := got.Header.Get("X-RateLimit-Reset"); reset != midnight {
				t.Errorf("got X-RateLimit-Reset %s, want %s", reset, midnight)
			}
			if cdn := got.Header.Get("CDN-Cache-Control"); cdn != "private, no-store" {
				t.Errorf("got CDN-Cache-Control %q, want private, no-store", cdn)
			}
			got = send("Authorization", "bearer "+pro)
			if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "pro" || got.Header.Get("X-RateLimit-Remaining") != "" || got.Header.Get("X-RateLimit-Reset") != "" {
				t.Errorf("Pro: got %d %v, want 200 without a limit", got.StatusCode, got.Header)
			}

			// HTTP Basic equals Bearer where spreadsheets read, and only there.
			for _, authorization := range []string{basic(developer, ""), basic(developer, "ignored: é"), strings.Replace(basic(developer, "x"), "Basic", "bAsIc", 1)} {
				got := send("Authorization", authorization)
				if api.path == "/graphql" {
					if got.StatusCode != 401 || got.Header.Get("WWW-Authenticate") != "Bearer" {
						t.Errorf("%s: got %d %v, want 401", authorization[:8], got.StatusCode, got.Header)
					}
					continue
				}
				left--
				if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) || got.Header.Get("CDN-Cache-Control") != "private, no-store" {
					t.Errorf("%s: got %d %v, want 200 and %d remaining", authorization[:8], got.StatusCode, got.Header, left)
				}
			}

			invalid := developer[:len(developer)-1] + "x"
			if invalid == developer {
				invalid = developer[:len(developer)-1] + "y"
			}
			for name, headers := range map[string][]string{
				"empty":              {""},
				"scheme only":        {"Bearer"},
				"no scheme":          {developer},
				"another scheme":     {"Digest " + developer},
				"Basic, not encoded": {"Basic " + developer},
				"Basic, no user":     {basic("", developer)},
				"Basic, no colon":    {"Basic " + base64.StdEncoding.EncodeToString([]byte(developer))},
				"Basic, padding":     {strings.TrimRight(basic(developer, ""), "=")},
				"Basic, truncated":   {basic(developer[:30], "")},
				"Basic, unknown":     {basic(forged("pal_nobodyhasit0"), "")},
				"Basic, forged":      {basic(forged(developer), "")},
				"Basic, a space":     {basic(" "+developer, "")},
				"Basic and Bearer":   {basic(developer, ""), "Bearer " + developer},
				"no space":           {"Bearer" + developer},
				"two spaces":         {"Bearer  " + developer},
				"a space inside":     {"Bearer " + developer[:20] + " " + developer[20:]},
				"one character off":  {"Bearer " + invalid},
				"upper case":         {"Bearer " + strings.ToUpper(developer)},
				"truncated":          {"Bearer " + developer[:30]},
				"5 kB":               {"Bearer pal_" + strings.Repeat("A", 5000)},
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
				body, _ := io.ReadAll(got.Body)
				if got.StatusCode != 401 || got.Header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(string(body), `{"error":"`) || got.Header.Get("X-RateLimit-Tier") != "" {
					t.Errorf("%s: got %d %s %v, want 401", name, got.StatusCode, body, got.Header)
				}
				if strings.Contains(string(body), developer[20:40]) {
					t.Errorf("%s: got a response that contains the key, want none", name)
				}
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
						switch got := send("X-Forwarded-For", from); got.StatusCode {
						case status:
							granted.Add(1)
						case 429:
							rejected.Add(1)
							if got.Header.Get("Retry-After") == "" || got.Header.Get("X-RateLimit-Tier") != "" || got.Header.Get("Cache-Control") != "no-store" {
								t.Errorf("429: got headers %v, want Retry-After and no-store", got.Header)
							}
						default:
							t.Errorf("got %d, want %d or 429", got.StatusCode, status)
						}
					}
				})
			}
			all.Wait()
			if api.method == http.MethodGet && strings.HasSuffix(api.name, "embeddings") { // refused before any work
				if granted.Load() != 200 {
					t.Errorf("got %d of 200 responses with 401, want all", granted.Load())
				}
			} else if most := 100 + inFlight(s); granted.Load() < 100 || granted.Load() > most || granted.Load()+rejected.Load() != 200 {
				t.Errorf("got %d granted and %d rejected, want 100 and 100 (or up to %d granted)", granted.Load(), rejected.Load(), most)
			}
			if got := send("X-Forwarded-For", "2001:db8::1"); got.StatusCode != status {
				t.Errorf("another address: got %d, want %d", got.StatusCode, status)
			}
			if got := send("X-Forwarded-For", from, "Authorization", "Bearer "+developer); got.StatusCode != 200 {
				t.Errorf("with a key: got %d, want 200", got.StatusCode)
			}
			left--
		})
	}

	// Requests to these paths do not count.
	for _, path := range []string{"/api/v1/openapi.json", "/api/v1/openapi.yaml", "/healthz", "/readyz"} {
		for _, headers := range [][]string{{"X-Forwarded-For", "203.0.113.0"}, {"Authorization", "Bearer nonsense"}} {
			if got := s.Call(t, http.MethodGet, path, "", headers...); got.StatusCode != 200 {
				t.Errorf("%s: got %d, want 200", path, got.StatusCode)
			}
		}
	}
	tag := s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+developer).Header.Get("ETag")
	left--
	for range 3 {
		got := s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+developer, "If-None-Match", tag)
		if got.StatusCode != 304 || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
			t.Errorf("got %d with %s remaining, want 304 with %d", got.StatusCode, got.Header.Get("X-RateLimit-Remaining"), left)
		}
	}

	// A wildcard reveals whether the resource exists, so it counts.
	for _, any := range [][]string{{"If-None-Match", "*"}, {"If-None-Match", `"x"`, "If-None-Match", " * "}} {
		left--
		got := s.Call(t, http.MethodGet, "/api/v1/stats", "", append(any, "Authorization", "Bearer "+developer)...)
		if got.StatusCode != 304 || got.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
			t.Errorf("%v: got %d with %s remaining, want 304 with %d", any, got.StatusCode, got.Header.Get("X-RateLimit-Remaining"), left)
		}
	}

	// A key in the URL is rejected, and the log contains no key.
	for _, path := range []string{"/api/v1/stats?key=" + developer, "/api/v1/tools/" + developer, "/api/v1/stats?x=%70al_" + developer[4:]} {
		if got := s.Call(t, http.MethodGet, path, ""); got.StatusCode != 401 {
			t.Errorf("%.30s: got %d, want 401", path, got.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForExit(t)
	for _, secret := range []string{developer, pro, developer[16:48], pro[16:48]} {
		if strings.Contains(s.Log.String(), secret) {
			t.Error("got a key in the log, want none")
		}
	}
	used := blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "list")).Out
	if !strings.Contains(used, "developer") {
		t.Errorf("got %s, want the developer account", used)
	}
}

// inFlight returns how many requests may be granted beyond the quota. There are
// none unless Redis timed out because this machine was busy. In that case, the
// server counts locally, without the requests that are in flight to Redis.
func inFlight(s *blackbox.Server) int64 {
	if strings.Contains(s.Log.String(), "redis unavailable") {
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
			if want := fmt.Sprint(990 - 10*round); last != want {
				t.Errorf("round %d: got %s remaining, want %s", round, last, want)
			}
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
		if granted != 70 {
			t.Errorf("got %d requests granted, want 70", granted)
		}
	})
}

// Revoked keys and changed plans take effect on every server. The tests of package
// auth check how soon, with a fake clock.
func TestKeyChangesOnAllServers(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		key := blackbox.NewKey(t, cfg, "developer")
		servers := []*blackbox.Server{blackbox.Serve(t, cfg, "--demo"), blackbox.Serve(t, cfg)}
		tier := func(s *blackbox.Server) string {
			got := s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key)
			if got.StatusCode == http.StatusTooManyRequests { // polling used up the quota
				got.StatusCode = http.StatusOK
			}
			return fmt.Sprint(got.StatusCode, got.Header.Get("X-RateLimit-Tier"))
		}
		everywhere := func(want string) {
			t.Helper()
			for _, s := range servers {
				wait.Until(t, want, func() bool { return tier(s) == want })
			}
		}
		everywhere("200free")
		email := strings.Fields(strings.Split(blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "list")).Out, "\n")[1])[0]
		for plan, tier := range map[string]string{"pro": "200pro", "developer": "200free"} {
			blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "plan", email, plan))
			everywhere(tier)
		}
		blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "revoke", key[4:16]))
		everywhere("401")
	})
}

func TestAccountCommands(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, c := range []struct {
			code int
			args string
			want string
		}{
			{0, "accounts create Ana@Example.com", "ana@example.com has the developer plan."},
			{1, "accounts create ana@example.com", "palmares: An account for ana@example.com already exists."},
			{1, "accounts create ana", "palmares: Enter a valid email address."},
			{2, "accounts create bo@example.com --plan gold", "--plan"},
			{1, "keys create nobody@example.com", "palmares: There is no account for nobody@example.com."},
			{1, "keys revoke nothing", "palmares: This key does not exist or was already revoked."},
			{0, "accounts plan ana@example.com pro", "ana@example.com has the pro plan."},
			{0, "accounts show ana@example.com", "0 today (daily quota: unlimited)"},
		} {
			got := blackbox.Run(t, blackbox.Command(t, cfg, strings.Fields(c.args)...))
			if got.Code != c.code || !strings.Contains(got.Out+got.Err, c.want) {
				t.Errorf("%s: got exit code %d and %s%s, want %d and %q", c.args, got.Code, got.Out, got.Err, c.code, c.want)
			}
		}
		created := blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "create", "ana@example.com", "--name", "a name"))
		if lines := strings.Split(created.Out, "\n"); len(lines) != 2 || len(lines[0]) != 54 {
			t.Errorf("got %q on standard output, want only the key", created.Out)
		}
		if list := blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "list", "ana@example.com")).Out; !strings.Contains(list, created.Out[4:16]) || strings.Contains(list, created.Out[16:48]) {
			t.Errorf("got %s, want the ID of the key without its secret", list)
		}
		if got := blackbox.Run(t, blackbox.Command(t, cfg, "accounts", "delete", "ana@example.com")); got.Code != 1 || !strings.Contains(got.Err, "--yes is required") {
			t.Errorf("got exit code %d and %s, want a request for confirmation", got.Code, got.Err)
		}
		if got := blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "delete", "--yes", "ana@example.com")); !strings.Contains(got.Out, "ana@example.com was deleted") {
			t.Errorf("got %s, want the account deleted", got.Out)
		}
		if got := blackbox.Run(t, blackbox.Command(t, cfg, "accounts", "show", "ana@example.com")); got.Code != 1 || !strings.Contains(got.Err, "There is no account") {
			t.Errorf("after the deletion: got exit code %d and %s, want no account", got.Code, got.Err)
		}
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
	if !strings.Contains(read(), "palmares_quota_redis_failures_total 0") {
		t.Errorf("got %s, want palmares_quota_redis_failures_total 0", read())
	}
	s.Call(t, http.MethodGet, "/api/v1/stats", "")
	if !strings.Contains(read(), "palmares_quota_duration_seconds_count 1") {
		t.Errorf("got %s, want palmares_quota_duration_seconds_count 1", read())
	}
	redis.Stop()
	if got := s.Call(t, http.MethodGet, "/api/v1/stats", ""); got.StatusCode != 200 {
		t.Errorf("got %d, want 200", got.StatusCode)
	}
	wait.Until(t, "the metrics show that Redis is unavailable", func() bool {
		text := read()
		return strings.Contains(text, "palmares_quota_redis_failures_total 1") && strings.Contains(text, "palmares_quota_fallback 1")
	})
	if got := s.Call(t, http.MethodGet, "/metrics", ""); got.StatusCode != 404 {
		t.Errorf("/metrics on the public listener: got %d, want 404", got.StatusCode)
	}
}
