package status

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/internal/core/clock"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// fakeClock is a clock that tests move: pass lets time pass, and setting Time
// makes it jump.
type fakeClock struct {
	mu sync.Mutex // a read that timed out may still use it
	time.Time
	elapsed time.Duration
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Time
}

func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Time = c.Add(d)
	c.elapsed += d
}

// newRecorder returns a recorder with its own clock, whose checks fail while
// *failure is set.
func newRecorder(s *store.Store, c *fakeClock, failure *error) *Recorder {
	r := NewRecorder(s, quiet)
	r.checkTimeout = time.Minute // for slow machines
	r.clock.Wall, r.clock.Uptime = c.now, func() time.Duration { return c.elapsed }
	read := r.read
	r.read = func(ctx context.Context) error {
		if *failure != nil {
			return *failure
		}
		return read(ctx)
	}
	return r
}

// checkFor runs the recorders' checks and writes for a while.
func checkFor(t *testing.T, c *fakeClock, d time.Duration, recorders ...*Recorder) {
	t.Helper()
	for end := c.elapsed + d; c.elapsed < end; c.pass(30 * time.Second) {
		for _, r := range recorders {
			r.check(t.Context())
			r.write(t.Context(), false)
		}
	}
}

func TestRecorder(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &fakeClock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
		var failure error
		one, two := newRecorder(s, at, &failure), newRecorder(s, at, &failure)

		// Two servers run for two minutes, and one of them for a third minute, with
		// one failed check.
		checkFor(t, at, 2*time.Minute, one, two)
		failure = errors.New("lost")
		one.check(t.Context())
		if one.Healthy() || !two.Healthy() {
			t.Errorf("got healthy: %t and %t, want false and true", one.Healthy(), two.Healthy())
		}
		failure = nil
		checkFor(t, at, time.Minute, one)
		if !one.Healthy() {
			t.Error("got unhealthy, want healthy")
		}
		// No server runs for a minute, then one does.
		at.pass(time.Minute)
		checkFor(t, at, time.Minute, one)
		one.write(t.Context(), true)
		at.pass(writeDelay)

		all, total, err := readDays(t.Context(), s, at.Time, shownDays)
		check.OK(t, err)
		today := all[len(all)-1]
		if len(all) != shownDays || today.Minutes != 5 || today.Up != 3 {
			t.Errorf("got %d days and %+v today, want %d days and 3 minutes up of 5", len(all), today, shownDays)
		}
		check.Equal(t, total, (Day{Minutes: 5, Up: 3}))
		check.Equal(t, total.percent(lang.English), "60.00%")
		if _, week, err := readDays(t.Context(), s, at.Time, 7); err != nil || week != total {
			t.Errorf("week: got %+v and %v, want %+v", week, err, total)
		}
		if all[0].Known() || all[0].percent(lang.English) != "no data" || all[0].Date.Format(time.DateOnly) != "2026-08-18" {
			t.Errorf("first day: got %+v, want no data", all[0])
		}
		if row := s.Read.Minute.Query().Order(minute.ByID()).FirstX(t.Context()); row.Checks != 4 || row.Failed != 0 {
			t.Errorf("got %d checks, %d failed, want 4 from both servers and none failed", row.Checks, row.Failed)
		}

		// A day later, the rest of that day counts as down.
		all, _, err = readDays(t.Context(), s, at.AddDate(0, 0, 1), shownDays)
		if err != nil || all[shownDays-2].Minutes != 12*60 || all[shownDays-2].Up != 3 || all[shownDays-1].Up != 0 {
			t.Errorf("yesterday: got %+v and %v, want 3 minutes up of 720", all[shownDays-2], err)
		}
	})
}

