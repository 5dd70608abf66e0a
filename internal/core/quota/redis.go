package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"palmares/internal/core/clock"
)

const (
	// redisTimeout is the most that Redis adds to a request.
	redisTimeout = 45 * time.Millisecond
	probeEvery   = 500 * time.Millisecond
	retention    = 2 * dayLength
	// Requests are sent in batches, so that a burst does not make Redis look slow.
	maxBatch    = 256
	queueLength = 4096
)

// Redis counts for several servers. While it responds, all of them together
// grant exactly the limit. While it does not, each server counts alone from its
// last known count, so several may together grant more. When Redis responds
// again, one rule applies to each count that a server changed in the meantime:
// it is raised to the server's last known count, and the requests that the server
// counted alone are added. That is exact for one server. With several, requests
// that were in flight when Redis stopped responding may be missing, and refunds
// that other servers made in the meantime may be lost.
type Redis struct {
	client  *redis.Client
	local   *Counter // the last known counts, and what was counted since
	log     *slog.Logger
	timeout time.Duration
	queue   chan *request
	stop    context.CancelFunc

	mu          sync.Mutex
	unavailable bool
	// alone is what was counted while Redis was unavailable. Requests that Redis
	// may have counted only add the key.
	alone map[key]int

	Fallbacks atomic.Int64 // requests that were decided without Redis
}

// request is a change of a count.
type request struct {
	key
	change int       // 1, -1 for a refund, or 0 to let Redis catch up
	limit  int       // of the count; 0 for unlimited
	due    time.Time // when it is counted without Redis
	count  chan int  // receives the count with the change, even if the limit prevented that
}

// countScript adds what the server counted alone, and changes a count unless the
// limit is reached. It returns the count, the change and the epoch.
//
// Redis stores a count as "count:epoch", where the epoch is a random number drawn
// when the count starts. If the epoch differs from the server's, Redis lost the
// count and started again, so it is raised to the server's count. A missing count
// starts from the server's count.
var countScript = redis.NewScript(`
local known, knownEpoch, newEpoch, alone, change, limit, retention = unpack(ARGV)
local count, epoch = string.match(redis.call('GET', KEYS[1]) or known .. ':' .. newEpoch, '^(%d+):?(%d*)$')
count = tonumber(count)
if knownEpoch ~= '0' and knownEpoch ~= epoch then
	count = math.max(count, tonumber(known))
end
count = math.max(0, count + tonumber(alone))
if tonumber(limit) > 0 and count >= tonumber(limit) then
	change = 0
end
change = math.max(tonumber(change), -count)
redis.call('SET', KEYS[1], count + change .. ':' .. epoch, 'EX', retention)
return {count + change, change, tonumber(epoch) or 0}`)

// otherEpoch differs from every epoch in Redis.
const otherEpoch = -1

func redisKey(k key) string { return fmt.Sprintf("palmares:quota:%s:%x", k.day, uint64(k.subject)) }

// NewRedis counts in the Redis server at a URL.
func NewRedis(url string, local *Counter, log *slog.Logger) (*Redis, error) {
	options, err := RedisOptions(url)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = time.Second, time.Second, time.Second
	options.MinIdleConns = 2
	r := newRedis(local, log)
	r.client = redis.NewClient(options)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go r.sendQueued(ctx)
	go clock.Every(ctx, probeEvery, r.probe)
	return r, nil
}

func newRedis(local *Counter, log *slog.Logger) *Redis {
	return &Redis{local: local, log: log, timeout: redisTimeout, alone: map[key]int{}, queue: make(chan *request, queueLength)}
}

// RedisOptions returns the options for the Redis at a URL.
func RedisOptions(url string) (*redis.Options, error) {
	options, err := redis.ParseURL(url)
	if err != nil { // the library's message repeats the URL with its password
		return nil, errors.New("must be a URL of the form redis://user:password@host:port/number")
	}
	redis.SetLogger(silent{}) // its lines would name the address
	options.ContextTimeoutEnabled = true
	options.MaxRetries = -1 // what Redis may have counted is not sent again
	return options, nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close closes the connections. Nothing may be counted afterwards.
func (r *Redis) Close() error {
	r.stop()
	return r.client.Close()
}

// Unavailable reports whether requests are counted locally for now.
func (r *Redis) Unavailable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unavailable
}

