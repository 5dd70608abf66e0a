package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"palmares/internal/core/clock"
)

const (
	// redisTimeout is the most that Redis adds to a request.
	redisTimeout = 45 * time.Millisecond
	dialTimeout  = time.Second
	probeEvery   = 500 * time.Millisecond
	// maxIdle is how long a connection may stay unused: firewalls and Redis itself
	// may close idle ones.
	maxIdle   = 10 * time.Second
	retention = 2 * dayLength
	// Requests are sent in batches, so that a burst does not make Redis look slow.
	maxBatch    = 256
	queueLength = 4096
)

// Redis counts for several servers. While it responds, all of them together
// grant exactly the limit. While it does not, each server counts locally from its
// last known tally, so several may together grant more.
//
// One rule lets Redis catch up after an outage or a loss of its data: with each
// request, a server sends the tally that it knows and what it counted locally, and
// Redis raises its tally to the known one and adds the rest. That is exact for
// one server. With several, a few requests may be missing: those in flight when
// Redis stopped responding, and if it lost its data, those that the first server
// to send its tally did not know of.
type Redis struct {
	pool    *redis.Pool
	local   *Counter // the last known tallies, and what was counted since
	log     *slog.Logger
	timeout time.Duration
	queue   chan *request
	stop    context.CancelFunc

	mu          sync.Mutex
	unavailable bool
	// unsent is what was counted while Redis was unavailable. Requests that Redis
	// may have counted only add the key.
	unsent map[key]tally

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

// countScript applies the catch-up rule of type Redis and changes a count unless the limit is
// reached. It returns the tally and the change. Both parts of a tally only grow,
// so the higher value is always the newer one. A request that was in flight when Redis
// stopped responding may be missing although its refund is not.
var countScript = redis.NewScript(1, `
local granted, refunded, unsentGranted, unsentRefunded, change, limit, retention = unpack(ARGV)
local stored = redis.call('HMGET', KEYS[1], 'granted', 'refunded')
granted = math.max(granted, tonumber(stored[1] or 0)) + unsentGranted
refunded = math.max(refunded, tonumber(stored[2] or 0)) + unsentRefunded
granted = math.max(granted, refunded)
if tonumber(limit) > 0 and granted - refunded >= tonumber(limit) then
	change = 0
end
change = math.max(change, refunded - granted)
granted = granted + math.max(change, 0)
refunded = refunded - math.min(change, 0)
redis.call('HSET', KEYS[1], 'granted', granted, 'refunded', refunded)
redis.call('EXPIRE', KEYS[1], retention)
return {granted, refunded, change}`)

func redisKey(k key) string { return fmt.Sprintf("palmares:tally:%s:%x", k.day, uint64(k.subject)) }

// NewRedis counts in the Redis server at a URL. Options can replace how it connects.
func NewRedis(url string, local *Counter, log *slog.Logger, options ...redis.DialOption) (*Redis, error) {
	if err := CheckRedisURL(url); err != nil {
		return nil, err
	}
	r := newRedis(url, local, log, options...)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.probe() // connects before the first request, if there is time
		clock.Every(ctx, probeEvery, r.probe)
	}()
	go r.sendQueued(ctx)
	return r, nil
}

func newRedis(url string, local *Counter, log *slog.Logger, options ...redis.DialOption) *Redis {
	options = append([]redis.DialOption{redis.DialReadTimeout(dialTimeout), redis.DialWriteTimeout(redisTimeout)}, options...)
	// One connection for requests and one for probes, which keep both in use.
	pool := &redis.Pool{MaxIdle: 2, IdleTimeout: maxIdle, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return DialRedis(ctx, url, options...)
	}}
	return &Redis{pool: pool, local: local, log: log, timeout: redisTimeout, unsent: map[key]tally{}, queue: make(chan *request, queueLength)}
}

// CheckRedisURL returns an error if a URL is not valid.
func CheckRedisURL(url string) error {
	errValid := errors.New("valid")
	_, err := redis.DialURL(url, redis.DialNetDial(func(string, string) (net.Conn, error) { return nil, errValid }))
	if !errors.Is(err, errValid) { // the library's message repeats the URL with its password
		return errors.New("must be a URL of the form redis://user:password@host:port/number")
	}
	return nil
}

