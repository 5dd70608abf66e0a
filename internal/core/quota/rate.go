package quota

import (
	"sync"
	"time"
)

// Rate limits how often each subject may do something that no quota counts, on one
// server.
type Rate struct {
	PerMinute int
	Now       func() time.Time

	mu     sync.Mutex
	minute int64
	counts map[Subject]int // in this minute
}

// Take counts n times, and reports whether the subject stays within the limit.
func (r *Rate) Take(s Subject, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := r.Now().Unix() / 60; minute != r.minute {
		r.minute, r.counts = minute, map[Subject]int{}
	}
	r.counts[s] += n
	return r.counts[s] <= r.PerMinute
}
