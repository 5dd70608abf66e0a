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
		b := backlog()
		check.Equal(t, b.Retries, 0, "without endpoints")
		check.Equal(t, b.OldestDue, 0, "without endpoints")
		check.Equal(t, b.Endpoints["active"], 0, "without endpoints")
		r, e := s.addReceiver()
		s.publishTools(2)
		s.clock.advance(time.Minute)
		if b := backlog(); b.Endpoints["active"] != 1 || b.Endpoints["paused"] != 0 || b.OldestDue < 50*time.Second || b.OldestDue > 2*time.Minute {
			t.Errorf("a minute after a release: got %+v, want one active endpoint that is a minute behind", b)
		}
		r.respondStatus(http.StatusTeapot)
		s.sendDue(e)
		b = backlog()
		check.Equal(t, b.Retries, 3, "before the retry")
		check.Equal(t, b.OldestDue, 0, "before the retry")
		s.clock.advance(5 * time.Minute)
		b = backlog()
		check.True(t, b.OldestDue >= 4*time.Minute && b.OldestDue <= 5*time.Minute, "after the retry time: got %+v, want them overdue", b)
		r.respondStatus(http.StatusOK)
		s.sendDue(s.find(e.ID))
		b = backlog()
		check.Equal(t, b.Retries, 0, "after delivery")
		check.Equal(t, b.OldestDue, 0, "after delivery")
		r.Close()
		s.publishTools(0)
		s.sendDue(s.find(e.ID))
		c := &s.Counts
		check.Equal(t, c.Delivered.Load(), 3)
		check.Equal(t, c.Refused.Load(), 2)
		check.Equal(t, c.Unreachable.Load(), 1)
	})
}
