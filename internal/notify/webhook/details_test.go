package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func (s *fixture) details(e *ent.Endpoint, a *ent.Attempt) *Details {
	s.t.Helper()
	d, err := s.Details(s.t.Context(), e, a.ID)
	check.OK(s.t, err)
	return d
}

// checkDetails compares the details of an attempt with what the receiver got.
func checkDetails(t *testing.T, d *Details, got *received) {
	t.Helper()
	check.Equal(t, string(d.Payload), string(got.body), "payload")
	shown := map[string]bool{http.CanonicalHeaderKey(d.SignatureHeader): true}
	for _, h := range d.Headers {
		shown[http.CanonicalHeaderKey(h.Name)] = true
		sent := got.header.Get(h.Name)
		check.Equal(t, h.Value, sent, "header %s", h.Name)
	}
	for name := range got.header {
		check.True(t, shown[name], "got no header %s, want all that were sent", name)
	}
	for _, h := range d.Headers {
		check.Lacks(t, h.Value, got.header.Get(d.SignatureHeader))
	}
}

// The details of an attempt match the request, for single events and batches.
func TestDetailsAreWhatWasSent(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		batches, b := s.addBatchReceiver()
		long := toolCreated("long", "code")
		long.After = []byte(`{"slug":"long","text":"` + strings.Repeat("é", maxBody) + `"}`)
		s.publish(toolCreated("one", "code"), long)
		s.sendAll(e)
		s.sendAll(b)
		test, err := s.Test(t.Context(), e)
		check.OK(t, err)
		check.MustTrue(t, test.TestBody != "", "got %v, want a test event", test)
		for _, c := range []struct {
			e *ent.Endpoint
			r *receiver
		}{{e, r}, {b, batches}} {
			all, got := s.attempts(c.e), c.r.all()
			check.Must(t, len(all), len(got))
			check.MustTrue(t, len(all) != 0, "got %d attempts, want %d", len(all), len(got))
			for i, a := range all { // newest first
				checkDetails(t, s.details(c.e, a), got[len(got)-1-i])
			}
		}

		// The body is not shown if the journal no longer has the event.
		s.Store.Write.JournalEntry.Delete().ExecX(t.Context())
		first := s.attempts(e)[len(s.attempts(e))-1]
		d := s.details(e, first)
		check.True(t, d.Payload == nil && len(d.Headers) != 0, "got payload %s and %d headers, want headers only", d.Payload, len(d.Headers))
		_, err = s.Details(t.Context(), b, first.ID)
		check.Equal(t, problem.Of(err).Code, problem.NotFound, "attempt of another endpoint")
	})
}

// An attempt that failed shows when the next one is due, and then the next one.
func TestNextAttempt(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		s.publishTools(0)
		r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(600))
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		s.sendDue(e)
		failed := s.attempts(e)[0]
		e = s.find(e.ID)
		d := s.details(e, failed)
		check.MustTrue(t, d.Next != nil && !d.Next.Before(s.clock.now().Add(10*time.Minute)), "got next attempt %v, want one after 10 minutes", d.Next)
		check.Must(t, d.Later, nil, "next attempt %v", d.Next)
		// Another event may postpone everything that is sent to the endpoint.
		later := s.clock.now().Add(time.Hour)
		if d := s.details(&ent.Endpoint{ID: e.ID, NotBefore: &later}, failed); d.Next == nil || !d.Next.Equal(later) {
			t.Errorf("got next attempt %v, want %v", d.Next, later)
		}
		r.respondStatus(http.StatusNoContent)
		s.clock.advance(12 * time.Minute)
		s.sendDue(e)
		d = s.details(s.find(e.ID), failed)
		check.Equal(t, d.Next, nil, "later one %v", d.Later)
		check.MustTrue(t, d.Later != nil, "got next attempt %v and later one %v, want the second, which was delivered", d.Next, d.Later)
		check.Equal(t, d.Later.Number, 2, "later one %v", d.Later)
		check.Equal(t, d.Later.Delivered, true, "later one %v", d.Later)
	})
}

// The time of the last successful delivery does not depend on later attempts.
func TestLastDelivery(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		verify := func(what string, want *time.Time) {
			t.Helper()
			got := s.find(e.ID).DeliveredAt
			if (got == nil) != (want == nil) || want != nil && got.Sub(*want).Abs() > time.Millisecond { // databases round times
				t.Errorf("%s: got last delivery %v, want %v", what, got, want)
			}
		}
		verify("before any event", nil)
		r.respondStatus(http.StatusInternalServerError)
		s.publishTools(0)
		s.sendDue(e)
		verify("after a failure", nil)

		r.respondStatus(http.StatusOK)
		s.clock.advance(time.Hour)
		delivered := s.clock.now()
		s.sendDue(e)
		verify("after a delivery", &delivered)

		s.clock.advance(time.Hour)
		r.respondStatus(http.StatusInternalServerError)
		s.publishTools(0)
		s.sendDue(e)
		verify("after another failure", &delivered)
		_, err := s.Test(t.Context(), e)
		check.OK(t, err)
		verify("after a failed test event", &delivered)

		r.respondStatus(http.StatusOK)
		s.clock.advance(time.Hour)
		tested := s.clock.now()
		_, err = s.Test(t.Context(), e)
		check.OK(t, err)
		verify("after a test event", &tested)
	})
}

func TestTestLimitWords(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Millisecond: "Try again in 1 second.", 2 * time.Second: "Try again in 2 seconds."} {
		if got := (&TestLimitError{wait}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", wait, got, want)
		}
	}
}
