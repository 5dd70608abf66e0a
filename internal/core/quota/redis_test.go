package quota

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// replicas returns servers that count in the same Redis.
func replicas(t *testing.T, server *testkit.RedisServer, n int, timeout time.Duration) ([]Store, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	var all []Store
	for range n {
		r := check.Try(NewRedis(server.URL, NewCounter(), slog.New(slog.NewTextHandler(log, nil)))).OK(t)
		t.Cleanup(func() { _ = r.Close() })
		r.timeout = timeout
		all = append(all, r)
	}
	return all, log
}

// patientTimeout is longer than redisTimeout, which a busy machine may exceed.
const patientTimeout = time.Second

func waitUntilAvailable(t *testing.T, s Store) {
	t.Helper()
	wait.Until(t, "Redis is available", func() bool { return !s.(*Redis).Unavailable() })
}

func TestReplicasCountTogetherWithRedis(t *testing.T) {
	stores, _ := replicas(t, testkit.StartRedis(t), 4, time.Minute)
	check.Equal(t, grants(stores, somebody, today, 100, 1000), 100, "of 4 × 1,000 granted")
	stores[0].Refund(t.Context(), somebody, someDay)
	check.Equal(t, grants(stores, somebody, today, 100, 50), 1, "granted after one refund")
	check.Equal(t, stores[3].Take(t.Context(), somebody, someDay+1, 100), 1, "count on the next day")
	check.Equal(t, stores[0].Take(t.Context(), Account(3), someDay, 0), 1, "count without a limit")
	ttl := time.Duration(stores[0].(*Redis).do(t, "TTL", redisKey(key{someDay, somebody})).(int64)) * time.Second
	check.True(t, ttl > dayLength && ttl <= retention, "got a count that expires in %v, want more than a day and at most %v", ttl, retention)
}

// One server counts exactly across an outage of Redis.
func TestOutageWithRedis(t *testing.T) {
	for name, outage := range map[string]struct {
		start, end func(*testkit.RedisServer, *testing.T)
	}{
		"frozen": {
			func(r *testkit.RedisServer, _ *testing.T) { r.Freeze() },
			func(r *testkit.RedisServer, _ *testing.T) { r.Thaw() },
		},
		"restarted empty": {
			func(r *testkit.RedisServer, _ *testing.T) { r.Stop() },
			func(r *testkit.RedisServer, t *testing.T) { r.Start(t) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.StartRedis(t)
			stores, log := replicas(t, server, 1, patientTimeout)
			take(t, stores[0], somebody, 30, 100)
			outage.start(server, t)
			take(t, stores[0], somebody, 1, 100)
			wait.Until(t, "Redis is unavailable", stores[0].(*Redis).Unavailable)
			take(t, stores[0], somebody, 29, 100) // without waiting: see TestNoWaitingWhileUnavailable
			outage.end(server, t)
			waitUntilAvailable(t, stores[0])
			granted := 0
			for range 200 {
				if take(t, stores[0], somebody, 1, 100) <= 100 {
					granted++
				}
			}
			check.Equal(t, granted, 40, "granted after 60 of 100")
			check.Equal(t, strings.Count(log.String(), "redis unavailable"), 1, "log lines about the outage")
			check.True(t, stores[0].(*Redis).Fallbacks.Load() != 0, "got 0 fallbacks in the metric, want some")
		})
	}
}

// Another server sees what was granted during an outage.
func TestServersCatchUpWithRedis(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, patientTimeout)
	take(t, stores[0], somebody, 10, 100)
	server.Freeze()
	take(t, stores[0], somebody, 20, 100)
	server.Thaw()
	waitUntilAvailable(t, stores[0])
	wait.Until(t, "the other server counts 31", func() bool {
		count := take(t, stores[1], somebody, 1, 100)
		stores[1].Refund(t.Context(), somebody, someDay)
		return count >= 31
	})
}

// When Redis freezes under load, each request is counted once, whether it was
// already sent or still queued.
func TestFreezeUnderLoadWithRedis(t *testing.T) {
	const callers, each = 40, 25
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 1, redisTimeout)
	take(t, stores[0], somebody, 1, 0)
	waitUntilAvailable(t, stores[0]) // the first request may have timed out
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range each {
				if i == 0 && n == each/5 {
					server.Freeze()
				}
				stores[0].Take(t.Context(), somebody, someDay, 0)
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	all.Wait()
	server.Thaw()
	waitUntilAvailable(t, stores[0])
	check.Equal(t, stores[0].Take(t.Context(), somebody, someDay, 0), callers*each+2, "count")
}

