package webhook

import (
	"net/http"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

func TestBacklog(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		backlog := func() Backlog {
			t.Helper()
			b, err := s.Backlog(t.Context())
			check.OK(t, err)
			return b
		}
		if b := backlog(); b.Retries != 0 || b.OldestDue != 0 || b.Endpoints["active"] != 0 {
			t.Errorf("without endpoints: got %+v, want an empty backlog", b)
		}
		r, e := s.addReceiver()
		s.publishTools(2)
		s.clock.advance(time.Minute)
		if b := backlog(); b.Endpoints["active"] != 1 || b.Endpoints["paused"] != 0 || b.OldestDue < 50*time.Second || b.OldestDue > 2*time.Minute {
			t.Errorf("a minute after a release: got %+v, want one active endpoint that is a minute behind", b)
		}
		r.respondStatus(http.StatusTeapot)
		s.sendDue(e)
		if b := backlog(); b.Retries != 3 || b.OldestDue != 0 {
			t.Errorf("before the retry: got %+v, want 3 planned and none overdue", b)
		}
		s.clock.advance(5 * time.Minute)
		if b := backlog(); b.OldestDue < 4*time.Minute || b.OldestDue > 5*time.Minute {
			t.Errorf("after the retry time: got %+v, want them overdue", b)
		}
		r.respondStatus(http.StatusOK)
		s.sendDue(s.find(e.ID))
		if b := backlog(); b.Retries != 0 || b.OldestDue != 0 {
			t.Errorf("after delivery: got %+v, want an empty backlog", b)
		}
		r.Close()
		s.publishTools(0)
		s.sendDue(s.find(e.ID))
		if c := &s.Counts; c.Delivered.Load() != 3 || c.Refused.Load() != 2 || c.Unreachable.Load() != 1 {
			t.Errorf("got %d delivered, %d refused, %d unreachable, want 3, 2, 1", c.Delivered.Load(), c.Refused.Load(), c.Unreachable.Load())
		}
	})
}
