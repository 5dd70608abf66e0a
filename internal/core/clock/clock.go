// Package clock decides whether the system clock can be trusted with deleting
// data.
package clock

import (
	"sync"
	"time"
)

const (
	// steadyFor is longer than a wrong clock goes unnoticed: with a clock that
	// is far off, TLS certificates are refused.
	steadyFor = 6 * time.Hour
	// tolerance is how far the clock may be adjusted between two readings.
	tolerance = time.Minute
)

// Steady reads the system clock for jobs that delete what is past its date.
//
// A single reading may be wrong by a year, and what is deleted stays deleted.
// So Steady compares each reading with the time that has passed since the one
// before, which the machine measures without its clock. A clock that jumps
// forward and is set right within six hours therefore deletes nothing: both
// jumps start the six hours again. A restart does so as well.
type Steady struct {
	now    func() time.Time
	uptime func() time.Duration

	mu    sync.Mutex
	read  bool
	last  time.Time     // the latest reading,
	up    time.Duration // its uptime,
	since time.Duration // and that of the first reading it agrees with
}

// NewSteady reads the system clock.
func NewSteady() *Steady {
	start := time.Now()
	return newSteady(time.Now, func() time.Duration { return time.Since(start) })
}

func newSteady(now func() time.Time, uptime func() time.Duration) *Steady {
	return &Steady{now: now, uptime: uptime}
}

// Now returns the time, and whether the clock has run evenly for six hours. It
// has to be called regularly: jumps are noticed when it is.
func (s *Steady) Now() (now time.Time, trusted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, up := s.now().Round(0), s.uptime() // without the monotonic reading, which does not jump
	if drift := now.Sub(s.last) - (up - s.up); !s.read || drift.Abs() > tolerance {
		s.since = up
	}
	s.read, s.last, s.up = true, now, up
	return now, up-s.since >= steadyFor
}