func TestInvalidRedisURL(t *testing.T) {
	for _, url := range []string{"nonsense", "http://x", "redis://user:secret@host:port/0", "redis://h/x"} {
		if _, err := NewRedis(url, NewCounter(), slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}

// When Redis is emptied, requests beyond the limit are granted only until the server
// with the higher count gets its next request.
func TestEmptyingWithRedis(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, time.Minute)
	take(t, stores[0], somebody, 1, 100)
	take(t, stores[1], somebody, 97, 100)
	stores[0].(*Redis).do(t, "FLUSHALL")
	granted := 98
	for i := range 200 {
		if take(t, stores[i%2], somebody, 1, 100) <= 100 {
			granted++
		}
	}
	check.True(t, granted <= 104, "got %d granted with a limit of 100, want at most 104", granted)
}

// Refunds by other servers are not mistaken for lost counts.
func TestRefundsByOtherServersWithRedis(t *testing.T) {
	stores, _ := replicas(t, testkit.StartRedis(t), 2, time.Minute)
	take(t, stores[1], somebody, 60, 1000)
	take(t, stores[0], somebody, 1, 1000)
	for range 60 {
		stores[1].Refund(t.Context(), somebody, someDay)
	}
	stores[0].Refund(t.Context(), somebody, someDay)
	for want := 1; want <= 5; want++ {
		check.Equal(t, take(t, stores[0], somebody, 1, 1000), want, "count after all 61 were refunded")
	}
	check.Equal(t, stores[0].(*Redis).known(), 5, "known count")
}

// A server with a wrong clock does not disturb the others' counts in Redis.
func TestWrongClockWithRedis(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, time.Minute)
	want := 0
	for _, jump := range jumps {
		wantCount(t, stores[0], someDay, want+1)
		if day := wrongDay(jump); day != someDay {
			wantCount(t, stores[1], day, 1)
			wantCount(t, stores[1], day, 2)
			stores[1].Refund(t.Context(), somebody, day)
		}
		wantCount(t, stores[1], someDay, want+2)
		want += 2
	}
	wantCount(t, stores[0], someDay+1000, 1)
	server.Stop() // the right day's count is still in memory
	for _, s := range stores {
		got := s.(*Redis).known()
		check.True(t, got >= want-1, "got count %d without Redis, want at least %d", got, want-1)
	}
}

// While Redis is unavailable, requests are counted without waiting for it.
func TestNoWaitingWhileUnavailable(t *testing.T) {
	r := newRedis("", NewCounter(), slog.New(slog.DiscardHandler))
	r.timeout = time.Hour
	r.unavailable = true
	counts := make(chan int)
	go func() { counts <- r.Take(t.Context(), somebody, someDay, 100) }()
	check.Equal(t, wait.Receive(t, "a request while Redis is unavailable", counts), 1, "count")
	check.Equal(t, len(r.queue), 0, "requests in the queue for Redis")
}

// A request that was queued for too long is counted locally, and so are the
// following ones.
func TestQueuedForTooLong(t *testing.T) {
	r := newRedis("", NewCounter(), slog.New(slog.DiscardHandler))
	r.timeout = -time.Second
	go r.sendQueued(t.Context())
	for want := 1; want <= 3; want++ {
		check.Equal(t, r.Take(t.Context(), somebody, someDay, 2), want, "count")
	}
	if !r.Unavailable() || r.Fallbacks.Load() != 3 {
		t.Errorf("got unavailable %t after %d failed requests, want true after 3", r.Unavailable(), r.Fallbacks.Load())
	}
	check.Equal(t, r.unsent[someKey].count(), 2, "granted requests still to add to Redis")
}

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
	c := check.Try(r.pool.DialContext(wait.Context(t))).OK(t)
	defer c.Close()
	return check.Try(c.Do(command, args...)).OK(t)
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
	stored := check.Try(redis.IntMap(r.do(t, "HGETALL", redisKey(someKey)), nil)).OK(t)
	return stored["granted"] - stored["refunded"]
}

func catchUp(t *testing.T, r *Redis) {
	t.Helper()
	r.probe()
	check.MustTrue(t, !r.Unavailable(), "got an unavailable Redis, want it available")
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
			check.Equal(t, r.local.Changes()[someDay][somebody], c.inFlight+c.local-c.refunds, "requests to write to the database")
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
	r.probe()
	check.True(t, r.Unavailable(), "got an available Redis, want it unavailable")
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
	changes := r.local.Changes()
	check.True(t, len(changes) == 0, "got changes %v, want none", changes)
}
