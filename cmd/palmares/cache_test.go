package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/feed/synth"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// Imports under load: no answer mixes releases, none fails, and two seconds
// after the last one every answer is new.
func TestImportsUnderLoad(t *testing.T) {
	files := []string{synthFile(t, synth.Options{Tools: 40, Seed: 9}), synthFile(t, synth.Options{Tools: 60, Seed: 9, Revision: 1})}
	testdb.Each(t, func(t *testing.T, cfg store.Config) {
		succeeds(t, palmares(t, cfg, "import", files[0]))
		key := newKey(t, cfg, "pro")
		s := startServer(t, cfg)
		read := func(path string) (date string, total int) {
			got := s.call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
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
		var totals sync.Map // of each date
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
			succeeds(t, palmares(t, cfg, "import", "--force", files[(i+1)%2]))
			time.Sleep(150 * time.Millisecond)
		}
		last := files[0]
		succeeds(t, palmares(t, cfg, "import", "--force", last))
		time.Sleep(2 * time.Second)
		date, total := read("/api/v1/stats")
		for _, path := range []string{"/api/v1/tools?limit=200", "/api/v1/tools?limit=200&sort=name_asc"} {
			if d, n := read(path); d != date || n != total {
				t.Errorf("%s: of %s, not %s", path, d, date)
			}
		}
		stop.Store(true)
		all.Wait()
		t.Logf("%d answers", asked.Load())
	})
}

// While the database is away, what was asked before is answered, and what was
// not says so; when it is back, all is well without a restart.
func TestDatabaseAway(t *testing.T) {
	cfg := testdb.Postgres(t)
	address, err := url.Parse(cfg.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	line := newLine(t, address)
	cfg.DatabaseURL = line.url
	key := newKey(t, cfg, "developer")
	s := startServer(t, cfg, "--demo")
	ask := func(path string) *http.Response {
		return s.call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
	}
	for _, path := range []string{"/api/v1/tools", "/api/embeddings/plume"} {
		if got := ask(path); got.StatusCode != 200 {
			t.Fatalf("%s: %d", path, got.StatusCode)
		}
	}
	line.cut()
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
	line.mend()
	deadline := time.Now().Add(5 * time.Second)
	for ask("/api/v1/stats").StatusCode != 200 {
		if time.Now().After(deadline) {
			t.Fatal("it does not recover")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// line is a connection to a database that can be cut.
type line struct {
	url, to string
	broken  atomic.Bool
	mu      sync.Mutex
	open    map[net.Conn]bool
}

func newLine(t *testing.T, to *url.URL) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &line{to: to.Host, open: map[net.Conn]bool{}}
	through := *to
	through.Host = listener.Addr().String()
	l.url = through.String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	return l
}

func (l *line) carry(near net.Conn) {
	defer near.Close()
	if l.broken.Load() {
		return
	}
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	l.open[near], l.open[far] = true, true
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

func (l *line) cut() {
	l.broken.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		_ = conn.Close()
	}
	l.open = map[net.Conn]bool{}
}

func (l *line) mend() { l.broken.Store(false) }
