package webhook

import (
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// giveUp lets time pass until nothing waits any more, or it is disabled.
func (s *site) giveUp(e *ent.Endpoint) {
	s.t.Helper()
	for rows := s.waiting(e); len(rows) > 0; rows = s.waiting(e) {
		s.clock.move(rows[0].NextAt.Add(time.Millisecond))
		s.sendDue(e)
	}
}

// Time in which nothing is tried is no failure: an endpoint whose one event was
// given up long ago is not disabled by the next that fails once.
func TestQuietTimeIsNoFailure(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		given := tell(t, db, 0)
		s.sendDue(e)
		s.giveUp(e)
		if len(r.all()) != 10 || s.find(e.ID).State != endpoint.StateActive {
			t.Fatalf("%d attempts, %s", len(r.all()), s.find(e.ID).State)
		}
		for what, again := range map[string]func(){
			"a new event": func() { tell(t, db, 0) },
			"a replay": func() {
				if err := s.Replay(t.Context(), s.find(e.ID), ids(given, 1)[0]); err != nil {
					t.Fatal(err)
				}
			},
		} {
			s.clock.pass(20 * 24 * time.Hour)
			again()
			s.sendDue(e)
			if e := s.find(e.ID); e.State != endpoint.StateActive || len(s.waiting(e)) != 1 {
				t.Errorf("%s: it is %s: %s", what, e.State, e.Why)
			}
			if err := db.Write.Endpoint.UpdateOneID(e.ID).SetFailingSince(s.clock.now().Add(-4 * 24 * time.Hour).UTC()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Write.Delivery.Delete().Exec(t.Context()); err != nil { // given up
				t.Fatal(err)
			}
		}
	})
}

// Failures add up over quiet times: who never takes anything is disabled after
// 5 days of trying, however rare its events are.
func TestRareFailuresAddUp(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		for week := 1; week <= 2; week++ {
			tell(t, db, 0)
			s.sendDue(e)
			s.giveUp(e)
			if disabled := s.find(e.ID).State == endpoint.StateDisabled; disabled != (week == 2) {
				t.Errorf("week %d: it is %s, failing since %s", week, s.find(e.ID).State, s.find(e.ID).FailingSince)
			}
			s.clock.pass(7 * 24 * time.Hour)
		}
		if n := len(r.all()); n <= 11 || n >= 20 {
			t.Errorf("it was disabled after %d attempts", n)
		}
	})
}
