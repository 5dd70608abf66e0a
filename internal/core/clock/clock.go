// Package clock detects jumps of the system clock and runs periodic work.
package clock

import (
	"context"
	"sync"
	"time"
)

const (
	// trustAfter is longer than a wrong clock would go unnoticed: if a clock is far
	// off, TLS certificates are rejected.
	trustAfter     = 6 * time.Hour
	trustTolerance = time.Minute
)

// Steady reads the system clock and detects jumps: it compares the time between two
// readings with the elapsed monotonic time. It must be read regularly, because it
// only detects a jump when it is read.
type Steady struct {
	Wall              func() time.Time     // the system clock
	Uptime            func() time.Duration // monotonic
	tolerance, settle time.Duration

	mu      sync.Mutex
	read    bool
	last    time.Time     // the last reading
	up      time.Duration // uptime at the last reading
	since   time.Duration // uptime at the first reading since the last jump
	settled time.Time     // the settled clock's time at uptime 0
}

// NewSteady returns a clock for jobs that delete expired data. Even a clock that is
// off by a year must not delete anything if it is corrected within six hours, so
// the clock is trusted only after it has run steadily for that long.
func NewSteady() *Steady { return New(trustTolerance, trustAfter) }

// New returns a clock that ignores adjustments up to tolerance between two readings.
// After a larger jump, it is not trusted until the settle time has passed.
func New(tolerance, settle time.Duration) *Steady {
	start := time.Now()
	return &Steady{Wall: time.Now, Uptime: func() time.Duration { return time.Since(start) }, tolerance: tolerance, settle: settle}
}

// Now returns the time and whether the clock has run without a jump for the settle
// time.
func (s *Steady) Now() (now time.Time, trusted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.update()
}

// Settled returns the time, ignoring jumps that are corrected within the settle
// time. The first reading is assumed to be correct.
func (s *Steady) Settled() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.read
	now, trusted := s.update()
	if start := now.Add(-s.up); first || trusted || start.Sub(s.settled).Abs() <= s.tolerance {
		s.settled = start
	}
	return s.settled.Add(s.up)
}

func (s *Steady) update() (now time.Time, trusted bool) {
	now, up := s.Wall().Round(0), s.Uptime() // Round removes the monotonic reading, which does not jump
	if drift := now.Sub(s.last) - (up - s.up); !s.read || drift.Abs() > s.tolerance {
		s.since = up
	}
	s.read, s.last, s.up = true, now, up
	return now, up-s.since >= s.settle
}

// Every calls do at an interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}
