package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/ent/endpoint"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestShippedTimes(t *testing.T) {
	t.Parallel()
	if defaultTiming.attempt != 15*time.Second || maxResponse != 64<<10 {
		t.Error("an attempt is not what it is said to be")
	}
	if takeover := defaultTiming.lease + 2*defaultTiming.poll; takeover > 10*time.Second {
		t.Errorf("got takeover after %s, want at most 10s", takeover)
	}
	var total time.Duration
	for _, wait := range retries {
		total += wait
	}
	if len(retries) != 9 || total != 75*time.Hour+35*time.Minute+5*time.Second {
		t.Errorf("%d retries within %s", len(retries), total)
	}
}

// An event that never arrives is tried ten times, at its times, and then given
// up; its id stays, its timestamp does not.
func TestTenAttempts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(503)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 0)
		planned := append([]time.Duration{0}, retries...)
		for n, wait := range planned {
			if n > 0 {
				rows := s.waiting(e)
				if len(rows) != 1 || rows[0].Attempts != n {
					t.Fatalf("before attempt %d: %v", n+1, rows)
				}
				after := rows[0].NextAt.Sub(s.clock.now())
				if after < wait-time.Millisecond || after > wait+wait/10 {
					t.Errorf("attempt %d is %s after the last", n+1, after)
				}
				s.clock.pass(after - time.Second)
				s.sendDue(e)
				if got := len(r.all()); got != n {
					t.Fatalf("attempt %d came early", got)
				}
				s.clock.pass(time.Second + time.Millisecond)
			}
			s.sendDue(e)
			if got := r.all(); len(got) != n+1 || got[n].header.Get("webhook-timestamp") != fmt.Sprint(s.clock.now().Unix()) {
				t.Fatalf("attempt %d: %d came", n+1, len(got))
			}
		}
		s.clock.pass(30 * time.Hour)
		s.sendDue(e)
		if !slices.Equal(slices.Compact(r.ids()), ids(first, 1)) || len(r.all()) != 10 || len(s.waiting(e)) != 0 {
			t.Errorf("%v, %d wait", r.ids(), len(s.waiting(e)))
		}
		var numbers []int
		for _, a := range s.attempts(e) {
			numbers = append(numbers, a.Number)
		}
		if !slices.Equal(numbers, []int{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
			t.Error(numbers)
		}
		// It is not lost for what comes next.
		r.answersStatus(200)
		second := tell(t, db, 0)
		s.sendDue(e)
		if e := s.find(e.ID); r.ids()[10] != ids(second, 1)[0] || e.Failures != 0 || e.FailingSince != nil || e.State != endpoint.StateActive {
			t.Errorf("%v %v", r.ids(), e)
		}
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	now := time.Now()
	different := map[time.Time]bool{}
	for range 1000 {
		at, again := nextAttempt(2, now)
		if !again || at.Sub(now) < 5*time.Minute || at.Sub(now) > 5*time.Minute+30*time.Second {
			t.Fatal(at.Sub(now))
		}
		different[at] = true
	}
	if len(different) < 900 {
		t.Errorf("only %d different times", len(different))
	}
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
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%.40q: %s", text, got)
		}
	}
	different := map[time.Time]bool{}
	for range 1000 {
		until := waitUntil([]*task{{}, {outcome: outcome{wait: time.Hour}}, {outcome: outcome{wait: time.Minute}}}, now)
		if wait := until.Sub(now); wait < time.Hour || wait > 66*time.Minute {
			t.Fatal(wait)
		}
		different[until] = true
	}
	if len(different) < 900 {
		t.Errorf("only %d different times", len(different))
	}
	if until := waitUntil([]*task{{}}, now); !until.IsZero() {
		t.Errorf("nobody asked, but it is left alone until %s", until)
	}
}

// A receiver that asks for time has it: from the rest of the round, from what
// is new, and from what is tried again. Then all comes, in order.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		testkit.EachStore(t, func(t *testing.T, db *store.Store) {
			s := newSite(t, db)
			s.stopClock()
			r := newReceiver(t)
			r.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(status)
			})
			e := s.add(Wish{URL: r.URL})
			first := tell(t, db, 65)
			stop := background(t, s.Run)
			eventually(t, "it is written down", func() bool { return len(s.waiting(e)) == 1 })
			second := tell(t, db, 0)
			if err := s.Replay(t.Context(), s.find(e.ID), ids(first, 1)[0]); err != nil {
				t.Fatal(err)
			}
			for _, pass := range []time.Duration{0, time.Minute, 58 * time.Minute} {
				s.clock.pass(pass)
				time.Sleep(5 * testTiming.poll)
				s.sendDue(e)
			}
			if got := r.ids(); !slices.Equal(got, ids(first, 1)) {
				t.Errorf("%d came to who wanted none: %v", len(got), got)
			}
			if b, err := s.Backlog(t.Context()); err != nil || b.Oldest != 0 {
				t.Errorf("what waits for its receiver is late: %v %v", b, err)
			}
			stop()
			r.answersStatus(200)
			r.forget()
			s.clock.pass(7 * time.Minute)
			s.sendDue(e)
			if got := r.ids(); !slices.Equal(got, append(ids(first, 66), ids(second, 1)...)) {
				t.Errorf("then came %v", got)
			}
		})
	}
}

