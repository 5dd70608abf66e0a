package webhook

import (
	"testing"
	"time"

	"github.com/riverqueue/river"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
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
		`UPDATE river_job SET state = 'running', attempted_at = now() - interval '30 minutes', attempted_by = ARRAY['somebody', $1] WHERE kind = 'webhook.wake'`,
		`UPDATE river_job SET state = 'running', attempted_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-30 minutes'), attempted_by = json_array('somebody', ?) WHERE kind = 'webhook.wake'`), server)
	if err != nil {
		t.Fatal(err)
	}
}

// running counts the jobs that are said to be at work.
func running(t *testing.T, s *site) (n int) {
	t.Helper()
	rows, err := s.Store.Current().QueryContext(t.Context(), "SELECT count(*) FROM river_job WHERE kind = 'webhook.wake' AND state = 'running'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// What a server that died had begun is taken over, not at once, but long before
// River would.
func TestTakenOverFromTheDead(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newSite(t, db)
		s.times.look, s.times.dead = time.Second, 5*time.Second // a busy machine must not miss a beat
		s.times.record = time.Hour                              // which River waits for
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		leftBy(t, s, "the dead", e)
		tell(t, db, 2)
		// A server that has just started does not judge yet.
		if err := s.beat(t.Context(), &life{id: "new"}); err != nil {
			t.Fatal(err)
		}
		if n := running(t, s); n != 1 {
			t.Errorf("got %d running jobs after the first beat, want 1", n)
		}
		background(t, s.Run)
		r.wait(t, 3)
	})
}

// What a server that lives has begun is its own.
func TestNotTakenFromTheLiving(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newSite(t, db)
		s.times.look, s.times.dead = time.Hour, 10*time.Minute
		leftBy(t, s, "the living", s.add(Wish{URL: "http://127.0.0.1:1"}))
		judge := func() {
			t.Helper()
			now := time.Now()
			if err := s.beat(t.Context(), &life{id: "another", since: now.Add(-time.Hour), last: now}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.beat(t.Context(), &life{id: "the living"}); err != nil {
			t.Fatal(err)
		}
		judge()
		if n := running(t, s); n != 1 {
			t.Errorf("got %d running jobs of a living server, want 1", n)
		}
		silent := s.statement(`UPDATE river_client SET updated_at = updated_at - interval '11 minutes' WHERE id = 'the living'`,
			`UPDATE river_client SET updated_at = strftime('%Y-%m-%d %H:%M:%f', updated_at, '-11 minutes') WHERE id = 'the living'`)
		if _, err := s.Store.Write.ExecContext(t.Context(), silent); err != nil {
			t.Fatal(err)
		}
		judge()
		if n := running(t, s); n != 0 {
			t.Errorf("got %d running jobs of a silent server, want 0", n)
		}
	})
}