// Minutes that cannot be written stay pending.
func TestFailedWrite(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	at := &fakeClock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	var failure error
	r := newRecorder(s, at, &failure)
	checks := func(times int) {
		for range times {
			r.check(t.Context())
		}
	}
	checks(3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.write(ended, true)
	checks(2)
	r.write(t.Context(), true)
	check.Equal(t, s.Read.Minute.Query().OnlyX(t.Context()).Checks, 5, "checks")
	// When the server stops, the current minute is written too.
	checks(1)
	r.Run(ended)
	check.Equal(t, s.Read.Minute.Query().OnlyX(t.Context()).Checks, 6, "after the server stopped: checks")
	// The number of pending minutes is limited.
	for i := range maxPending + 10 {
		r.pending[i+1] = counts{checks: 1}
	}
	r.write(ended, true)
	if _, oldest := r.pending[11]; len(r.pending) != maxPending || !oldest {
		t.Errorf("got %d pending minutes, want %d", len(r.pending), maxPending)
	}
}

// A read that exceeds its timeout counts as failed.
func TestSlowDatabase(t *testing.T) {
	r := NewRecorder(testkit.Open(t, testkit.SQLite(t)), quiet)
	read := r.read
	r.read = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	r.checkTimeout = time.Millisecond
	r.check(t.Context())
	if c := r.pending[r.current]; r.Healthy() || c.failed == 0 {
		t.Errorf("got healthy: %t, %+v, want false and a failure", r.Healthy(), c)
	}
	r.read, r.checkTimeout = read, time.Minute
	r.check(t.Context())
	if !r.Healthy() {
		t.Error("got unhealthy, want healthy")
	}
}

// A clock that jumps for a moment changes nothing. One that is wrong for an hour
// costs the minutes of that hour only.
func TestClockJumps(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		start := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
		var failure error
		const hour = 60 // minutes
		for _, jump := range []time.Duration{3 * time.Hour, -3 * time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
			s.Write.Minute.Delete().ExecX(t.Context())
			at := &fakeClock{Time: start}
			r := newRecorder(s, at, &failure)
			want := func(what string, minutes, good, tolerance int) {
				t.Helper()
				r.write(t.Context(), true)
				_, total, err := readDays(t.Context(), s, at.Add(writeDelay), shownDays)
				if err != nil || total.Minutes != minutes || total.Up < good-tolerance || total.Up > good+tolerance {
					t.Errorf("%s, %s: got %+v, %v, want %d minutes up of %d", jump, what, total, err, good, minutes)
				}
			}
			checkFor(t, at, 5*time.Hour, r)
			want("before", 5*hour, 5*hour, 0)

			at.Time = at.Add(jump)
			checkFor(t, at, 4*time.Minute, r)
			at.Time = at.Add(-jump)
			checkFor(t, at, 56*time.Minute, r)
			want("after a short jump", 6*hour, 6*hour, 0)

			at.Time = at.Add(jump)
			checkFor(t, at, time.Hour, r)
			at.Time = at.Add(-jump)
			checkFor(t, at, time.Hour, r)
			if n := len(r.pending); n > 1 {
				t.Errorf("%s: got %d minutes in memory, want at most 1", jump, n)
			}
			want("after an hour", 8*hour, 7*hour, 10)
		}
	})
}

// Minutes with a date out of range are not counted, and do not displace others.
func TestMinutesOutOfRange(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		create := func(at time.Time) {
			s.Write.Minute.Create().SetID(minuteOf(at)).SetChecks(30).SetFailed(0).ExecX(t.Context())
		}
		for i := range 60 {
			create(now.Add(time.Duration(i-60) * time.Minute))
		}
		create(now.AddDate(-1, 0, 0))
		create(now.AddDate(1, 0, 0))
		_, total, err := readDays(t.Context(), s, now.Add(writeDelay), shownDays)
		check.OK(t, err)
		check.Equal(t, total, (Day{Minutes: 60, Up: 60}))
		err = s.Update(t.Context(), func(tx *ent.Tx) error { return prune(t.Context(), tx, 62) })
		if n := s.Read.Minute.Query().CountX(t.Context()); err != nil || n != 62 {
			t.Errorf("got %d minutes, %v, want 62", n, err)
		}
		err = s.Update(t.Context(), func(tx *ent.Tx) error { return prune(t.Context(), tx, 61) })
		if n := s.Read.Minute.Query().CountX(t.Context()); err != nil || n != 61 {
			t.Errorf("got %d minutes, %v, want 61", n, err)
		}
		if _, total, err = readDays(t.Context(), s, now.Add(writeDelay), shownDays); err != nil || total.Up != 60 {
			t.Errorf("got %+v, %v, want 60 minutes up", total, err)
		}
	})
}

// A recorder that starts with a clock a year ahead deletes no history.
func TestStartWithWrongClock(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &fakeClock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
		var failure error
		checkFor(t, at, 10*time.Minute, newRecorder(s, at, &failure))
		real := at.Time
		at.Time = at.AddDate(1, 0, 0)
		ahead := newRecorder(s, at, &failure)
		checkFor(t, at, 10*time.Minute, ahead)
		ahead.write(t.Context(), true)
		if _, total, err := readDays(t.Context(), s, real.Add(writeDelay), shownDays); err != nil || total.Up < 9 || total.Up != total.Minutes-1 && total.Up != total.Minutes {
			t.Errorf("got %+v and %v, want the minutes recorded before", total, err)
		}
	})
}

// Just after an outage, the server is healthy again, but has not been for long.
func TestHealthyFor(t *testing.T) {
	failing := true
	r := &Recorder{
		log: slog.New(slog.DiscardHandler), clock: clock.New(maxStep, jumpAcceptedAfter), checkTimeout: time.Minute, pending: map[int]counts{},
		read: func(context.Context) error {
			if failing {
				return errors.New("no connection")
			}
			return nil
		},
	}
	r.check(t.Context())
	failing = false
	r.check(t.Context())
	if !r.Healthy() || r.HealthyFor(time.Hour) || !r.HealthyFor(0) {
		t.Errorf("got healthy %v, for an hour %v, now %v; want true, false, true", r.Healthy(), r.HealthyFor(time.Hour), r.HealthyFor(0))
	}
}
