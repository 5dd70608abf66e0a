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
		if !shown[name] {
			t.Errorf("got no header %s, want all that were sent", name)
		}
	}
	for _, h := range d.Headers {
		if strings.Contains(h.Value, got.header.Get(d.SignatureHeader)) {
			t.Errorf("got the signature in %s, want it left out", h.Name)
		}
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
		if test, err := s.Test(t.Context(), e); err != nil || test.TestBody == "" {
			t.Fatalf("got %v, %v, want a test event", test, err)
		}
		for _, c := range []struct {
			e *ent.Endpoint
			r *receiver
		}{{e, r}, {b, batches}} {
			all, got := s.attempts(c.e), c.r.all()
			if len(all) != len(got) || len(all) == 0 {
				t.Fatalf("got %d attempts, want %d", len(all), len(got))
			}
			for i, a := range all { // newest first
				checkDetails(t, s.details(c.e, a), got[len(got)-1-i])
			}
		}

		// The body is not shown if the journal no longer has the event.
		s.Store.Write.JournalEntry.Delete().ExecX(t.Context())
		first := s.attempts(e)[len(s.attempts(e))-1]
		if d := s.details(e, first); d.Payload != nil || len(d.Headers) == 0 {
			t.Errorf("got payload %s and %d headers, want headers only", d.Payload, len(d.Headers))
		}
		if _, err := s.Details(t.Context(), b, first.ID); problem.Of(err).Code != problem.NotFound {
			t.Errorf("attempt of another endpoint: got %v, want not found", err)
		}
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
		if d.Next == nil || d.Next.Before(s.clock.now().Add(10*time.Minute)) || d.Later != nil {
			t.Fatalf("got next attempt %v, want one after 10 minutes", d.Next)
		}
		// Another event may postpone everything that is sent to the endpoint.
		later := s.clock.now().Add(time.Hour)
		if d := s.details(&ent.Endpoint{ID: e.ID, NotBefore: &later}, failed); d.Next == nil || !d.Next.Equal(later) {
			t.Errorf("got next attempt %v, want %v", d.Next, later)
		}
		r.respondStatus(http.StatusNoContent)
		s.clock.advance(12 * time.Minute)
		s.sendDue(e)
		d = s.details(s.find(e.ID), failed)
		if d.Next != nil || d.Later == nil || d.Later.Number != 2 || !d.Later.Delivered {
			t.Errorf("got next attempt %v and later one %v, want the second, which was delivered", d.Next, d.Later)
		}
	})
}

// The time of the last successful delivery does not depend on later attempts.
func TestLastDelivery(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		check := func(what string, want *time.Time) {
			t.Helper()
			got := s.find(e.ID).DeliveredAt
			if (got == nil) != (want == nil) || want != nil && got.Sub(*want).Abs() > time.Millisecond { // databases round times
				t.Errorf("%s: got last delivery %v, want %v", what, got, want)
			}
		}
		check("before any event", nil)
		r.respondStatus(http.StatusInternalServerError)
		s.publishTools(0)
		s.sendDue(e)
		check("after a failure", nil)

		r.respondStatus(http.StatusOK)
		s.clock.advance(time.Hour)
		delivered := s.clock.now()
		s.sendDue(e)
		check("after a delivery", &delivered)

		s.clock.advance(time.Hour)
		r.respondStatus(http.StatusInternalServerError)
		s.publishTools(0)
		s.sendDue(e)
		check("after another failure", &delivered)
		if _, err := s.Test(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		check("after a failed test event", &delivered)

		r.respondStatus(http.StatusOK)
		s.clock.advance(time.Hour)
		tested := s.clock.now()
		if _, err := s.Test(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		check("after a test event", &tested)
	})
}

func TestTestLimitWords(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Millisecond: "Try again in 1 second.", 2 * time.Second: "Try again in 2 seconds."} {
		if got := (&TestLimitError{wait}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", wait, got, want)
		}
	}
}
