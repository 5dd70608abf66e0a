// Package clock detects jumps of the system clock, and runs periodic work.
package clock

import (
	"context"
	"sync"
	"time"
)

const (
	// trustAfter is longer than a wrong clock stays unnoticed: with a clock that
	// is far off, TLS certificates are rejected.
	trustAfter     = 6 * time.Hour
	trustTolerance = time.Minute
)

// Steady reads the system clock. It compares each reading with the time that has
// passed since the one before, which the machine measures without its clock.
// Jumps are noticed when it is read, so it has to be read regularly.
type Steady struct {
	Wall              func() time.Time     // the system clock
	Uptime            func() time.Duration // measured without it
	tolerance, settle time.Duration

	mu      sync.Mutex
	read    bool
	last    time.Time     // the latest reading
	up      time.Duration // its uptime
	since   time.Duration // the uptime of the first reading that it agrees with
	settled time.Time     // what the settled clock showed at uptime 0
}

// NewSteady returns a clock for jobs that delete what has expired. A clock that
// is wrong by a year and corrected within six hours must not delete anything, so
// it has to run steadily for that long, even after a start.
func NewSteady() *Steady { return New(trustTolerance, trustAfter) }

// New returns a clock that may be adjusted by tolerance between two readings. A
// larger jump must last for the settle time.
func New(tolerance, settle time.Duration) *Steady {
	start := time.Now()
	return &Steady{Wall: time.Now, Uptime: func() time.Duration { return time.Since(start) }, tolerance: tolerance, settle: settle}
}

// Now returns the time, and whether the clock has run steadily for the settle
// time.
func (s *Steady) Now() (now time.Time, trusted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.update()
}

// Settled returns the time without following jumps that are corrected within
// the settle time. The first reading is assumed to be right.
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
	now, up := s.Wall().Round(0), s.Uptime() // without the monotonic reading, which does not jump
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
