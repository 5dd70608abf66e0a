package quota

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"palmares/internal/dev/testkit"
)

var (
	someKey = key{someDay, somebody}
	errLost = errors.New("connection lost")
)

// knownEpoch is the epoch of the counts in the servers' memory in these tests.
const knownEpoch = 7

// serverWithCount returns a server with a count in memory, which probes Redis
// only on demand. The URL may be empty if the test sends nothing.
func serverWithCount(t *testing.T, url string, count int) *Redis {
	t.Helper()
	r := newRedis(NewCounter(), slog.New(slog.DiscardHandler))
	r.timeout = patientTimeout
	r.local.update(someKey, func(tally) (tally, int) { return tally{int32(count), knownEpoch}, 0 })
	if url == "" {
		return r
	}
	options, err := RedisOptions(url)
	if err != nil {
		t.Fatal(err)
	}
	r.client = redis.NewClient(options)
	t.Cleanup(func() { _ = r.client.Close() })
	go r.sendQueued(t.Context())
	return r
}

func (r *Redis) known() int { return int(r.local.get(someKey).count) }

// takes returns requests that can be decided in one batch.
func takes(n, limit int) (batch []*request) {
	for range n {
		batch = append(batch, &request{key: someKey, change: 1, limit: limit, count: make(chan int, 1)})
	}
	return batch
}

// result returns Redis's reply to a request.
func result(t *testing.T, count, change int, err error) *redis.Cmd {
	t.Helper()
	cmd := redis.NewCmd(t.Context())
	cmd.SetVal([]any{int64(count), int64(change), int64(knownEpoch)})
	cmd.SetErr(err)
	return cmd
}

