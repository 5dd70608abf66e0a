package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func TestDefaultTiming(t *testing.T) {
	t.Parallel()
	check.Equal(t, defaultTiming.attempt, 15*time.Second, "want the documented 15s and 64 KiB")
	check.Equal(t, maxResponse, 64<<10, "want the documented 15s and 64 KiB")
	takeover := defaultTiming.lease + 2*defaultTiming.poll
	check.True(t, takeover <= 10*time.Second, "got takeover after %s, want at most 10s", takeover)
	var total time.Duration
	for _, wait := range retries {
		total += wait
	}
	check.Equal(t, len(retries), 9)
	check.Equal(t, total, 75*time.Hour+35*time.Minute+5*time.Second)
}

// An event that always fails is sent ten times, at the documented times, with the
// same ID and new timestamps.
func TestTenAttempts(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(503)
		first := s.publishTools(0)
		planned := append([]time.Duration{0}, retries...)
		for n, wait := range planned {
			if n > 0 {
				rows := s.deliveries(e)
				check.Must(t, len(rows), 1, "before attempt %d", n+1)
				check.Must(t, rows[0].Attempts, n, "before attempt %d", n+1)
				after := rows[0].NextAt.Sub(s.clock.now())
				check.True(t, after >= wait-time.Millisecond && after <= wait+wait/10, "attempt %d: got a delay of %s, want %s", n+1, after, wait)
				s.clock.advance(after - time.Second)
				s.sendDue(e)
				check.Must(t, len(r.all()), n, "attempts before the retry time")
				s.clock.advance(time.Second + time.Millisecond)
			}
			s.sendDue(e)
			got := r.all()
			check.Must(t, len(got), n+1)
			check.Must(t, got[n].header.Get("webhook-timestamp"), fmt.Sprint(s.clock.now().Unix()))
		}
		s.clock.advance(30 * time.Hour)
		s.sendDue(e)
		check.Slices(t, slices.Compact(r.ids()), ids(first, 1), r.ids())
		check.Equal(t, len(r.all()), 10, r.ids())
		check.Equal(t, len(s.deliveries(e)), 0, r.ids())
		var numbers []int
		for _, a := range s.attempts(e) {
			numbers = append(numbers, a.Number)
		}
		check.Slices(t, numbers, []int{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, "attempts")
		// The next event is still sent.
		r.respondStatus(200)
		second := s.publishTools(0)
		s.sendDue(e)
		if e := s.find(e.ID); r.ids()[10] != ids(second, 1)[0] || e.Failures != 0 || e.FailingSince != nil || e.State != endpoint.StateActive {
			t.Errorf("got %v and endpoint %v, want %s last and no failures", r.ids(), e, ids(second, 1)[0])
		}
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	different := map[time.Duration]bool{}
	for range 1000 {
		wait := withJitter(5 * time.Minute)
		check.MustTrue(t, wait >= 5*time.Minute && wait <= 5*time.Minute+30*time.Second, "got %s, want 5m to 5m30s", wait)
		different[wait] = true
	}
	check.True(t, len(different) >= 900, "got %d different times, want at least 900", len(different))
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "soon": 0, "1.5": 0, "+5": 0, "120": 2 * time.Minute, "7200": 2 * time.Hour,
		"99999999":                      24 * time.Hour,
		"99999999999999999999":          24 * time.Hour,
		strings.Repeat("9", 1_000):      24 * time.Hour,
		"Sun, 15 Nov 2026 10:00:00 GMT": 2 * time.Hour,
		"Sun, 15 Nov 2026 07:00:00 GMT": 0,
		"Sun, 15 Nov 2099 07:00:00 GMT": 24 * time.Hour,
	} {
		check.Equal(t, retryAfter(http.Header{"Retry-After": {text}}, now), want, "%.40q", text)
	}
	different := map[time.Time]bool{}
	for range 1000 {
		until := waitUntil([]*task{{}, {outcome: outcome{wait: time.Hour}}, {outcome: outcome{wait: time.Minute}}}, now)
		wait := until.Sub(now)
		check.MustTrue(t, wait >= time.Hour && wait <= 66*time.Minute, "got %s, want 60m to 66m", wait)
		different[until] = true
	}
	check.True(t, len(different) >= 900, "got %d different times, want at least 900", len(different))
	until := waitUntil([]*task{{}}, now)
	check.True(t, until.IsZero(), "without Retry-After: got %s, want none", until)
}

