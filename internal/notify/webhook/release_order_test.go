package webhook

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

// rejectSlug makes the receiver reject events with a slug.
func (r *receiver) rejectSlug(t *testing.T, slug string) {
	r.respond(func(n int, w http.ResponseWriter, _ *http.Request) {
		if slices.ContainsFunc(r.all()[n-1].events(t), func(event sentEvent) bool { return event.Slug == slug }) {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
}

// catalog.published waits until every earlier event was delivered or has no attempts
// left, and delays only later catalog.published events.
func TestReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"delivered", "exhausted", "replayed"} {
		eachFixture(t, func(t *testing.T, s *fixture) {
			s.freezeClock()
			r, e := s.addReceiver()
			r.rejectSlug(t, "tool-1")
			first := s.publishTools(3)
			s.sendDue(e)
			second := s.publish(toolCreated("later", "code"))
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, r.ids(), append(ids(first, 3), ids(second, 1)...))
			if rows := s.deliveries(e); len(rows) != 3 || rows[1].NextAt.Before(rows[0].NextAt) || !rows[1].Held || !rows[2].Held {
				t.Errorf("got deliveries %v, want two held ones", rows)
			}
			r.reset()
			switch end {
			case "delivered":
				r.respondStatus(200)
				s.clock.advance(6 * time.Second)
			case "replayed":
				r.respondStatus(200)
				check.OK(t, s.Replay(t.Context(), e, ids(first+1, 1)[0]))
			case "exhausted":
				for range len(retries) - 1 {
					s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
					s.sendDue(e)
				}
				check.Slices(t, slices.Compact(r.ids()), ids(first+1, 1), "before the last attempt")
				r.reset()
				s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
			}
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, r.ids(), slices.Concat(ids(first+1, 1), ids(first+3, 1), ids(second+1, 1)), end)
			check.Equal(t, len(s.deliveries(e)), 0, end)
		})
	}
}

// Events before a replayed catalog.published are sent first.
func TestReplayedReleaseWaits(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		for _, batches := range []bool{false, true} {
			r := newReceiver(t)
			e := s.add(NewEndpoint{URL: r.URL, Batches: batches})
			first := s.publishTools(2)
			if err := s.Replay(t.Context(), e, ids(first+2, 1)[0]); err != nil { // before it was sent
				t.Fatal(err)
			}
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, slices.Concat(r.batches(t)...), ids(first, 3), "batches %t", batches)
			check.Equal(t, len(s.deliveries(e)), 0, "batches %t", batches)
		}
	})
}
