package webhook

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// leaseAs leases all endpoints to a server that never renews.
func leaseAs(t *testing.T, s *fixture, server string, d time.Duration) {
	t.Helper()
	check.OK(t, s.Store.Write.Endpoint.Update().SetLeasedBy(server).SetLeasedUntil(time.Now().UTC().Add(d)).Exec(t.Context()))
}

// pollSteadily polls like a server that has been running for a while.
func pollSteadily(t *testing.T, s *scheduler) {
	t.Helper()
	s.polled, s.steadySince = time.Now(), time.Now().Add(-time.Hour)
	check.OK(t, s.poll(t.Context()))
	s.running.Wait()
}

// Another server takes over the endpoints of a dead server when the leases
// expire, and not before.
func TestTakeover(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		first := s.publishTools(2)
		other := s.newScheduler()
		leaseAs(t, s, "dead", time.Hour)
		pollSteadily(t, other)
		check.Must(t, len(r.ids()), 0, "during the lease of another server")
		leaseAs(t, s, "dead", -time.Second)
		pollSteadily(t, other)
		check.Slices(t, r.ids(), ids(first, 3), "after the lease expired")
		check.Equal(t, s.find(e.ID).LeasedBy, "", "lease of after the work")
	})
}

// A server that has just started waits for one lease period before it takes
// over: the others may have been unable to renew their leases.
func TestNoTakeoverAfterOutage(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.timing.lease = time.Hour
		r, _ := s.addReceiver()
		s.publishTools(0)
		leaseAs(t, s, "other", -time.Second)
		started := s.newScheduler()
		check.OK(t, started.poll(t.Context()))
		since := started.steadySince
		check.OK(t, started.poll(t.Context()))
		check.Equal(t, started.steadySince, since, "polling without interruption since")
		started.running.Wait()
		// The database was unreachable for longer than the polls are apart.
		started.polled, started.steadySince = time.Now().Add(-time.Hour), time.Now().Add(-2*time.Hour)
		check.OK(t, started.poll(t.Context()))
		started.running.Wait()
		check.Equal(t, len(r.ids()), 0)
	})
}

// A lease is renewed for as long as its worker waits for the receiver.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		first := s.publishTools(0)
		arrived, proceed := r.hold()
		own := s.newScheduler()
		check.OK(t, own.poll(t.Context()))
		<-arrived
		leaseAs(t, s, own.server, -time.Second) // as after a while
		own.renewed = time.Now().Add(-s.timing.lease / 2)
		check.OK(t, own.poll(t.Context()))
		until := s.find(e.ID).LeasedUntil
		check.True(t, !until.Before(time.Now()), "got a lease until %s, want it renewed", until)
		pollSteadily(t, s.newScheduler()) // of another server
		close(proceed)
		own.running.Wait()
		pollSteadily(t, own)
		check.Slices(t, r.ids(), ids(first, 1))
	})
}

// A server that lost its lease stops sending.
func TestLostLeaseStopsWorker(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.timing.attempt = time.Hour
		r, e := s.addReceiver()
		s.publishTools(3)
		arrived, proceed := r.hold()
		defer close(proceed)
		own := s.newScheduler()
		check.OK(t, own.poll(t.Context()))
		<-arrived
		leaseAs(t, s, "other", time.Hour)
		own.renewed = time.Now().Add(-s.timing.lease / 2)
		check.OK(t, own.poll(t.Context()))
		own.running.Wait()
		check.Equal(t, len(r.all()), 1, "events")
		if e := s.find(e.ID); e.LeasedBy != "other" || len(s.attempts(e)) != 0 {
			t.Errorf("got a lease of %q and %d attempts, want those of the other server", e.LeasedBy, len(s.attempts(e)))
		}
	})
}

// A server that shuts down, or has nothing more to send, releases its leases. After a
// database error, a lease expires instead, which delays the next attempt.
func TestLeaseAfterWork(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.timing.work = time.Hour
		r, e := s.addReceiver()
		s.publishTools(1)
		own := s.newScheduler()
		leaseAs(t, s, own.server, time.Hour)
		stopping, stop := context.WithCancel(t.Context())
		stop()
		own.work(stopping, e.ID)
		check.Equal(t, s.find(e.ID).LeasedBy, "", "lease of after shutdown")
		leaseAs(t, s, own.server, time.Hour)
		worked := make(chan struct{})
		go func() { defer close(worked); own.work(t.Context(), e.ID) }()
		wait.Receive(t, "the work ends when nothing is due", worked)
		check.Equal(t, s.find(e.ID).LeasedBy, "", "lease of after work")
		check.Equal(t, len(r.all()), 2, "events")
		check.Equal(t, s.logs.String(), "", "log")
	})
}

