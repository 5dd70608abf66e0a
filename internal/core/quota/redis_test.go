package quota

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// replicas returns servers that count in the same Redis.
func replicas(t *testing.T, server *testkit.RedisServer, n int, timeout time.Duration) ([]Store, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	var all []Store
	for range n {
		r, err := NewRedis(server.URL, NewCounter(), slog.New(slog.NewTextHandler(log, nil)))
		check.OK(t, err)
		t.Cleanup(func() { _ = r.Close() })
		r.timeout = timeout
		all = append(all, r)
	}
	return all, log
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
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

// A burst on cold connections is counted exactly.
func TestColdBurstWithRedis(t *testing.T) {
	for range 5 {
		stores, _ := replicas(t, testkit.StartRedis(t), 2, time.Minute)
		check.Equal(t, grants(stores, somebody, today, 100, 500), 100, "of 1,000 granted")
	}
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