// Retry-After pauses the rest of the round, new events and retries. Then all are
// sent, in order.
func TestRetryAfterPausesEndpoint(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		eachFixture(t, func(t *testing.T, s *fixture) {
			s.freezeClock()
			r := newReceiver(t)
			r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(status)
			})
			e := s.add(NewEndpoint{URL: r.URL})
			first := s.publishTools(65)
			stop := background(t, s.Run)
			eventually(t, "the attempt is recorded", func() bool { return len(s.deliveries(e)) == 1 })
			stop()
			second := s.publishTools(0)
			check.OK(t, s.Replay(t.Context(), s.find(e.ID), ids(first, 1)[0]))
			for _, d := range []time.Duration{0, time.Minute, 58 * time.Minute} {
				s.clock.advance(d)
				pollSteadily(t, s.newScheduler())
				s.sendDue(e)
			}
			check.Slices(t, r.ids(), ids(first, 1), "before Retry-After ended")
			b := check.Try(s.Backlog(t.Context())).OK(t)
			check.Equal(t, b.OldestDue, 0)
			r.respondStatus(200)
			r.reset()
			s.clock.advance(7 * time.Minute)
			s.sendDue(e)
			check.Slices(t, r.ids(), append(ids(first, 66), ids(second, 1)...), "after Retry-After ended")
		})
	}
}

// An endpoint that fails for five days is disabled, and its owner gets one email,
// in the language of the account. A successful delivery starts the five days again.
func TestFiveDays(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		s.Store.Write.Account.Update().SetLanguage("fr").ExecX(t.Context())
		for _, status := range []int{500, 500, 500, 200, 500, 500, 500, 500} { // every 36 hours
			r.respondStatus(status)
			s.publishTools(0)
			s.sendDue(e)
			check.Must(t, s.find(e.ID).State, endpoint.StateActive, "state")
			s.clock.advance(36 * time.Hour)
		}
		s.publishTools(0)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateDisabled || !strings.Contains(e.DisabledReason, "5 days") || len(s.deliveries(e)) != 0 {
			t.Errorf("got state %s because %q, want disabled after 5 days", e.State, e.DisabledReason)
		}
		s.sendDue(e)
		s.clock.advance(time.Hour)
		s.sendDue(e)
		n := s.notices()
		check.Must(t, len(n), 1, n)
		check.Contains(t, n[0].Text, "5 jours")
		check.Lacks(t, n[0].Text, "5 days")
		// After it is resumed, earlier failures do not count.
		check.OK(t, s.Resume(t.Context(), s.find(e.ID)))
		s.publishTools(0)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateActive || e.Failures != 1 {
			t.Errorf("got state %s and %d failures, want active and 1", e.State, e.Failures)
		}
	})
}

// After many failures, an endpoint gets one event at a time. Once one is delivered,
// it gets all of them, in order.
func TestProbing(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		first := s.publishTools(probeAfter)
		s.sendDue(e)
		check.MustTrue(t, slices.Equal(r.ids(), ids(first, probeAfter)), "got %v, want %v", r.ids(), ids(first, probeAfter))
		second := s.publishTools(29)
		s.sendDue(e)
		check.Must(t, len(r.all()), probeAfter, "events before the retry time")
		s.clock.advance(6 * time.Second)
		for probe := 1; probe <= 3; probe++ {
			s.sendDue(e)
			got := r.ids()
			check.Must(t, len(got), probeAfter+probe, "probe %d: %v", probe, got)
			check.Must(t, got[len(got)-1], ids(first+probe-1, 1)[0], "probe %d", probe)
		}
		r.respondStatus(200)
		r.reset()
		s.sendDue(e) // one more probe
		if got := r.ids(); !slices.Equal(got, ids(first+3, 1)) {
			t.Fatalf("got %v, want %v", got, ids(first+3, 1))
		}
		s.sendDue(e)
		check.Slices(t, r.ids(), append(ids(first+3, 17), ids(second, 29)...))
		s.clock.advance(6 * time.Minute)
		s.sendDue(e)
		want := slices.Concat(ids(first, 3), ids(first+probeAfter, 1), ids(second+29, 1)) // catalog.published waited
		check.Slices(t, r.ids()[46:], want)
		check.Equal(t, len(s.deliveries(e)), 0)
	})
}

// Without pending retries, the next new event is the probe.
func TestProbingWithoutRetries(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		check.OK(t, s.Store.Write.Endpoint.UpdateOneID(e.ID).SetFailures(500).SetFailingSince(time.Now().Add(-time.Hour)).Exec(t.Context()))
		background(t, s.Run)
		first := s.publishTools(30)
		r.wait(t, 31)
		check.Slices(t, r.ids(), ids(first, 31))
	})
}

// A delivery whose event is missing from the journal does not block others.
func TestProbingWithMissingEvent(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addReceiver()
	check.OK(t, s.Store.Write.Endpoint.UpdateOneID(e.ID).SetFailures(probeAfter).Exec(t.Context()))
	check.OK(t, s.Store.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(900).SetNextAt(time.Now().UTC()).Exec(t.Context()))
	background(t, s.Run)
	s.publishTools(3)
	r.wait(t, 4)
}

