// Package limiter has limits that a server applies in memory, besides daily quotas: how often
// something is done, and how much of it at a time.
package limiter

import (
	"cmp"
	"sync"
	"time"
)

// Rate limits how often the owner of a key may do something, on one server.
type Rate[K comparable] struct {
	Limit  int
	Window time.Duration // a minute if zero
	Now    func() time.Time

	mu     sync.Mutex
	window int64
	counts map[K]int // in this window
}

// Take counts n times, and reports whether the key stays within the limit.
func (r *Rate[K]) Take(key K, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	window := r.Now().UnixNano() / int64(cmp.Or(r.Window, time.Minute))
	if window != r.window || r.counts == nil {
		r.window, r.counts = window, map[K]int{}
	}
	r.counts[key] += n
	return r.counts[key] <= r.Limit
}