// Run starts no goroutines without endpoints, and leaves none behind.
func TestRunLeavesNoGoroutines(t *testing.T) {
	s := newSQLiteFixture(t)
	before := runtime.NumGoroutine()
	stop := background(t, s.Run)
	time.Sleep(3 * testTiming.poll)
	if now := runtime.NumGoroutine(); now > before+3 {
		t.Errorf("got %d goroutines without endpoints, want at most 3", now-before)
	}
	r, _ := s.addReceiver()
	s.publishTools(20)
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
	t.Errorf("got %d goroutines left, want 0:\n%s", now-before, &stacks)
}

// Run ends although the database is unavailable, and logs that only once.
func TestRunEndsWithoutDatabase(t *testing.T) {
	s := newSQLiteFixture(t)
	r, _ := s.addReceiver()
	stop := background(t, s.Run)
	s.publishTools(2)
	r.wait(t, 3)
	_ = s.Store.Close()
	eventually(t, "the outage is logged", func() bool { return strings.Contains(s.logs.String(), "polling for due webhooks failed") })
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	wait.Receive(t, "Run returns", stopped)
	log := s.logs.String()
	check.True(t, strings.Count(log, "polling for due webhooks failed") == 1, "got log %s, want one warning", log)
}

// addUnresponsive adds accounts whose endpoints never respond.
func addUnresponsive(t *testing.T, s *fixture, accounts int) {
	t.Helper()
	r := newReceiver(t)
	end := make(chan struct{})
	r.respond(func(_ int, _ http.ResponseWriter, req *http.Request) {
		select {
		case <-end:
		case <-req.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	for i := range accounts {
		owner := check.Try(auth.NewAccounts(s.Store).Create(t.Context(), fmt.Sprintf("unresponsive-%d@example.com", i), auth.Pro)).OK(t)
		for range MaxEndpoints {
			check.Try(s.Add(t.Context(), owner, NewEndpoint{URL: r.URL})).OK(t)
		}
	}
}

// Unresponsive endpoints do not delay others: an attempt takes an hour here. Those that
// failed before delay no others even if there are more than workers.
func TestUnresponsiveEndpointsDelayNoOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ accounts, failures, workers int }{{6, 0, defaultWorkers}, {1, 1, 5}} {
		eachFixture(t, func(t *testing.T, s *fixture) {
			addUnresponsive(t, s, c.accounts)
			check.OK(t, s.Store.Write.Endpoint.Update().SetFailures(c.failures).Exec(t.Context()))
			s.maxWorkers, s.timing.attempt, s.timing.prompt = c.workers, time.Hour, defaultTiming.prompt
			good, _ := s.addReceiver()
			s.publishTools(5)
			background(t, s.Run)
			good.wait(t, 6)
			s.publishTools(0)
			good.wait(t, 7)
		})
	}
}

// While an import locks SQLite, outcomes wait in memory until they can be
// recorded, and no event is sent twice.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	cfg.LockWait = 100 * time.Millisecond
	s := newFixture(t, testkit.Open(t, cfg))
	r, e := s.addReceiver()
	first := s.publishTools(20)
	unlocked := make(chan struct{})
	whileSending(t, s, r, e.ID, func() {
		unlock := lock(t, cfg)
		go func() {
			defer close(unlocked)
			for len(r.all()) < 21 && t.Context().Err() == nil {
				time.Sleep(testTiming.poll)
			}
			time.Sleep(10 * cfg.LockWait) // longer than one write waits
			unlock()
		}()
	})
	<-unlocked
	s.sendDue(e)
	check.Slices(t, r.ids(), ids(first, 21))
	check.Equal(t, len(s.attempts(e)), 21)
}

// lock locks the database like an import.
func lock(t *testing.T, cfg store.Config) (unlock func()) {
	db, err := sql.Open("sqlite", store.File(cfg.DataDir))
	check.Equal(t, err, nil)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN IMMEDIATE")
	check.Equal(t, err, nil)
	return func() { _ = db.Close() }
}
