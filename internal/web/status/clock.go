package status

import "time"

const (
	// clockTolerance is how far the clock may move in one step and still be
	// followed at once, as when it is synchronized.
	clockTolerance = 10 * time.Second
	// clockSettles is how long a clock that jumped must keep its new time before
	// that is taken for the right one.
	clockSettles = 5 * time.Minute
)

// steadyClock returns the time of the system clock without following jumps that
// are soon reverted: minutes recorded meanwhile would end up in a wrong year.
type steadyClock struct {
	wall    func() time.Time
	elapsed func() time.Duration // monotonic

	started bool
	start   time.Time     // what the wall clock showed when nothing had elapsed
	jumped  time.Time     // the same after a jump
	since   time.Duration // when the jump was noticed
}

func newSteadyClock() *steadyClock {
	begin := time.Now()
	return &steadyClock{wall: time.Now, elapsed: func() time.Duration { return time.Since(begin) }}
}

func (c *steadyClock) now() time.Time {
	elapsed := c.elapsed()
	start := c.wall().Round(0).Add(-elapsed) // Round strips the monotonic reading
	switch {
	case !c.started, near(start, c.start):
		c.started, c.start, c.jumped = true, start, time.Time{}
	case c.jumped.IsZero() || !near(start, c.jumped):
		c.jumped, c.since = start, elapsed
	case elapsed-c.since >= clockSettles:
		c.start, c.jumped = start, time.Time{}
	}
	return c.start.Add(elapsed)
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= clockTolerance }
