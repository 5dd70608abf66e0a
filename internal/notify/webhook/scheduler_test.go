package webhook

import (
	"context"
	"slices"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// leaseAs leases all endpoints to a server that never renews.
func leaseAs(t *testing.T, s *site, server string, d time.Duration) {
	t.Helper()
	if err := s.Store.Write.Endpoint.Update().SetLeasedBy(server).SetLeasedUntil(time.Now().UTC().Add(d)).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pollSteadily polls as a server does that has been running for a while.
func pollSteadily(t *testing.T, s *scheduler) {
	t.Helper()
	s.polled, s.steadySince = time.Now(), time.Now().Add(-time.Hour)
	if err := s.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.running.Wait()
}

// Another server takes over the endpoints of a dead server when the leases
// expire, and not before.
func TestTakeover(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 2)
		other := s.newScheduler()
		leaseAs(t, s, "dead", time.Hour)
		pollSteadily(t, other)
		if got := r.ids(); len(got) != 0 {
			t.Fatalf("got %v during the lease of another server, want none", got)
		}
		leaseAs(t, s, "dead", -time.Second)
		pollSteadily(t, other)
		if got, want := r.ids(), ids(first, 3); !slices.Equal(got, want) {
			t.Errorf("got %v after the lease expired, want %v", got, want)
		}
		if got := s.find(e.ID).LeasedBy; got != "" {
			t.Errorf("got a lease of %q after the work, want none", got)
		}
	})
}

// A server that has just started waits for one lease period before it takes
// over: the others may have been unable to renew their leases.
func TestNoTakeoverAfterOutage(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.timing.lease = time.Hour
		r := newReceiver(t)
		s.add(Wish{URL: r.URL})
		tell(t, db, 0)
		leaseAs(t, s, "other", -time.Second)
		started := s.newScheduler()
		if err := started.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		started.running.Wait()
		// The database was unreachable for longer than the polls are apart.
		started.polled, started.steadySince = time.Now().Add(-time.Hour), time.Now().Add(-2*time.Hour)
		if err := started.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		started.running.Wait()
		if got := r.ids(); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	})
}

// Run takes over by itself, with leases as short as a busy machine allows.
func TestRunTakesOver(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.timing.lease = time.Second
		r := newReceiver(t)
		s.add(Wish{URL: r.URL})
		first := tell(t, db, 2)
		leaseAs(t, s, "dead", time.Second)
		background(t, s.Run)
		r.wait(t, 3)
		if got, want := r.ids(), ids(first, 3); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// A lease is renewed for as long as its worker waits for the receiver.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 0)
		arrived, proceed := r.holds()
		own := s.newScheduler()
		if err := own.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-arrived
		leaseAs(t, s, own.server, -time.Second) // as after a while
		own.renewed = time.Time{}
		if err := own.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if until := s.find(e.ID).LeasedUntil; until.Before(time.Now()) {
			t.Errorf("got a lease until %s, want it renewed", until)
		}
		pollSteadily(t, s.newScheduler()) // of another server
		close(proceed)
		own.running.Wait()
		pollSteadily(t, own)
		if got, want := r.ids(), ids(first, 1); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// A server that lost its lease stops sending.
func TestLostLeaseStopsWorker(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.timing.attempt = time.Hour
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		tell(t, db, 3)
		arrived, proceed := r.holds()
		defer close(proceed)
		own := s.newScheduler()
		if err := own.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-arrived
		leaseAs(t, s, "other", time.Hour)
		own.renewed = time.Time{}
		if err := own.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		own.running.Wait()
		if got := len(r.all()); got != 1 {
			t.Errorf("got %d events, want 1", got)
		}
		if e := s.find(e.ID); e.LeasedBy != "other" || len(s.attempts(e)) != 0 {
			t.Errorf("got a lease of %q and %d attempts, want those of the other server", e.LeasedBy, len(s.attempts(e)))
		}
	})
}

// A server that shuts down releases its leases. After a database error, a lease
// expires instead, which delays the next try.
func TestLeaseAfterWork(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		e := s.add(Wish{URL: newReceiver(t).URL})
		tell(t, db, 1)
		own := s.newScheduler()
		leaseAs(t, s, own.server, time.Hour)
		stopping, stop := context.WithCancel(t.Context())
		stop()
		own.work(stopping, e.ID)
		if got := s.find(e.ID).LeasedBy; got != "" {
			t.Errorf("got a lease of %q after shutdown, want none", got)
		}
		if s.logs.String() != "" {
			t.Errorf("got log %s, want none", s.logs)
		}
	})
}
