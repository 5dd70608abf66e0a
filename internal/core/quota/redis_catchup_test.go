package quota

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

var (
	someKey = key{someDay, somebody}
	errLost = errors.New("connection lost")
)

// serverWithCount returns a server with a count in memory, which probes Redis
// only on demand. The URL may be empty if the test sends nothing.
func serverWithCount(t *testing.T, url string, count int) *Redis {
	t.Helper()
	r := newRedis(url, NewCounter(), slog.New(slog.DiscardHandler))
	r.timeout = patientTimeout
	r.local.update(someKey, func(tally) (tally, int) { return tally{granted: int32(count)}, 0 })
	if url == "" {
		return r
	}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	t.Cleanup(func() { _ = r.Close() })
	go r.sendQueued(ctx)
	return r
}

// do sends a command to the Redis server.
func (r *Redis) do(t *testing.T, command string, args ...any) any {
	t.Helper()
	c, err := r.pool.DialContext(wait.Context(t))
	check.OK(t, err)
	defer c.Close()
	reply, err := c.Do(command, args...)
	check.OK(t, err)
	return reply
}

func (r *Redis) known() int { return r.local.get(someKey).count() }

// takes returns requests that can be decided in one batch.
func takes(n, limit int) (batch []*request) {
	for range n {
		batch = append(batch, &request{key: someKey, change: 1, limit: limit, count: make(chan int, 1)})
	}
	return batch
}

// reply is Redis's reply to a request.
type reply struct {
	count, change int
	err           error
}

// replies returns a function that receives replies.
func replies(all ...reply) func() ([]int, error) {
	return func() ([]int, error) {
		next := all[0]
		all = all[1:]
		return []int{next.count, 0, next.change}, next.err
	}
}

// store sets the tally in Redis.
func (r *Redis) store(t *testing.T, stored tally) {
	t.Helper()
	r.do(t, "HSET", redisKey(someKey), "granted", stored.granted, "refunded", stored.refunded)
}

// clear deletes the tally in Redis.
func (r *Redis) clear(t *testing.T) {
	t.Helper()
	r.do(t, "DEL", redisKey(someKey))
}

func (r *Redis) stored(t *testing.T) int {
	t.Helper()
	stored, err := redis.IntMap(r.do(t, "HGETALL", redisKey(someKey)), nil)
	check.OK(t, err)
	return stored["granted"] - stored["refunded"]
}

func catchUp(t *testing.T, r *Redis) {
	t.Helper()
	if r.probe(); r.Unavailable() {
		t.Fatal("got an unavailable Redis, want it available")
	}
}

// Redis stops responding while requests are in flight. It has counted all of
// them and replied to some. The limit still holds.
func TestPartialReplies(t *testing.T) {
	const limit, known, inFlight = 100, 90, 30
	for received := range inFlight + 1 {
		r := serverWithCount(t, "", known)
		batch := takes(inFlight, limit)
		var results []reply
		for i := range batch {
			count, change := min(known+i+1, limit), 0
			if i < limit-known {
				change = 1
			}
			var err error
			if i >= received {
				err = errLost
			}
			results = append(results, reply{count, change, err})
		}
		r.decide(batch, replies(results...))
		total := known
		for _, req := range batch {
			if granted(limit, <-req.count) {
				total++
			}
		}
		check.Equal(t, total, limit, "%d replies: granted", received)
		check.Equal(t, r.Unavailable(), received < inFlight, "%d replies: unavailable", received)
		check.Equal(t, r.local.Changes()[someDay][somebody], limit-known, "%d replies: requests to write to the database", received)
	}
}

// A request without a reply is decided on the count in the replies to others.
func TestLimitReachedElsewhere(t *testing.T) {
	r := serverWithCount(t, "", 4)
	batch := takes(2, 100)
	// Other servers took the rest.
	r.decide(batch, replies(reply{100, 1, nil}, reply{0, 0, errLost}))
	check.Equal(t, <-batch[1].count, 101, "count")
}

