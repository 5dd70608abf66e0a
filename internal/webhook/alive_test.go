package webhook

import (
	"testing"
	"time"

	"github.com/riverqueue/river"

	"palmares/ent"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// leftBy makes the endpoint's job one that a server has begun long ago.
func leftBy(t *testing.T, s *site, server string, e *ent.Endpoint) {
	t.Helper()
	client, err := river.NewClient(s.Store.JobDriver(), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := wakeUp(t.Context(), client, []*ent.Endpoint{e}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Store.Write.ExecContext(t.Context(), s.statement(
		`UPDATE river_job SET state = 'running', attempted_at = now() - interval '20 seconds', attempted_by = ARRAY['somebody', $1] WHERE kind = 'webhook.wake'`,
		`UPDATE river_job SET state = 'running', attempted_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-20 seconds'), attempted_by = json_array('somebody', ?) WHERE kind = 'webhook.wake'`), server)
	if err != nil {
		t.Fatal(err)
	}
}

// What a server that died had begun is taken over, not at once, but long before
// River would.
func TestTakenOverFromTheDead(t *testing.T) {
	t.Parallel()
	testdb.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newSite(t, db)
		s.times.look, s.times.dead = time.Second, 5*time.Second // a busy machine must not miss a beat
		s.times.record = time.Hour                              // which River waits for
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		leftBy(t, s, "the dead", e)
		tell(t, db, 2)
		start := time.Now()
		background(t, s.Run)
		r.wait(t, 3)
		if took := time.Since(start); took < s.times.dead {
			t.Errorf("it took %s", took)
		}
	})
}

// What a server that lives has begun is its own.
func TestNotTakenFromTheLiving(t *testing.T) {
	t.Parallel()
	testdb.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		leftBy(t, s, "the living", e)
		tell(t, db, 2)
		background(t, s.Run)
		living := &life{id: "the living", since: time.Now().Add(time.Hour)} // it judges nobody
		for end := time.Now().Add(2 * hurried.dead); time.Now().Before(end); time.Sleep(hurried.look) {
			if err := s.beat(t.Context(), living); err != nil {
				t.Fatal(err)
			}
			living.since = time.Now().Add(time.Hour)
		}
		if n := len(r.all()); n != 0 {
			t.Errorf("%d events were sent twice", n)
		}
	})
}
