package quota

import (
	"log/slog"
	"testing"
)

var someKey = key{someDay, somebody}

// newState returns the state of a server that knows a count.
func newState(known int) *redisState {
	s := &newRedis(NewCounter(), slog.New(slog.DiscardHandler)).state
	s.local.restore(someKey, known)
	return s
}

// fakeRedis counts as the scripts do.
type fakeRedis struct {
	count int
	epoch int32
}

func (f *fakeRedis) take(known, limit int) reply {
	if f.epoch == 0 {
		f.count, f.epoch = known, 7
	}
	if !granted(limit, f.count+1) {
		return reply{f.count, false, f.epoch}
	}
	f.count++
	return reply{f.count, true, f.epoch}
}

// catchUp does what Redis.catchUp does.
func (f *fakeRedis) catchUp(s *redisState) {
	for k, n, ok := s.next(); ok; k, n, ok = s.next() {
		f.count = max(f.count+n, s.known(k), 0)
	}
}

// Redis stops responding with requests in flight, of which it counted all and
// replied to some. The limit holds whichever of them give up, and whether they
// do so before or after the others hear from Redis.
func TestInFlightRequestsReserveTheirPlace(t *testing.T) {
	const limit, known, inFlight = 100, 90, 30
	for heard := range inFlight + 1 {
		for _, givingUpFirst := range []bool{true, false} {
			s, redis := newState(known), &fakeRedis{known, 7}
			var requests []*request
			var replies []reply
			for range inFlight {
				requests = append(requests, s.reserve(someKey, limit))
				replies = append(replies, redis.take(known, limit))
			}
			hear := func() {
				for i := range heard {
					s.hear(requests[i], replies[i])
				}
			}
			if !givingUpFirst {
				hear()
			}
			for _, r := range requests[heard:] {
				s.decideAlone(r, true)
			}
			if givingUpFirst {
				hear()
			}
			total := known
			for _, r := range requests {
				if granted(limit, <-r.count) {
					total++
				}
			}
			if total != limit || len(s.inFlight) != 0 {
				t.Errorf("%d replies, giving up first %t: got %d granted and %v in flight, want %d and none", heard, givingUpFirst, total, s.inFlight, limit)
			}
		}
	}
}

// A request that gives up knows what others have heard from Redis meanwhile.
func TestGivingUpAfterTheLimitIsReachedElsewhere(t *testing.T) {
	s := newState(4)
	first := s.reserve(someKey, 100)
	second := s.reserve(someKey, 100)
	s.hear(second, reply{100, true, 7}) // other servers took the rest
	s.decideAlone(first, true)
	if got := <-first.count; got != 101 {
		t.Errorf("got count %d, want 101", got)
	}
}

func TestCatchUp(t *testing.T) {
	for name, c := range map[string]struct {
		inFlight, alone, refunds int
		redis                    fakeRedis // when it is back
		want                     int
	}{
		"nothing happened":            {0, 0, 0, fakeRedis{30, 7}, 30},
		"in flight, counted":          {5, 0, 0, fakeRedis{35, 7}, 35},
		"in flight, not counted":      {5, 0, 0, fakeRedis{30, 7}, 35},
		"granted alone":               {0, 20, 0, fakeRedis{30, 7}, 50},
		"both":                        {5, 20, 0, fakeRedis{35, 7}, 55},
		"others counted, too":         {5, 20, 0, fakeRedis{75, 7}, 95},
		"refunded":                    {0, 20, 3, fakeRedis{30, 7}, 47},
		"more refunded than granted":  {0, 0, 3, fakeRedis{30, 7}, 27},
		"Redis is empty":              {5, 20, 0, fakeRedis{}, 55},
		"Redis is empty but for more": {0, 20, 0, fakeRedis{50, 8}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(30)
			for range c.inFlight {
				r := s.reserve(someKey, 0)
				s.decideAlone(r, true)
			}
			s.unavailable.Store(true)
			for range c.alone {
				s.reserve(someKey, 0)
			}
			for range c.refunds {
				if s.refund(someKey) {
					t.Error("got a refund for Redis, want it to wait")
				}
			}
			c.redis.catchUp(s)
			if c.redis.count != c.want || s.unavailable.Load() {
				t.Errorf("got count %d, unavailable %t; want %d, false", c.redis.count, s.unavailable.Load(), c.want)
			}
			written := s.local.changes()[someDay][somebody]
			if want := c.inFlight + c.alone - c.refunds; written != want {
				t.Errorf("got %d for the database, want %d", written, want)
			}
		})
	}
}