func TestCatchUpWithRedis(t *testing.T) {
	url := testkit.StartRedis(t).URL
	for name, c := range map[string]struct {
		inFlight, local, refunds int
		redis                    tally // when it is available again
		want                     int
	}{
		"nothing happened":           {0, 0, 0, tally{30, 0}, 30},
		"in flight, counted":         {5, 0, 0, tally{35, 0}, 35},
		"in flight, not counted":     {5, 0, 0, tally{30, 0}, 35},
		"granted locally":            {0, 20, 0, tally{30, 0}, 50},
		"both":                       {5, 20, 0, tally{35, 0}, 55},
		"other servers counted":      {5, 20, 0, tally{75, 0}, 95},
		"other servers refunded":     {0, 20, 3, tally{30, 10}, 37},
		"refunded":                   {0, 20, 3, tally{30, 0}, 47},
		"more refunded than granted": {0, 0, 3, tally{30, 0}, 27},
		"Redis is empty":             {5, 20, 0, tally{}, 55},
		"Redis lost counts":          {0, 20, 0, tally{10, 0}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			r := serverWithCount(t, url, 30)
			r.clear(t)
			r.store(t, c.redis)
			r.countLocally(errLost, true, takes(c.inFlight, 0)...)
			for range c.local {
				r.Take(t.Context(), somebody, someDay, 0)
			}
			for range c.refunds {
				r.Refund(t.Context(), somebody, someDay)
			}
			check.Equal(t, r.known(), 30+c.inFlight+c.local-c.refunds, "known count during the outage")
			catchUp(t, r)
			check.Equal(t, r.stored(t), c.want, "count")
			if changed := c.inFlight + c.local + c.refunds; changed > 0 && r.known() != c.want {
				t.Errorf("got known count %d, want %d", r.known(), c.want)
			}
			written := r.local.Changes()[someDay][somebody]
			check.Equal(t, written, c.inFlight+c.local-c.refunds, "requests to write to the database")
		})
	}
}

// A request that was never sent is added to Redis later, even if other servers
// counted more in the meantime.
func TestUnsentRequestsWithRedis(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	r.store(t, tally{granted: 80})
	r.countLocally(errLost, false, takes(2, 31)...) // the second is rejected
	catchUp(t, r)
	check.Equal(t, r.stored(t), 81, "count")
}

// Requests that Redis may have added before a catch-up failed are not added
// again.
func TestCatchUpFailsWithRedis(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	r.countLocally(errLost, false, takes(20, 0)...)
	r.do(t, "LPUSH", redisKey(someKey), "not a count")
	if r.probe(); !r.Unavailable() {
		t.Error("got an available Redis, want it unavailable")
	}
	r.clear(t)
	r.store(t, tally{granted: 50}) // they were added, but the reply was lost
	catchUp(t, r)
	check.Equal(t, r.stored(t), 50, "count")
}

// Requests that are sent before Redis has caught up include what the server
// counted locally.
func TestRequestsBeforeCatchUpWithRedis(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	r.store(t, tally{granted: 80})
	r.countLocally(errLost, false, takes(20, 0)...)
	r.unavailable = false
	for _, want := range []int{101, 101} { // both are rejected
		check.Equal(t, r.Take(t.Context(), somebody, someDay, 100), want, "count")
	}
	r.unavailable = true
	catchUp(t, r)
	check.Equal(t, r.stored(t), 100, r.unsent)
	check.Equal(t, len(r.unsent), 0, r.unsent)
}

// A lower count in Redis is a loss, unless other servers refunded requests.
func TestCountsOfOtherServersWithRedis(t *testing.T) {
	url := testkit.StartRedis(t).URL
	for name, c := range map[string]struct {
		known  int
		stored tally
		want   int
	}{
		"next":                    {50, tally{50, 0}, 51},
		"other servers count":     {50, tally{69, 0}, 70},
		"refunded elsewhere":      {50, tally{50, 48}, 3},
		"lost":                    {50, tally{}, 51},
		"lost, higher here":       {50, tally{2, 0}, 51},
		"limit reached":           {100, tally{100, 0}, 101},
		"limit reached elsewhere": {4, tally{120, 20}, 101},
	} {
		r := serverWithCount(t, url, c.known)
		r.clear(t)
		r.store(t, c.stored)
		batch := takes(1, 100)
		batch[0].due = time.Now().Add(patientTimeout)
		r.send(batch)
		check.Equal(t, <-batch[0].count, c.want, "%s: count", name)
		want := min(c.want, 100)
		check.Equal(t, r.known(), want, name)
		check.Equal(t, r.stored(t), want, name)
	}
}

// Replies that follow an error are not mistaken for those to later requests.
func TestErrorInBatchWithRedis(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	r.do(t, "LPUSH", redisKey(someKey), "not a count")
	batch := takes(3, 100)
	for _, req := range batch {
		req.due = time.Now().Add(patientTimeout)
	}
	r.send(batch)
	check.True(t, r.Unavailable(), "got an available Redis, want it unavailable")
	r.clear(t)
	r.store(t, tally{granted: 33})
	catchUp(t, r)
	if got := r.Take(t.Context(), somebody, someDay, 100); got != 34 || r.Unavailable() {
		t.Errorf("got count %d and unavailable %t, want 34 and false", got, r.Unavailable())
	}
}

// A refund whose request was lost in flight is not counted as another request.
func TestRefundOfLostRequestWithRedis(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 0)
	r.store(t, tally{1, 1}) // of another server
	r.local.update(someKey, func(tally) (tally, int) { return tally{1, 1}, 0 })
	r.unsent[someKey] = tally{refunded: 1}
	check.Equal(t, r.Count(t.Context(), somebody, someDay), 0, "count")
	if changes := r.local.Changes(); len(changes) > 0 {
		t.Errorf("got changes %v, want none", changes)
	}
}
