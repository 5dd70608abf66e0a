package quota

import (
	"context"
	"sync"
	"sync/atomic"
)

// redisState is what a server knows of the counts in Redis. It decides without
// a clock or a connection, which Redis adds.
//
// The guarantee: while Redis responds, all servers together grant exactly the
// limit. While it does not, each server counts alone from the last count that
// it knows, so several servers may together grant more. When Redis is back, one
// rule applies to every count that a server granted requests of meanwhile: it
// becomes the count in Redis plus what the server granted alone, and at least
// what the server knows. That is exact for one server. With several, requests
// that were in flight when Redis stopped responding may be missing, and refunds
// that other servers gave meanwhile may be lost.
type redisState struct {
	mu          sync.Mutex
	local       *Counter // the last known counts, and what was granted since
	unavailable atomic.Bool
	inFlight    map[key]int // requests that wait for Redis
	// alone is what was granted while Redis was unavailable. Requests that Redis
	// may have counted only add the key.
	alone map[key]int
}

// request is one that is counted.
type request struct {
	key
	limit    int
	position int // its count if all that are in flight are granted
	decided  bool
	alone    bool     // granted without Redis
	count    chan int // receives the count when it is decided
}

// reply is the result of takeScript.
type reply struct {
	count   int
	granted bool
	epoch   int32
}

// reserve returns a request to send to Redis, which is decided already while
// Redis is unavailable. It counts those in flight, each of which could be
// granted for the same last place otherwise.
func (s *redisState) reserve(k key, limit int) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight[k]++
	r := &request{key: k, limit: limit, position: int(s.local.get(k).count) + s.inFlight[k], count: make(chan int, 1)}
	if s.unavailable.Load() {
		s.decideLocked(r, false)
	}
	return r
}

// decideAlone decides about a request without Redis, and reports whether it was
// undecided. Sent is false if Redis certainly never counts it.
func (s *redisState) decideAlone(r *request, sent bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decideLocked(r, sent)
}

func (s *redisState) decideLocked(r *request, sent bool) bool {
	undecided := !r.decided
	if undecided {
		count := max(r.position, int(s.local.get(r.key).count)+1)
		if r.alone = granted(r.limit, count); r.alone {
			s.local.Take(context.Background(), r.subject, r.day, 0)
		}
		s.decide(r, count)
	}
	switch {
	case r.alone && sent:
		s.alone[r.key] += 0
	case r.alone:
		s.alone[r.key]++
	}
	return undecided
}

func (s *redisState) decide(r *request, count int) {
	if s.inFlight[r.key]--; s.inFlight[r.key] == 0 {
		delete(s.inFlight, r.key)
	}
	r.decided = true
	r.count <- count
}

// hear takes over a reply from Redis. Replies arrive in order. If Redis lost a
// count and started again below what this server knows, lost is the count to
// restore.
func (s *redisState) hear(r *request, got reply) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0 // what this request adds to the known count
	if got.granted && !r.decided {
		own = 1
	}
	_, diverged := s.alone[r.key]
	s.local.update(r.key, func(t tally) (tally, int) {
		switch known := int(t.count); {
		case diverged: // Redis may not know all that was granted here
			t.count = int32(max(got.count, known+own))
		case t.epoch != 0 && t.epoch != got.epoch && got.count < known:
			lost = known
		default:
			t.count = int32(got.count)
		}
		t.epoch = got.epoch
		return t, own
	})
	if !r.decided {
		s.decide(r, got.count+1-own)
	}
	return lost
}

// refund subtracts a request, and reports whether to subtract it in Redis.
func (s *redisState) refund(k key) (send bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local.GiveBack(context.Background(), k.subject, k.day)
	if s.unavailable.Load() {
		s.alone[k]--
		return false
	}
	return true
}

// known returns the count without what next has still to return.
func (s *redisState) known(k key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, int(s.local.get(k).count)-s.alone[k])
}

// next removes a count that Redis has to catch up with. After the last one,
// Redis is available.
func (s *redisState) next() (k key, n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range s.alone {
		delete(s.alone, k)
		return k, n, true
	}
	s.unavailable.Store(false)
	return key{}, 0, false
}

// retry makes next return a count again, without the number that Redis may
// have added.
func (s *redisState) retry(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone[k] += 0
}