func TestTidy(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		_, e := s.addReceiver()
		for range 3 {
			s.publishTools(3)
			s.sendDue(e)
			s.clock.advance(16 * 24 * time.Hour)
		}
		if got := len(s.attempts(e)); got != 4 { // of the last 30 days
			t.Errorf("got %d attempts of the last 30 days, want 4", got)
		}
		check.OK(t, s.Tidy(t.Context()))
		check.Equal(t, s.Store.Read.Attempt.Query().CountX(t.Context()), 4, "attempts after Tidy")
	})
}

// exhaustRetries advances the clock until no retry is left.
func (s *fixture) exhaustRetries(e *ent.Endpoint) {
	s.t.Helper()
	for rows := s.deliveries(e); len(rows) > 0; rows = s.deliveries(e) {
		s.clock.set(rows[0].NextAt.Add(time.Millisecond))
		s.sendDue(e)
	}
}

// Time without attempts does not count as failing: an endpoint that failed long ago
// is not disabled when the next event fails once.
func TestQuietTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		failed := s.publishTools(0)
		s.sendDue(e)
		s.exhaustRetries(e)
		check.Must(t, len(r.all()), 10)
		check.Must(t, s.find(e.ID).State, endpoint.StateActive)
		for what, again := range map[string]func(){
			"new event": func() { s.publishTools(0) },
			"replay":    func() { check.OK(t, s.Replay(t.Context(), s.find(e.ID), ids(failed, 1)[0])) },
		} {
			s.clock.advance(20 * 24 * time.Hour)
			again()
			s.sendDue(e)
			if e := s.find(e.ID); e.State != endpoint.StateActive || len(s.deliveries(e)) != 1 {
				t.Errorf("%s: got state %s because %q, want active", what, e.State, e.DisabledReason)
			}
			check.OK(t, s.Store.Write.Endpoint.UpdateOneID(e.ID).SetFailingSince(s.clock.now().Add(-4*24*time.Hour).UTC()).Exec(t.Context()))
			if _, err := s.Store.Write.Delivery.Delete().Exec(t.Context()); err != nil { // no retries are left
				t.Fatal(err)
			}
		}
	})
}

// Failures add up across quiet times: an endpoint that accepts nothing is disabled
// after 5 days of retries, however rare its events are.
func TestRareFailuresAddUp(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		for week := 1; week <= 2; week++ {
			s.publishTools(0)
			s.sendDue(e)
			s.exhaustRetries(e)
			if disabled := s.find(e.ID).State == endpoint.StateDisabled; disabled != (week == 2) {
				t.Errorf("week %d: got state %s, failing since %s, want disabled in week 2", week, s.find(e.ID).State, s.find(e.ID).FailingSince)
			}
			s.clock.advance(7 * 24 * time.Hour)
		}
		n := len(r.all())
		check.True(t, n > 11 && n < 20, "got disabled after %d attempts, want 12 to 19", n)
	})
}

// disabledEndpoint returns an endpoint that is disabled by a 410 response.
func disabledEndpoint(t *testing.T, s *fixture) (id int) {
	t.Helper()
	r, e := s.addReceiver()
	r.respondStatus(410)
	s.publishTools(0)
	s.sendDue(e)
	return e.ID
}

// No email is sent about an endpoint that its owner has already changed.
func TestNoEmailAfterChange(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	for _, change := range []func(id int) error{
		func(id int) error { return s.Resume(t.Context(), s.find(id)) },
		func(id int) error { return s.Pause(t.Context(), s.find(id)) },
	} {
		id := disabledEndpoint(t, s)
		check.OK(t, change(id))
		s.sendDue(s.find(id))
	}
	check.Equal(t, len(s.notices()), 0, "emails")
}

func (s *fixture) details(e *ent.Endpoint, a *ent.Attempt) *Details {
	s.t.Helper()
	return check.Try(s.Details(s.t.Context(), e, a.ID)).OK(s.t)
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
		test := check.Try(s.Test(t.Context(), e)).OK(t)
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
		_, err := s.Details(t.Context(), b, first.ID)
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
			check.True(t, (got == nil) == (want == nil) && (want == nil || got.Sub(*want).Abs() <= time.Millisecond), "%s: got last delivery %v, want %v", what, got, want) // databases round times
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
		check.Try(s.Test(t.Context(), e)).OK(t)
		verify("after a failed test event", &delivered)

		r.respondStatus(http.StatusOK)
		s.clock.advance(time.Hour)
		tested := s.clock.now()
		check.Try(s.Test(t.Context(), e)).OK(t)
		verify("after a test event", &tested)
	})
}

func TestTestLimitWords(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Millisecond: "Try again in 1 second.", 2 * time.Second: "Try again in 2 seconds."} {
		got := testLimit(wait).Error()
		check.True(t, strings.HasSuffix(got, want), "%s: got %q, want %q", wait, got, want)
	}
}

func TestBacklog(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		backlog := func() Backlog {
			t.Helper()
			return check.Try(s.Backlog(t.Context())).OK(t)
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
