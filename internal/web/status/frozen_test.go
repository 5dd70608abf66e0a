package status

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// While PostgreSQL is frozen, with its connections open, checks fail and every
// visitor gets a page.
func TestFrozenDatabase(t *testing.T) {
	bin, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := testkit.StartCluster(t.Context(), bin, "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	s := testkit.Open(t, store.Config{DatabaseURL: cluster.URL, DataDir: t.TempDir()})
	r := NewRecorder(s, quiet)
	at := &clock{Time: time.Now()}
	newPage := func() *Page {
		p := NewPage(Config{ServiceName: "palmares", Store: s, Log: quiet, Healthy: r.Healthy})
		p.now = at.now
		return p
	}
	visit := func(p *Page, status int, says string, unavailable bool) {
		t.Helper()
		var visiting sync.WaitGroup
		for range 10 {
			visiting.Go(func() {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
				if body := w.Body.String(); w.Code != status || !strings.Contains(body, says) || strings.Contains(body, "is unavailable at the moment") != unavailable {
					t.Errorf("got %d %s, want %d with %q", w.Code, body, status, says)
				}
			})
		}
		visiting.Wait()
	}
	known := newPage()
	r.check(t.Context())
	if !r.Healthy() {
		t.Fatal("got unhealthy, want healthy")
	}
	visit(known, 200, "Status", false)

	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	goOn := sync.OnceValue(cluster.GoOn)
	defer goOn()
	r.check(t.Context())
	r.check(t.Context()) // while the read of the first is not over
	if r.Healthy() {
		t.Error("got healthy, want unhealthy")
	}
	if c := r.minutes[r.current]; c.failed == 0 {
		t.Errorf("got %+v, want failed checks", c)
	}
	visit(known, 200, "The database is unavailable at the moment.", true) // what is known is fresh
	at.pass(time.Hour)
	visit(known, 200, "The database is unavailable at the moment.", true)
	visit(newPage(), 503, "Our database is unavailable at the moment.", true)

	if err := goOn(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); !r.Healthy(); r.check(t.Context()) {
		if time.Now().After(deadline) {
			t.Fatal("got unhealthy, want healthy")
		}
	}
	at.pass(time.Hour)
	visit(newPage(), 200, "Status", false)
}

// A read that is late counts as failed, whatever comes of it, and none is added
// to it.
func TestSlowDatabase(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	r := NewRecorder(s, quiet)
	release, reads := make(chan struct{}), atomic.Int64{}
	r.read = func(context.Context) error {
		reads.Add(1)
		<-release
		return nil
	}
	r.probeTime = time.Millisecond
	r.check(t.Context())
	wait.Until(t, "the database is read", func() bool { return reads.Load() > 0 })
	r.check(t.Context())
	if c := r.minutes[r.current]; r.Healthy() || reads.Load() != 1 || c.failed == 0 {
		t.Errorf("got %v after %d reads: %+v, want 1 read and failures", r.Healthy(), reads.Load(), c)
	}
	close(release)
	r.probeTime = time.Minute
	r.check(t.Context())
	if !r.Healthy() || reads.Load() != 2 {
		t.Errorf("got %v after %d reads, want to be healthy after 2", r.Healthy(), reads.Load())
	}
}
