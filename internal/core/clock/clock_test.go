package clock

import (
	"testing"
	"time"

	"palmares/internal/dev/check"
)

// machine has a wall clock that tests can set, and an uptime.
type machine struct {
	clock time.Time
	up    time.Duration
}

func (m *machine) pass(d time.Duration) { m.clock, m.up = m.clock.Add(d), m.up+d }

func newMachine() (*machine, *Steady) {
	m := &machine{clock: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	s := NewSteady()
	s.Wall, s.Uptime = func() time.Time { return m.clock }, func() time.Duration { return m.up }
	return m, s
}

// trustedWithin reads the clock every ten minutes, and counts the readings that
// were trusted.
func trustedWithin(m *machine, s *Steady, d time.Duration) (times int) {
	for end := m.up + d; m.up < end; m.pass(10 * time.Minute) {
		if now, trusted := s.Now(); trusted && now.Equal(m.clock) {
			times++
		}
	}
	return times
}

func TestTrustedAfterSixHours(t *testing.T) {
	m, s := newMachine()
	check.Equal(t, trustedWithin(m, s, trustAfter), 0, "trusted readings in the first six hours")
	check.Equal(t, trustedWithin(m, s, 24*time.Hour), 24*6, "trusted readings on the next day")
}

func TestJumpsAreNotTrusted(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{2 * time.Hour, -2 * time.Hour, year, -year} {
		for _, lasts := range []time.Duration{10 * time.Minute, time.Hour, trustAfter - 10*time.Minute} {
			m, s := newMachine()
			trustedWithin(m, s, 24*time.Hour)
			m.clock = m.clock.Add(jump)
			check.Equal(t, trustedWithin(m, s, lasts), 0, "%v for %v: trusted readings while the clock was wrong", jump, lasts)
			m.clock = m.clock.Add(-jump)
			check.Equal(t, trustedWithin(m, s, trustAfter), 0, "%v for %v: trusted readings after the clock was corrected", jump, lasts)
			check.Equal(t, trustedWithin(m, s, time.Hour), 6, "%v for %v: trusted readings six hours later", jump, lasts)
		}
	}
}

// A time service adjusts the clock a little all the time.
func TestSmallAdjustmentsAreTrusted(t *testing.T) {
	m, s := newMachine()
	for range 100 {
		trustedWithin(m, s, 10*time.Minute)
		m.clock = m.clock.Add(20 * time.Second)
	}
	_, trusted := s.Now()
	check.True(t, trusted, "got an untrusted clock, want it trusted")
}

func TestSystemClock(t *testing.T) {
	now, trusted := NewSteady().Now()
	check.Equal(t, trusted, false, now)
	check.True(t, time.Since(now).Abs() <= time.Hour, "got %v, trusted %t, want the time, not trusted yet", now, trusted)
}

// A settled clock follows adjustments immediately, and jumps only if they last.
func TestSettled(t *testing.T) {
	m, s := newMachine()
	s.tolerance, s.settle = 10*time.Second, 5*time.Minute
	verify := func(when string, want time.Time) {
		t.Helper()
		got := s.Settled()
		check.True(t, got.Equal(want), "%s: got %v, want %v", when, got, want)
	}
	verify("at first", m.clock)
	m.pass(time.Minute)
	m.clock = m.clock.Add(5 * time.Second)
	verify("after an adjustment", m.clock)
	for _, jump := range []time.Duration{-time.Hour, 365 * 24 * time.Hour} {
		right := m.clock
		m.clock = m.clock.Add(jump)
		verify("after a jump", right)
		m.pass(4 * time.Minute)
		verify("while it lasts", right.Add(4*time.Minute))
		m.clock = m.clock.Add(-jump)
		verify("corrected", m.clock)
		m.pass(10 * time.Minute)
		verify("afterwards", m.clock)
		m.clock = m.clock.Add(jump)
		s.Settled()
		m.pass(5 * time.Minute)
		verify("after a jump that lasts", m.clock)
	}
}
