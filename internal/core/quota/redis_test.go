package quota

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// replicas are servers that count in one Redis. Where the count is the
// question, they wait for it as long as a slow machine takes.
func replicas(t *testing.T, server *testkit.RedisServer, n int, patience time.Duration) ([]Store, *lockedBuffer) {
	t.Helper()
	said := &lockedBuffer{}
	var all []Store
	for range n {
		r, err := NewRedis(server.URL, NewCounter(), slog.New(slog.NewTextHandler(said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		r.time = patience
		all = append(all, r)
	}
	return all, said
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

// patience is more than redisTime, which a busy machine may take by itself.
const patience = time.Second

func waitUntilBack(t *testing.T, s Store) {
	t.Helper()
	wait.Until(t, "Redis is back", func() bool { return !s.(*Redis).Away() })
}

func TestReplicasCountTogether(t *testing.T) {
	stores, _ := replicas(t, testkit.StartRedis(t), 4, time.Minute)
	if n := grants(stores, somebody, today, 100, 1000); n != 100 {
		t.Errorf("%d of 4 × 1,000 were answered, not 100", n)
	}
	stores[0].GiveBack(t.Context(), somebody, someDay)
	if n := grants(stores, somebody, today, 100, 50); n != 1 {
		t.Errorf("%d were answered for the one given back", n)
	}
	if count := stores[3].Take(t.Context(), somebody, someDay+1, 100); count != 1 {
		t.Errorf("the next day begins with %d", count)
	}
	if count := stores[0].Take(t.Context(), Account(3), someDay, 0); count != 1 {
		t.Errorf("without a bound: %d", count)
	}
	ttl := stores[0].(*Redis).client.TTL(t.Context(), redisKey(change{someDay, somebody})).Val()
	if ttl <= dayLength || ttl > keptDays {
		t.Errorf("a count is kept for %v", ttl)
	}
}

// A Redis that is gone or frozen costs a moment, and nothing is granted twice
// when it is back.
func TestRedisAway(t *testing.T) {
	for name, away := range map[string]struct {
		gone, back func(*testkit.RedisServer, *testing.T)
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
			stores, said := replicas(t, server, 1, patience)
			take(t, stores[0], somebody, 30, 100)
			away.gone(server, t)
			take(t, stores[0], somebody, 1, 100)
			wait.Until(t, "Redis is found away", stores[0].(*Redis).Away)
			take(t, stores[0], somebody, 29, 100) // none of which waits: see TestNoWaitingWhileAway
			away.back(server, t)
			waitUntilBack(t, stores[0])
			granted := 0
			for range 200 {
				if take(t, stores[0], somebody, 1, 100) <= 100 {
					granted++
				}
			}
			if granted != 40 {
				t.Errorf("%d were granted after 60 of 100", granted)
			}
			if n := strings.Count(said.String(), "does not answer"); n != 1 {
				t.Errorf("it was told %d times:\n%s", n, said)
			}
			if stores[0].(*Redis).Failed.Load() == 0 {
				t.Error("no metric tells")
			}
		})
	}
}

// Another server learns of what was granted alone.
func TestDebtsAreSettled(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, patience)
	take(t, stores[0], somebody, 10, 100)
	server.Freeze()
	take(t, stores[0], somebody, 20, 100)
	server.Thaw()
	waitUntilBack(t, stores[0])
	wait.Until(t, "the other server counts 31", func() bool {
		count := take(t, stores[1], somebody, 1, 100)
		stores[1].GiveBack(t.Context(), somebody, someDay)
		return count >= 31
	})
}

func TestRedisAddress(t *testing.T) {
	for _, address := range []string{"nonsense", "http://x", "redis://user:secret@host:port/0", "redis://h/x"} {
		if _, err := NewRedis(address, NewCounter(), slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Redis is emptied under two servers that know different things: at most the
// slack is granted again.
func TestRedisEmptied(t *testing.T) {
	server := testkit.StartRedis(t)
	stores, _ := replicas(t, server, 2, time.Minute)
	take(t, stores[0], somebody, 1, 100)
	take(t, stores[1], somebody, 97, 100)
	if err := stores[0].(*Redis).client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	granted := 98
	for i := range 200 {
		if take(t, stores[i%2], somebody, 1, 100) <= 100 {
			granted++
		}
	}
	if granted > 100+slack {
		t.Errorf("%d of 100 were granted", granted)
	}
}

// What other servers give back is not taken for lost, however much.
func TestGivenBackElsewhere(t *testing.T) {
	stores, _ := replicas(t, testkit.StartRedis(t), 2, time.Minute)
	take(t, stores[1], somebody, 60, 1000)
	take(t, stores[0], somebody, 1, 1000)
	for range 60 {
		stores[1].GiveBack(t.Context(), somebody, someDay)
	}
	stores[0].GiveBack(t.Context(), somebody, someDay)
	for want := 1; want <= 5; want++ {
		if count := take(t, stores[0], somebody, 1, 1000); count != want {
			t.Errorf("all 61 were given back, and request %d counts as %d", want, count)
		}
	}
	if known := stores[0].(*Redis).local.count(somebody, someDay); known > slack {
		t.Errorf("without Redis, it would go on from %d", known)
	}
}

// Counts of a server that did not know of births go on.
func TestCountWithoutBirth(t *testing.T) {
	stores, _ := replicas(t, testkit.StartRedis(t), 1, time.Minute)
	client := stores[0].(*Redis).client
	if err := client.Set(t.Context(), redisKey(change{someDay, somebody}), 41, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if count := take(t, stores[0], somebody, 2, 1000); count != 43 {
		t.Errorf("41 and 2 are %d", count)
	}
}

// A burst on cold connections is counted exactly.
func TestColdBurst(t *testing.T) {
	for range 5 {
		stores, _ := replicas(t, testkit.StartRedis(t), 2, time.Minute)
		if n := grants(stores, somebody, today, 100, 500); n != 100 {
			t.Errorf("%d of 1,000 were answered, not 100", n)
		}
	}
}

// A request that finds no room to wait for Redis is counted here, and told
// later: Redis never hears of it otherwise.
func TestNoRoomToWait(t *testing.T) {
	r := &Redis{
		local: NewCounter(), log: slog.New(slog.DiscardHandler), time: time.Minute,
		queue: make(chan *waiter), owed: map[change]int{}, // and nobody takes from it
	}
	for want := 1; want <= 3; want++ {
		if count := r.Take(t.Context(), somebody, someDay, 2); count != want {
			t.Errorf("counted as %d, not %d", count, want)
		}
	}
	if owed := r.owed[change{someDay, somebody}]; !r.away || owed != 2 {
		t.Errorf("%d are owed", owed)
	}
}
