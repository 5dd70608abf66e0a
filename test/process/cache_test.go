package process_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/lookup"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// During imports, no response fails or mixes releases. After the last import, all
// responses are current.
func TestImportsUnderLoad(t *testing.T) {
	t.Parallel()
	files := []string{blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 9}), blackbox.SynthFile(t, synth.Options{Tools: 60, Seed: 9, Revision: 1})}
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", files[0]))
		key := blackbox.NewKey(t, cfg, "pro")
		s := blackbox.Serve(t, cfg)
		read := func(path string) (date string, total int) {
			status, header, data := s.Try(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
			var body struct {
				Meta  struct{ Total int }
				Total int `json:"tools_total"`
				Data  []any
			}
			err := json.Unmarshal([]byte(data), &body)
			check.True(t, err == nil && status == 200, "%s: got %d %s, want 200", path, status, data)
			check.True(t, body.Data == nil || len(body.Data) == body.Meta.Total, "%s: got %d tools, want %d", path, len(body.Data), body.Meta.Total)
			return header.Get("X-Service-Updated-At"), body.Meta.Total + body.Total
		}
		wantDate, wantTotal := read("/api/v1/stats") // the last import restores this catalog
		var totals sync.Map                          // by date
		var stop atomic.Bool
		var all sync.WaitGroup
		var sent atomic.Int64
		for _, path := range []string{"/api/v1/tools?limit=200", "/api/v1/stats", "/api/v1/tools?limit=200&sort=name_asc"} {
			all.Go(func() {
				for !stop.Load() {
					sent.Add(1)
					date, total := read(path)
					before, _ := totals.LoadOrStore(date, total)
					check.True(t, before == total, "feed of %s: got %d tools, want %d as before", date, total, before)
				}
			})
		}
		for i := range testkit.Rounds(2, 6) {
			blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", files[(i+1)%2]))
			before := sent.Load()
			wait.Until(t, "more responses", func() bool { return sent.Load() > before+20 })
		}
		last := files[0]
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", last))
		for _, path := range []string{"/api/v1/stats", "/api/v1/tools?limit=200", "/api/v1/tools?limit=200&sort=name_asc"} {
			wait.Until(t, "the last catalog at "+path, func() bool {
				date, total := read(path)
				return date == wantDate && total == wantTotal
			})
		}
		stop.Store(true)
		all.Wait()
		t.Logf("%d requests", sent.Load())
	})
}

// While the database is down, responses that are cached or can be computed from
// memory are served, and others fail with 503. Once it is back, the server
// recovers without a restart.
func TestDatabaseDown(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	proxies := testkit.StartToxiproxy(t)
	cfg.DatabaseURL = proxies.Between("database", cfg.DatabaseURL)
	key := blackbox.NewKey(t, cfg, "pro")
	s := blackbox.Serve(t, cfg, "--demo")
	get := func(path string) *http.Response {
		return s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
	}
	for _, path := range []string{"/api/v1/tools", "/api/embeddings/plume"} {
		check.Must(t, get(path).StatusCode, 200, path)
	}
	wait.Until(t, "the catalog is in memory", func() bool { return strings.Contains(s.Log.String(), "catalog loaded") })
	proxies.Cut("database")
	for cut, rounds := time.Now(), 0; rounds < 3 || time.Since(cut) < lookup.StaleFor+time.Second; rounds++ { // the key is fresh at first
		for _, path := range []string{
			"/api/v1/tools", "/api/v1/tools?page=1&sort=score_desc&unknown=x", "/api/embeddings/plume", // cached
			"/api/v1/stats", "/api/v1/tools/ecritoire-cie", "/api/v1/categories", "/api/v1/tools?category=code", "/api/v1/pricing/plume", // in memory
		} {
			check.Equal(t, get(path).StatusCode, 200, "%s without the database", path)
		}
		got := get("/api/embeddings/ecritoire-cie")
		body, _ := io.ReadAll(got.Body)
		check.True(t, got.StatusCode == 503 && got.Header.Get("Retry-After") != "" && strings.HasPrefix(string(body), `{"error":"`), "uncached path: got %d %s, want 503", got.StatusCode, body)
	}
	proxies.Restore()
	wait.Until(t, "the server recovers", func() bool { return get("/api/embeddings/ecritoire-cie").StatusCode == 200 })
}

// ETags depend on a secret in the database. They are the same on all servers
// and after restarts, and differ between databases.
func TestEntityTags(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/tools?limit=3"
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		tag := func(s *blackbox.Server) string { return s.Call(t, http.MethodGet, path, "").Header.Get("ETag") }
		first := blackbox.Serve(t, cfg, "--demo")
		want := tag(first)
		check.Equal(t, tag(blackbox.Serve(t, cfg)), want, "another server")
		_ = first.Cmd.Process.Signal(syscall.SIGTERM)
		first.WaitForExit(t)
		again := blackbox.Serve(t, cfg)
		check.Equal(t, tag(again), want, "after a restart")
		other := tag(blackbox.Serve(t, testkit.SQLite(t), "--demo"))
		check.True(t, other != want && other != "", "another database: got %s, want a different tag", other)
		check.Equal(t, again.Call(t, http.MethodGet, path, "", "If-None-Match", want).StatusCode, http.StatusNotModified, "real tag")
	})
}
