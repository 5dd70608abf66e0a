package webhook

import (
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Where nobody wants anything, no jobs are looked for; and what was begun has
// ended when Run has.
func TestRunLeavesNothing(t *testing.T) {
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	before := runtime.NumGoroutine()
	stop := background(t, s.Run)
	time.Sleep(3 * testTiming.poll)
	if now := runtime.NumGoroutine(); now > before+3 {
		t.Errorf("%d goroutines for nobody", now-before)
	}
	r := newReceiver(t)
	s.add(Wish{URL: r.URL})
	tell(t, s.Store, 20)
	r.wait(t, 21)
	stop()
	r.Close()
	var now int
	for deadline := time.Now().Add(wait.Limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // some end a moment later
		if now = runtime.NumGoroutine(); now <= before {
			return
		}
	}
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	t.Errorf("%d goroutines are left:\n%s", now-before, &stacks)
}

// A database that does not answer does not keep Run from ending.
func TestRunEndsWithoutADatabase(t *testing.T) {
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newReceiver(t)
	s.add(Wish{URL: r.URL})
	stop := background(t, s.Run)
	tell(t, s.Store, 2)
	r.wait(t, 3)
	_ = s.Store.Close()
	eventually(t, "it is noticed", func() bool { return strings.Contains(s.logs.String(), "polling for due webhooks failed") })
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	wait.Receive(t, "Run ends without a database", ended)
	if said := s.logs.String(); strings.Count(said, "polling for due webhooks failed") != 1 {
		t.Error(said)
	}
}
