package quota

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// A Redis that freezes under many requests counts each of them once when it
// goes on: those that it was sent, and those that still waited for it.
func TestRedisFreezesUnderLoad(t *testing.T) {
	const callers, each = 40, 25
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 1, redisTime)
	take(t, stores[0], somebody, 1, 0)
	waitUntilBack(t, stores[0]) // the first may find it slow
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
	waitUntilBack(t, stores[0])
	if count := stores[0].Take(t.Context(), somebody, someDay, 0); count != callers*each+2 {
		t.Errorf("Redis counted %d of %d", count, callers*each+2)
	}
}

// bare is a Redis store that nobody sends anything from.
func bare(patience time.Duration) *Redis {
	return &Redis{local: NewCounter(), log: slog.New(slog.DiscardHandler), time: patience, queue: make(chan *waiter, 1), owed: map[change]int{}, births: births{}}
}

// While Redis is unavailable, requests are counted locally without waiting for
// it, however long the wait may be.
func TestNoWaitingWhileAway(t *testing.T) {
	r := bare(time.Hour)
	r.away = true
	counts := make(chan int)
	go func() { counts <- r.Take(t.Context(), somebody, someDay, 100) }()
	if count := wait.Receive(t, "a request while Redis is unavailable", counts); count != 1 {
		t.Errorf("got a count of %d, want 1", count)
	}
	if len(r.queue) != 0 {
		t.Errorf("got %d requests in the queue for Redis, want 0", len(r.queue))
	}
}

// Whoever still waits when Redis is found away is told to it later, whether
// they have lost their patience by then or not.
func TestUnsentIsOwed(t *testing.T) {
	for name, patience := range map[string]time.Duration{"gone": time.Millisecond, "waiting": time.Minute} {
		t.Run(name, func(t *testing.T) {
			r := bare(patience)
			var taking sync.WaitGroup
			taking.Go(func() { r.Take(t.Context(), somebody, someDay, 100) })
			waits := <-r.queue
			if name == "gone" {
				taking.Wait()
			}
			r.away = true
			if !r.turnAway([]*waiter{waits}) {
				t.Error("it is sent to nobody")
			}
			taking.Wait()
			if owed := r.owed[change{someDay, somebody}]; owed != 1 {
				t.Errorf("%d are owed", owed)
			}
			if known := r.knownBut(change{someDay, somebody}); known != 0 {
				t.Errorf("Redis would begin from %d, and be told again", known)
			}
		})
	}
}

// An answer that comes too late counts nothing once more.
func TestLateAnswer(t *testing.T) {
	r := bare(time.Millisecond)
	if count := r.Take(t.Context(), somebody, someDay, 100); count != 1 {
		t.Errorf("counted as %d", count)
	}
	r.hear(t.Context(), <-r.queue, taken{count: 1, granted: true})
	if count := r.local.count(somebody, someDay); count != 1 {
		t.Errorf("%d are known", count)
	}
	if written := r.local.changes()[someDay][somebody]; written != 1 {
		t.Errorf("%d are written down", written)
	}
}