// DialRedis connects to the Redis server at a URL, within the deadline of ctx.
func DialRedis(ctx context.Context, url string, options ...redis.DialOption) (redis.Conn, error) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		raw, err := dialer.DialContext(ctx, network, address)
		if deadline, ok := ctx.Deadline(); ok && err == nil {
			err = raw.SetDeadline(deadline) // for the TLS handshake
		}
		return raw, err
	}
	return redis.DialURLContext(ctx, url, append([]redis.DialOption{redis.DialContextFunc(dial)}, options...)...)
}

// Close closes the connections. Nothing may be counted afterwards.
func (r *Redis) Close() error {
	r.stop()
	return r.pool.Close()
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

// Refund implements Store.
func (r *Redis) Refund(_ context.Context, s Subject, d Day) {
	r.count(&request{key: key{d, s}, change: -1})
}

// Count implements Store.
func (r *Redis) Count(_ context.Context, s Subject, d Day) int {
	return r.count(&request{key: key{d, s}})
}

func (r *Redis) count(req *request) int {
	req.due, req.count = time.Now().Add(r.timeout), make(chan int, 1)
	if !r.countLocally(nil, false, req) {
		r.queue <- req
	}
	return <-req.count
}

// countLocally counts requests without Redis, and reports whether it did. Without
// a cause, it does so only if Redis is already unavailable. Sent is false if
// Redis cannot have counted them.
func (r *Redis) countLocally(cause error, sent bool, batch ...*request) bool {
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
		unsent := changed
		if sent {
			unsent = 0 // if Redis did not count it, the known tally does
		}
		r.unsent[req.key] = r.unsent[req.key].plus(unsent)
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
		if !r.countLocally(cause, false, batch...) {
			r.send(batch)
		}
	}
}

func (r *Redis) send(batch []*request) {
	due := batch[0].due
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()
	c, err := r.pool.GetContext(ctx)
	if err != nil {
		r.countLocally(err, false, batch...)
		return
	}
	defer c.Close()
	for _, req := range batch {
		known, unsent := r.local.get(req.key), r.takeUnsent(req.key)
		// A connection that fails returns the same error when the reply is received.
		_ = countScript.Send(c, redisKey(req.key), known.granted-unsent.granted, known.refunded-unsent.refunded,
			unsent.granted, unsent.refunded, req.change, req.limit, int(retention/time.Second))
	}
	_ = c.Flush()
	r.decide(batch, func() ([]int, error) {
		return redis.Ints(redis.ReceiveWithTimeout(c, max(time.Until(due), 1)))
	})
}

// decide reports the count of each request. The first one without a reply, and
// all after it, are counted locally.
func (r *Redis) decide(batch []*request, receive func() ([]int, error)) {
	for i, req := range batch {
		reply, err := receive()
		if err != nil {
			r.countLocally(err, true, batch[i:]...)
			return
		}
		t, change := tally{int32(reply[0]), int32(reply[1])}, reply[2] // see countScript
		r.local.update(req.key, func(tally) (tally, int) { return t, change })
		req.count <- t.count() + req.change - change
	}
}

// takeUnsent returns and resets what was counted locally. It is sent to Redis only
// once, because Redis may have added it even if there is no reply.
func (r *Redis) takeUnsent(k key) tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	unsent := r.unsent[k]
	delete(r.unsent, k)
	return unsent
}

// probe tests the connection, so that the next request has one that works. If
// Redis responds again, it lets it catch up, by a request for each count that was
// changed without it.
func (r *Redis) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c, err := r.pool.GetContext(ctx)
	if err != nil {
		return
	}
	_, err = c.Do("PING")
	_ = c.Close()
	r.mu.Lock()
	if err != nil || !r.unavailable {
		r.mu.Unlock()
		return
	}
	changed := slices.Collect(maps.Keys(r.unsent))
	r.unavailable = false
	r.mu.Unlock()
	r.log.Info("redis available again, counting quotas in redis")
	for _, k := range changed {
		r.count(&request{key: k})
	}
}