// A request that gave up and is then found never to have been sent is added to
// Redis, even if other servers counted more meanwhile.
func TestUnsentRequests(t *testing.T) {
	s, redis := newState(30), &fakeRedis{80, 7}
	granted, rejected := s.reserve(someKey, 31), s.reserve(someKey, 31)
	for _, sent := range []bool{true, false} {
		if got := s.decideAlone(granted, sent); got != sent {
			t.Errorf("got decided %t, want %t", got, sent)
		}
		s.decideAlone(rejected, sent)
	}
	redis.catchUp(s)
	if redis.count != 81 {
		t.Errorf("got count %d, want 81", redis.count)
	}
}

// What Redis may have added is not added again.
func TestCatchUpFails(t *testing.T) {
	s, redis := newState(30), &fakeRedis{30, 7}
	s.unavailable.Store(true)
	for range 20 {
		s.reserve(someKey, 0)
	}
	k, n, _ := s.next()
	redis.count += n // and the reply is lost
	s.retry(k)
	if !s.unavailable.Load() {
		t.Error("got available, want unavailable")
	}
	redis.catchUp(s)
	if redis.count != 50 {
		t.Errorf("got count %d, want 50", redis.count)
	}
}

func TestHear(t *testing.T) {
	for name, c := range map[string]struct {
		known     int
		got       reply
		wantKnown int
		wantLost  int
	}{
		"next":                     {50, reply{51, true, 7}, 51, 0},
		"other servers count":      {50, reply{70, true, 7}, 70, 0},
		"refunded elsewhere":       {50, reply{3, true, 7}, 3, 0},
		"lost, known here":         {50, reply{3, true, 8}, 50, 50},
		"lost, known better there": {50, reply{60, true, 8}, 60, 0},
	} {
		s := newState(0)
		r := s.reserve(someKey, 100)
		s.hear(r, reply{c.known, true, 7})
		r = s.reserve(someKey, 100)
		lost, count := s.hear(r, c.got), <-r.count
		if known := s.known(someKey); count != c.got.count || lost != c.wantLost || known != c.wantKnown {
			t.Errorf("%s: got count %d, lost %d, known %d; want %d, %d, %d", name, count, lost, known, c.got.count, c.wantLost, c.wantKnown)
		}
	}
	s := newState(100)
	r := s.reserve(someKey, 100)
	s.hear(r, reply{100, false, 7})
	if count := <-r.count; count != 101 {
		t.Errorf("got count %d for a rejected request, want 101", count)
	}
}

// Between the first request that gave up and the catch-up, requests that Redis
// decided count on top of those that it may not know.
func TestHearAfterGivingUp(t *testing.T) {
	s := newState(10)
	first := s.reserve(someKey, 0)
	second := s.reserve(someKey, 0)
	s.decideAlone(first, true)
	s.hear(second, reply{11, true, 7})
	if got := s.known(someKey); got != 12 {
		t.Errorf("got known count %d, want 12", got)
	}
}

// A late reply does not count a request again.
func TestLateReply(t *testing.T) {
	s := newState(0)
	r := s.reserve(someKey, 100)
	s.decideAlone(r, true)
	s.hear(r, reply{1, true, 7})
	if s.decideAlone(r, true) {
		t.Error("got a second decision, want one")
	}
	if got := s.known(someKey); got != 1 {
		t.Errorf("got known count %d, want 1", got)
	}
	if got := s.local.changes()[someDay][somebody]; got != 1 {
		t.Errorf("got %d for the database, want 1", got)
	}
}
