package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"palmares/ent"
	"palmares/ent/apikey"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

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
