package data_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// Imports under load: no answer mixes releases, none fails, and after the last
// one every answer is new.
func TestImportsUnderLoad(t *testing.T) {
	t.Parallel()
	files := []string{blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 9}), blackbox.SynthFile(t, synth.Options{Tools: 60, Seed: 9, Revision: 1})}
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", files[0]))
		key := blackbox.NewKey(t, cfg, "pro")
		s := blackbox.Serve(t, cfg)
		read := func(path string) (date string, total int) {
			got := s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
			var answer struct {
				Meta  struct{ Total int }
				Total int `json:"tools_total"`
				Data  []any
			}
			data, _ := io.ReadAll(got.Body)
			if err := json.Unmarshal(data, &answer); err != nil || got.StatusCode != 200 {
				t.Errorf("%s: %d %s", path, got.StatusCode, data)
			}
			if answer.Data != nil && len(answer.Data) != answer.Meta.Total {
				t.Errorf("%s: %d tools of %d", path, len(answer.Data), answer.Meta.Total)
			}
			return got.Header.Get("X-Service-Updated-At"), answer.Meta.Total + answer.Total
		}
		wantDate, wantTotal := read("/api/v1/stats") // which the last import restores
		var totals sync.Map                          // of each date
		var stop atomic.Bool
		var all sync.WaitGroup
		var asked atomic.Int64
		for _, path := range []string{"/api/v1/tools?limit=200", "/api/v1/stats", "/api/v1/tools?limit=200&sort=name_asc"} {
			all.Go(func() {
				for !stop.Load() {
					asked.Add(1)
					date, total := read(path)
					if before, _ := totals.LoadOrStore(date, total); before != total {
						t.Errorf("the feed of %s has %d and %d tools", date, before, total)
					}
				}
			})
		}
		for i := range 6 {
			blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", "--force", files[(i+1)%2]))
			before := asked.Load()
			wait.Until(t, "more answers come", func() bool { return asked.Load() > before+20 })
		}
		last := files[0]
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", "--force", last))
		for _, path := range []string{"/api/v1/stats", "/api/v1/tools?limit=200", "/api/v1/tools?limit=200&sort=name_asc"} {
			wait.Until(t, "the last catalog at "+path, func() bool {
				date, total := read(path)
				return date == wantDate && total == wantTotal
			})
		}
		stop.Store(true)
		all.Wait()
		t.Logf("%d answers", asked.Load())
	})
}

// While the database is away, what was asked before is answered, and what was
// not says so; when it is back, all is well without a restart.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	line := blackbox.NewLine(t, cfg.DatabaseURL)
	cfg.DatabaseURL = line.URL
	key := blackbox.NewKey(t, cfg, "developer")
	s := blackbox.Serve(t, cfg, "--demo")
	ask := func(path string) *http.Response {
		return s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
	}
	for _, path := range []string{"/api/v1/tools", "/api/embeddings/plume"} {
		if got := ask(path); got.StatusCode != 200 {
			t.Fatalf("%s: %d", path, got.StatusCode)
		}
	}
	line.Cut()
	time.Sleep(1500 * time.Millisecond) // by now what is known of the key is old
	for range 3 {
		for _, path := range []string{"/api/v1/tools", "/api/v1/tools?page=1&sort=score_desc&unknown=x", "/api/embeddings/plume"} {
			if got := ask(path); got.StatusCode != 200 {
				t.Errorf("%s without the database: %d", path, got.StatusCode)
			}
		}
		got := ask("/api/v1/stats")
		body, _ := io.ReadAll(got.Body)
		if got.StatusCode != 503 || got.Header.Get("Retry-After") == "" || !strings.HasPrefix(string(body), `{"error":"`) {
			t.Errorf("a miss: %d %s", got.StatusCode, body)
		}
	}
	line.Mend()
	wait.Until(t, "it recovers", func() bool { return ask("/api/v1/stats").StatusCode == 200 })
}
