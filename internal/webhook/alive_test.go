package webhook

import (
	"testing"
	"time"

	"github.com/riverqueue/river"

	"palmares/internal/store"
	"palmares/internal/testdb"
)

// leftBy makes the endpoint's job one that a server has begun long ago.
func leftBy(t *testing.T, s *site, server string, endpoint int) {
	t.Helper()
	client, err := river.NewClient(s.Store.JobDriver(), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := wakeUp(t.Context(), client, []int{endpoint}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Store.Write.ExecContext(t.Context(), s.statement(
		`UPDATE river_job SET state = 'running', attempted_at = now() - interval '20 seconds', attempted_by = ARRAY['somebody', $1] WHERE kind = 'webhook.wake'`,
		`UPDATE river_job SET state = 'running', attempted_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-20 seconds'), attempted_by = json_array('somebody', ?) WHERE kind = 'webhook.wake'`), server)
	if err != nil {
		t.Fatal(err)
	}
}

// What a server that died had begun is taken over within seconds.
func TestTakenOverFromTheDead(t *testing.T) {
	t.Parallel()
	testdb.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		leftBy(t, s, "the dead", e.ID)
		tell(t, db, 2)
		start := time.Now()
		background(t, s.Run)
		r.wait(t, 3)
		if took := time.Since(start); took < hurried.dead || took > hurried.stuck()-10*time.Second {
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
		leftBy(t, s, "the living", e.ID)
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