// Who has failed for five days is disabled, and its owner is told once. One
// that arrives in between starts the days anew.
func TestFiveDays(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		mail := s.withMail()
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		for _, status := range []int{500, 500, 500, 200, 500, 500, 500, 500} { // one a day and a half
			r.answersStatus(status)
			tell(t, db, 0)
			s.sendDue(e)
			if got := s.find(e.ID).State; got != endpoint.StateActive {
				t.Fatalf("it is %s", got)
			}
			s.clock.pass(36 * time.Hour)
		}
		tell(t, db, 0)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateDisabled || !strings.Contains(e.Why, "5 days") || len(s.waiting(e)) != 0 {
			t.Errorf("it is %s: %s", e.State, e.Why)
		}
		s.sendDue(e)
		if letter := mail.Wait(t, ownerEmail); !strings.Contains(letter, "5 days") {
			t.Error(letter)
		}
		s.clock.pass(time.Hour)
		s.sendDue(e)
		if mail.Count(ownerEmail) != 1 {
			t.Errorf("%d letters", mail.Count(ownerEmail))
		}
		// Resumed, it starts anew.
		if err := s.Resume(t.Context(), s.find(e.ID)); err != nil {
			t.Fatal(err)
		}
		tell(t, db, 0)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateActive || e.Failures != 1 {
			t.Errorf("it is %s after %d failures", e.State, e.Failures)
		}
	})
}

// The longest without an answer is still a receiver that may come back: after
// some failures it gets one event at a time, and all of them, in order, once
// it answers.
func TestTired(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, probeAfter-1)
		s.sendDue(e)
		if !slices.Equal(r.ids(), ids(first, probeAfter)) {
			t.Fatal(r.ids())
		}
		second := tell(t, db, 29)
		s.sendDue(e)
		if got := len(r.all()); got != probeAfter {
			t.Fatalf("%d came before the time of the next", got)
		}
		s.clock.pass(6 * time.Second)
		for trial := 1; trial <= 3; trial++ {
			s.sendDue(e)
			if got := r.ids(); len(got) != probeAfter+trial || got[len(got)-1] != ids(first+trial-1, 1)[0] {
				t.Fatalf("trial %d: %v", trial, got)
			}
		}
		r.answersStatus(200)
		r.forget()
		s.sendDue(e) // one more trial
		if got := r.ids(); !slices.Equal(got, ids(first+3, 1)) {
			t.Fatal(got)
		}
		s.sendDue(e)
		if want := append(ids(first+3, 17), ids(second, 30)...); !slices.Equal(r.ids(), want) {
			t.Errorf("got %v\nwant %v", r.ids(), want)
		}
		s.clock.pass(6 * time.Minute)
		s.sendDue(e)
		if got := r.ids()[47:]; !slices.Equal(got, ids(first, 3)) || len(s.waiting(e)) != 0 {
			t.Errorf("at last came %v, %d wait", got, len(s.waiting(e)))
		}
	})
}

// Also when all was given up, the next event is a trial.
func TestTiredWithNothingToTry(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		if err := db.Write.Endpoint.UpdateOneID(e.ID).SetFailures(500).SetFailingSince(time.Now().Add(-time.Hour)).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		background(t, s.Run)
		first := tell(t, db, 30)
		r.wait(t, 31)
		if !slices.Equal(r.ids(), ids(first, 31)) {
			t.Error(r.ids())
		}
	})
}

// A delivery whose event the journal has lost does not keep the others.
func TestTiredWithALostEvent(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newReceiver(t)
	e := s.add(Wish{URL: r.URL})
	if err := s.Store.Write.Endpoint.UpdateOneID(e.ID).SetFailures(probeAfter).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(900).SetNextAt(time.Now().UTC()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	background(t, s.Run)
	tell(t, s.Store, 3)
	r.wait(t, 4)
}

func TestTidy(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		for range 3 {
			tell(t, db, 3)
			s.sendDue(e)
			s.clock.pass(16 * 24 * time.Hour)
		}
		if got := len(s.attempts(e)); got != 4 { // of the last 30 days
			t.Errorf("%d are shown", got)
		}
		if err := s.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Current().Attempt.Query().CountX(t.Context()); n != 4 {
			t.Errorf("%d are kept", n)
		}
	})
}
