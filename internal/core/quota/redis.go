package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
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

// Redis counts for several servers; redisState explains what it guarantees.
type Redis struct {
	client  *redis.Client
	state   redisState
	log     *slog.Logger
	timeout time.Duration
	queue   chan *request
	closed  chan struct{}

	Fallbacks atomic.Int64 // requests that were decided without Redis
}

// takeScript counts a request unless the limit is reached. Redis stores a count
// as "count:epoch", where the epoch is a random number drawn when the count
// starts: with another epoch, Redis lost the count and started again. A missing
// count starts from what the server knows.
var takeScript = redis.NewScript(`
local count, epoch = string.match(redis.call('GET', KEYS[1]) or ARGV[2] .. ':' .. ARGV[4], '^(%d+):?(%d*)$')
count = tonumber(count)
local granted = 0
if tonumber(ARGV[1]) == 0 or count < tonumber(ARGV[1]) then
	count = count + 1
	granted = 1
end
redis.call('SET', KEYS[1], count .. ':' .. epoch, 'EX', ARGV[3])
return {count, granted, tonumber(epoch) or 0}`)

// addScript adds to a count, and raises it to what the server knows.
var addScript = redis.NewScript(`
local count, epoch = string.match(redis.call('GET', KEYS[1]) or '0:' .. ARGV[4], '^(%d+):?(%d*)$')
count = math.max(tonumber(count) + ARGV[1], tonumber(ARGV[2]), 0)
redis.call('SET', KEYS[1], count .. ':' .. epoch, 'EX', ARGV[3])
return count`)

// scriptArgs are the arguments of both scripts.
func scriptArgs(n, known int) []any {
	return []any{n, known, int(retention / time.Second), 1 + rand.Int32N(1<<31-1)}
}

func redisKey(k key) string { return fmt.Sprintf("palmares:quota:%s:%x", k.day, uint64(k.subject)) }

// NewRedis counts in the Redis at a URL.
func NewRedis(url string, local *Counter, log *slog.Logger) (*Redis, error) {
	options, err := redisOptions(url)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = time.Second, time.Second, time.Second
	options.MinIdleConns = 2
	r := newRedis(local, log)
	r.client = redis.NewClient(options)
	go r.sendQueued()
	go r.probe()
	return r, nil
}

func newRedis(local *Counter, log *slog.Logger) *Redis {
	return &Redis{
		state: redisState{local: local, inFlight: map[key]int{}, alone: map[key]int{}},
		log:   log, timeout: redisTimeout, queue: make(chan *request, queueLength), closed: make(chan struct{}),
	}
}

// CheckRedis returns an error if a URL cannot be that of a Redis.
func CheckRedis(url string) error {
	_, err := redisOptions(url)
	return err
}

func redisOptions(url string) (*redis.Options, error) {
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
	close(r.closed)
	return r.client.Close()
}

// Unavailable reports whether requests are counted locally for now.
func (r *Redis) Unavailable() bool { return r.state.unavailable.Load() }

// Take implements Store.
func (r *Redis) Take(_ context.Context, s Subject, d Day, limit int) int {
	req := r.state.reserve(key{d, s}, limit)
	if req.decided {
		r.Fallbacks.Add(1)
		return <-req.count
	}
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case r.queue <- req:
	default: // Redis never counts it
		r.decideAlone(req, false, errors.New("too many requests are waiting"))
		return <-req.count
	}
	select {
	case count := <-req.count:
		return count
	case <-timer.C:
		r.decideAlone(req, true, context.DeadlineExceeded)
		return <-req.count
	}
}

func (r *Redis) decideAlone(req *request, sent bool, cause error) {
	if r.state.decideAlone(req, sent) {
		r.Fallbacks.Add(1)
	}
	r.fail(cause) // only now, because Redis has to catch up with it
}

// GiveBack implements Store.
func (r *Redis) GiveBack(ctx context.Context, s Subject, d Day) {
	if !r.state.refund(key{d, s}) {
		return
	}
	if err := r.add(ctx, r.timeout, key{d, s}, -1, 0); err != nil {
		r.fail(err) // Redis may have subtracted it, so it is not sent again
	}
}

// add runs addScript.
func (r *Redis) add(ctx context.Context, timeout time.Duration, k key, n, atLeast int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return addScript.Run(ctx, r.client, []string{redisKey(k)}, scriptArgs(n, atLeast)...).Err()
}

func (r *Redis) fail(err error) {
	if !r.state.unavailable.Swap(true) {
		r.log.Warn("redis unavailable, counting quotas locally", "cause", err)
	}
}

// sendQueued sends queued requests until r is closed.
func (r *Redis) sendQueued() {
	for {
		var batch []*request
		select {
		case <-r.closed:
			return
		case first := <-r.queue:
			batch = append(batch, first)
		}
		for len(r.queue) > 0 && len(batch) < maxBatch { // nothing else receives
			batch = append(batch, <-r.queue)
		}
		if !r.Unavailable() {
			r.send(batch)
			continue
		}
		for _, req := range batch { // a new connection would not be ready in time
			r.decideAlone(req, false, context.DeadlineExceeded)
		}
	}
}

func (r *Redis) send(batch []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	results := make([]*redis.Cmd, len(batch))
	_, _ = r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each result has its error
		for i, req := range batch {
			results[i] = takeScript.Eval(ctx, pipe, []string{redisKey(req.key)}, scriptArgs(req.limit, r.state.known(req.key))...)
		}
		return nil
	})
	for i, req := range batch {
		numbers, err := results[i].Int64Slice()
		if err == nil && len(numbers) != 3 {
			err = errors.New("unexpected reply")
		}
		if err != nil {
			r.decideAlone(req, true, err)
			continue
		}
		if lost := r.state.hear(req, reply{int(numbers[0]), numbers[1] == 1, int32(numbers[2])}); lost > 0 {
			_ = r.add(ctx, r.timeout, req.key, 0, lost) // a failure only leaves the count too low
		}
	}
}

// probe lets Redis catch up once it responds again.
func (r *Redis) probe() {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.closed:
			return
		case <-ticker.C:
		}
		if r.Unavailable() && r.catchUp() == nil {
			r.log.Info("redis available, counting quotas together")
		}
	}
}

// catchUp adds to Redis what was granted without it.
func (r *Redis) catchUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	if err := r.client.Ping(ctx).Err(); err != nil {
		return err
	}
	for k, n, ok := r.state.next(); ok; k, n, ok = r.state.next() {
		if err := r.add(ctx, time.Second, k, n, r.state.known(k)); err != nil {
			r.state.retry(k)
			return err
		}
	}
	return nil
}