// storeCount sets the count in Redis; an epoch of 0 deletes it.
func storeCount(t *testing.T, r *Redis, count, epoch int) {
	t.Helper()
	err := r.client.Del(t.Context(), redisKey(someKey)).Err()
	if epoch != 0 {
		err = r.client.Set(t.Context(), redisKey(someKey), fmt.Sprintf("%d:%d", count, epoch), 0).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func storedCount(t *testing.T, r *Redis) (count int) {
	t.Helper()
	text, err := r.client.Get(t.Context(), redisKey(someKey)).Result()
	if err == nil {
		_, err = fmt.Sscanf(text, "%d:", &count)
	}
	if err != nil {
		t.Fatal(err)
	}
	return count
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
	for replies := range inFlight + 1 {
		r := serverWithCount(t, "", known)
		batch := takes(inFlight, limit)
		var results []*redis.Cmd
		for i := range batch {
			count, change := min(known+i+1, limit), 0
			if i < limit-known {
				change = 1
			}
			var err error
			if i >= replies {
				err = errLost
			}
			results = append(results, result(t, count, change, err))
		}
		r.decide(batch, results)
		total := known
		for _, req := range batch {
			if granted(limit, <-req.count) {
				total++
			}
		}
		if total != limit {
			t.Errorf("%d replies: got %d granted, want %d", replies, total, limit)
		}
		if want := replies < inFlight; r.Unavailable() != want {
			t.Errorf("%d replies: got unavailable %t, want %t", replies, r.Unavailable(), want)
		}
		if got := r.local.changes()[someDay][somebody]; got != limit-known {
			t.Errorf("%d replies: got %d requests to write to the database, want %d", replies, got, limit-known)
		}
	}
}

// A request without a reply is decided on the count in the replies to others.
func TestLimitReachedElsewhere(t *testing.T) {
	r := serverWithCount(t, "", 4)
	batch := takes(2, 100)
	// Other servers took the rest.
	r.decide(batch, []*redis.Cmd{result(t, 100, 1, nil), result(t, 0, 0, errLost)})
	if got := <-batch[1].count; got != 101 {
		t.Errorf("got count %d, want 101", got)
	}
}

func TestCatchUp(t *testing.T) {
	type stored struct{ count, epoch int }
	url := testkit.StartRedis(t).URL
	for name, c := range map[string]struct {
		inFlight, alone, refunds int
		redis                    stored // when it is available again
		want                     int
	}{
		"nothing happened":           {0, 0, 0, stored{30, 7}, 30},
		"in flight, counted":         {5, 0, 0, stored{35, 7}, 35},
		"in flight, not counted":     {5, 0, 0, stored{30, 7}, 35},
		"granted alone":              {0, 20, 0, stored{30, 7}, 50},
		"both":                       {5, 20, 0, stored{35, 7}, 55},
		"other servers counted":      {5, 20, 0, stored{75, 7}, 95},
		"refunded":                   {0, 20, 3, stored{30, 7}, 47},
		"more refunded than granted": {0, 0, 3, stored{30, 7}, 27},
		"Redis is empty":             {5, 20, 0, stored{}, 55},
		"Redis lost its counts":      {0, 20, 0, stored{50, 8}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			r := serverWithCount(t, url, 30)
			storeCount(t, r, c.redis.count, c.redis.epoch)
			r.countAlone(errLost, true, takes(c.inFlight, 0)...)
			for range c.alone {
				r.Take(t.Context(), somebody, someDay, 0)
			}
			for range c.refunds {
				r.GiveBack(t.Context(), somebody, someDay)
			}
			if want := 30 + c.inFlight + c.alone - c.refunds; r.known() != want {
				t.Errorf("got known count %d during the outage, want %d", r.known(), want)
			}
			catchUp(t, r)
			if got := storedCount(t, r); got != c.want {
				t.Errorf("got count %d, want %d", got, c.want)
			}
			if changed := c.inFlight + c.alone + c.refunds; changed > 0 && r.known() != c.want {
				t.Errorf("got known count %d, want %d", r.known(), c.want)
			}
			written := r.local.changes()[someDay][somebody]
			if want := c.inFlight + c.alone - c.refunds; written != want {
				t.Errorf("got %d requests to write to the database, want %d", written, want)
			}
		})
	}
}

// A request that was never sent is added to Redis later, even if other servers
// counted more in the meantime.
func TestUnsentRequests(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	storeCount(t, r, 80, knownEpoch)
	r.countAlone(errLost, false, takes(2, 31)...) // the second is rejected
	catchUp(t, r)
	if got := storedCount(t, r); got != 81 {
		t.Errorf("got count %d, want 81", got)
	}
}

// Requests that Redis may have added before a catch-up failed are not added
// again.
func TestCatchUpFails(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	r.countAlone(errLost, false, takes(20, 0)...)
	if err := r.client.LPush(t.Context(), redisKey(someKey), "not a count").Err(); err != nil {
		t.Fatal(err)
	}
	if r.probe(); !r.Unavailable() {
		t.Error("got an available Redis, want it unavailable")
	}
	storeCount(t, r, 50, knownEpoch) // they were added, but the reply was lost
	catchUp(t, r)
	if got := storedCount(t, r); got != 50 {
		t.Errorf("got count %d, want 50", got)
	}
}

// Requests that are sent before Redis has caught up include what the server
// counted alone.
func TestRequestsBeforeCatchUp(t *testing.T) {
	r := serverWithCount(t, testkit.StartRedis(t).URL, 30)
	storeCount(t, r, 80, knownEpoch)
	r.countAlone(errLost, false, takes(20, 0)...)
	r.unavailable = false
	for _, want := range []int{101, 101} { // both are rejected
		if got := r.Take(t.Context(), somebody, someDay, 100); got != want {
			t.Errorf("got count %d, want %d", got, want)
		}
	}
	r.unavailable = true
	catchUp(t, r)
	if got := storedCount(t, r); got != 100 || len(r.alone) != 0 {
		t.Errorf("got count %d in Redis and %v still to add, want 100 and none", got, r.alone)
	}
}

// If Redis has a lower count than the server, other servers refunded requests,
// or the count was lost if its epoch differs.
func TestCountsOfOtherServers(t *testing.T) {
	url := testkit.StartRedis(t).URL
	for name, c := range map[string]struct {
		known, stored, epoch int
		want                 int
	}{
		"next":                    {50, 50, 7, 51},
		"other servers count":     {50, 69, 7, 70},
		"refunded elsewhere":      {50, 2, 7, 3},
		"lost":                    {50, 0, 0, 51},
		"lost, higher here":       {50, 2, 8, 51},
		"lost, higher in Redis":   {50, 59, 8, 60},
		"limit reached":           {100, 100, 7, 101},
		"limit reached elsewhere": {4, 100, 7, 101},
	} {
		r := serverWithCount(t, url, c.known)
		storeCount(t, r, c.stored, c.epoch)
		batch := takes(1, 100)
		batch[0].due = time.Now().Add(patientTimeout)
		r.send(batch)
		if got := <-batch[0].count; got != c.want {
			t.Errorf("%s: got count %d, want %d", name, got, c.want)
		}
		if want := min(c.want, 100); r.known() != want || storedCount(t, r) != want {
			t.Errorf("%s: got known count %d and %d in Redis, want %d", name, r.known(), storedCount(t, r), want)
		}
	}
}