// Take implements Store.
func (r *Redis) Take(_ context.Context, s Subject, d Day, limit int) int {
	return r.count(&request{key: key{d, s}, change: 1, limit: limit})
}

// GiveBack implements Store.
func (r *Redis) GiveBack(_ context.Context, s Subject, d Day) {
	r.count(&request{key: key{d, s}, change: -1})
}

func (r *Redis) count(req *request) int {
	req.due, req.count = time.Now().Add(r.timeout), make(chan int, 1)
	if !r.countAlone(nil, false, req) {
		r.queue <- req
	}
	return <-req.count
}

// countAlone counts requests without Redis, and reports whether it did. Without
// a cause, it does so only if Redis is already unavailable. Sent is false if
// Redis cannot have counted them.
func (r *Redis) countAlone(cause error, sent bool, batch ...*request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unavailable {
		if cause == nil {
			return false
		}
		r.unavailable = true
		r.log.Warn("redis unavailable, counting quotas locally", "cause", cause)
	}
	for _, req := range batch {
		count, changed := r.local.add(req.key, req.change, req.limit)
		switch {
		case sent:
			r.local.update(req.key, func(t tally) (tally, int) { return tally{t.count, otherEpoch}, 0 })
			r.alone[req.key] += 0
		case changed != 0:
			r.alone[req.key] += changed
		}
		if req.change > 0 {
			r.Fallbacks.Add(1)
		}
		req.count <- count + req.change - changed
	}
	return true
}

// sendQueued sends queued requests until ctx ends. It is the only sender, so
// that replies arrive in order.
func (r *Redis) sendQueued(ctx context.Context) {
	for {
		var batch []*request
		select {
		case <-ctx.Done():
			return
		case first := <-r.queue:
			batch = append(batch, first)
		}
		for len(r.queue) > 0 && len(batch) < maxBatch { // nothing else receives
			batch = append(batch, <-r.queue)
		}
		var cause error
		if time.Now().After(batch[0].due) {
			cause = errors.New("too many requests are waiting")
		}
		if !r.countAlone(cause, false, batch...) {
			r.send(batch)
		}
	}
}

func (r *Redis) send(batch []*request) {
	ctx, cancel := context.WithDeadline(context.Background(), batch[0].due)
	defer cancel()
	results := make([]*redis.Cmd, len(batch))
	_, _ = r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each result has its error
		for i, req := range batch {
			known, alone := r.local.get(req.key), r.takeAlone(req.key)
			results[i] = countScript.Eval(ctx, pipe, []string{redisKey(req.key)}, max(0, int(known.count)-alone), known.epoch,
				1+rand.Int32N(1<<31-1), alone, req.change, req.limit, int(retention/time.Second))
		}
		return nil
	})
	r.decide(batch, results)
}

// decide reports the count of each request. The first one without a result, and
// all after it, are counted locally.
func (r *Redis) decide(batch []*request, results []*redis.Cmd) {
	for i, req := range batch {
		reply, err := results[i].Int64Slice()
		if err != nil {
			r.countAlone(err, true, batch[i:]...)
			return
		}
		count, change, epoch := int(reply[0]), int(reply[1]), int32(reply[2]) // see countScript
		r.local.update(req.key, func(tally) (tally, int) { return tally{int32(count), epoch}, change })
		req.count <- count + req.change - change
	}
}

// takeAlone returns and resets what was counted alone. It is sent to Redis only
// once, because Redis may have added it even if there is no reply.
func (r *Redis) takeAlone(k key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.alone[k]
	delete(r.alone, k)
	return n
}

// probe lets Redis catch up if it responds again, by a request for each count
// that was changed without it.
func (r *Redis) probe() {
	if !r.Unavailable() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	if r.client.Ping(ctx).Err() != nil {
		return
	}
	r.mu.Lock()
	changed := slices.Collect(maps.Keys(r.alone))
	r.unavailable = false
	r.mu.Unlock()
	r.log.Info("redis available, counting quotas together")
	for _, k := range changed {
		r.count(&request{key: k})
	}
}
