package webhook

import (
	"net/http"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestBacklog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		look := func() Backlog {
			t.Helper()
			b, err := s.Backlog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if b := look(); b.Planned != 0 || b.Oldest != 0 || b.Endpoints["active"] != 0 {
			t.Errorf("nobody: %+v", b)
		}
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		tell(t, db, 2)
		s.clock.pass(time.Minute)
		if b := look(); b.Endpoints["active"] != 1 || b.Endpoints["paused"] != 0 || b.Oldest < 50*time.Second || b.Oldest > 2*time.Minute {
			t.Errorf("after a release: %+v", b)
		}
		r.answersStatus(http.StatusTeapot)
		s.sendDue(e)
		if b := look(); b.Planned != 3 || b.Oldest != 0 {
			t.Errorf("what waits for its time is late: %+v", b)
		}
		s.clock.pass(5 * time.Minute)
		if b := look(); b.Oldest < 4*time.Minute || b.Oldest > 5*time.Minute {
			t.Errorf("what was due is not: %+v", b)
		}
		r.answersStatus(http.StatusOK)
		s.sendDue(s.find(e.ID))
		if b := look(); b.Planned != 0 || b.Oldest != 0 {
			t.Errorf("in the end: %+v", b)
		}
		r.Close()
		tell(t, db, 0)
		s.sendDue(s.find(e.ID))
		if c := &s.Counts; c.Delivered.Load() != 3 || c.Refused.Load() != 3 || c.Unreachable.Load() != 1 {
			t.Errorf("%d delivered, %d refused, %d unreachable", c.Delivered.Load(), c.Refused.Load(), c.Unreachable.Load())
		}
	})
}
