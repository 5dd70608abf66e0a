package billing

import (
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// clicksAMinute is how often an account may make us ask Stripe: it answers
// only so many requests of ours.
const clicksAMinute = 10

var errClicks = problem.New(problem.TooMany, "That was often for one minute: wait for the next.")

// clicks counts what accounts do in the current minute.
type clicks struct {
	mu     sync.Mutex
	minute int64
	made   map[int]int // by account
}

func (c *clicks) count(account int, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if minute := now.Unix() / 60; c.made == nil || c.minute != minute {
		c.minute, c.made = minute, map[int]int{}
	}
	if c.made[account] >= clicksAMinute {
		return errClicks
	}
	c.made[account]++
	return nil
}
