package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// redisTime is what Redis may add to a request.
	redisTime = 40 * time.Millisecond
	// redisPause is how long a Redis that failed is left alone.
	redisPause = time.Second
	keptDays   = 2 * dayLength
)

// takeScript counts one request, with what this server granted while Redis
// was away. A count that Redis has lost begins from what the server knew.
var takeScript = redis.NewScript(`
local count = tonumber(redis.call('GET', KEYS[1]) or ARGV[2]) + ARGV[3]
local quota = tonumber(ARGV[1])
local counted = count
if quota == 0 or count < quota then counted = count + 1 end
redis.call('SET', KEYS[1], counted, 'EX', ARGV[4])
return {counted, count + 1}`)

// settleScript adds what was granted while Redis was away, or gives back.
var settleScript = redis.NewScript(`
local count = tonumber(redis.call('GET', KEYS[1]) or ARGV[1]) + ARGV[2]
redis.call('SET', KEYS[1], math.max(0, count), 'EX', ARGV[3])
return count`)

// Redis counts for several servers. While it is slow or gone, each goes on
// from what it knew, and tells Redis afterwards what it granted.
type Redis struct {
	client *redis.Client
	local  *Counter // what is known here
	log    *slog.Logger
	now    func() time.Time
	time   time.Duration // that it may take

	away    atomic.Bool
	retryAt atomic.Int64 // in nanoseconds
	Failed  atomic.Int64 // how often Redis did not answer, for the metrics

	owedMu sync.Mutex
	owed   map[change]int // granted without Redis
}

// NewRedis counts in the Redis at an address.
func NewRedis(address string, local *Counter, log *slog.Logger) (*Redis, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("is not an address of the form redis://user:password@host:port/number") // the library's error repeats it
	}
	options.ContextTimeoutEnabled = true
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = redisTime, redisTime, redisTime, redisTime
	options.MaxRetries = -1 // there is no time for a second attempt
	options.PoolSize = 64
	return &Redis{client: redis.NewClient(options), local: local, log: log, now: time.Now, time: redisTime, owed: map[change]int{}}, nil
}

// Silence keeps the library from writing lines of its own, with addresses.
func init() { redis.SetLogger(silent{log.New(io.Discard, "", 0)}) }

type silent struct{ *log.Logger }

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections.
func (r *Redis) Close() error { return r.client.Close() }

func redisKey(s Subject, d Day) string { return fmt.Sprintf("palmares:quota:%s:%x", d, uint64(s)) }

// Take implements Store.
func (r *Redis) Take(ctx context.Context, s Subject, d Day, quota int) int {
	if !r.usable() {
		return r.takeAlone(ctx, s, d, quota)
	}
	owed := r.settle(s, d)
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.time)
	defer cancel()
	counts, err := takeScript.Run(asked, r.client, []string{redisKey(s, d)},
		quota, max(0, r.local.count(s, d)-owed), owed, int(keptDays/time.Second)).Int64Slice()
	if err != nil || len(counts) != 2 {
		r.owe(s, d, owed)
		r.lost(err)
		return r.takeAlone(ctx, s, d, quota)
	}
	r.found()
	r.local.observe(s, d, int(counts[0]), counts[0] == counts[1])
	return int(counts[1])
}

// GiveBack implements Store.
func (r *Redis) GiveBack(ctx context.Context, s Subject, d Day) {
	r.local.GiveBack(ctx, s, d)
	if r.usable() && r.add(ctx, s, d, -1) == nil {
		return
	}
	r.owe(s, d, -1)
}

func (r *Redis) add(ctx context.Context, s Subject, d Day, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.time)
	defer cancel()
	err := settleScript.Run(ctx, r.client, []string{redisKey(s, d)}, max(0, r.local.count(s, d)-n), n, int(keptDays/time.Second)).Err()
	if err != nil {
		r.lost(err)
	}
	return err
}

// takeAlone goes on from what is known here.
func (r *Redis) takeAlone(ctx context.Context, s Subject, d Day, quota int) int {
	count := r.local.Take(ctx, s, d, quota)
	if quota == 0 || count <= quota {
		r.owe(s, d, 1)
	}
	return count
}

// usable is false while Redis is left alone.
func (r *Redis) usable() bool {
	return !r.away.Load() || r.now().UnixNano() >= r.retryAt.Load()
}

func (r *Redis) lost(err error) {
	r.Failed.Add(1)
	r.retryAt.Store(r.now().Add(redisPause).UnixNano())
	if !r.away.Swap(true) {
		r.log.Warn("Redis does not answer: quotas are counted here alone", "cause", err)
	}
}

func (r *Redis) found() {
	if r.away.Swap(false) {
		r.log.Info("Redis answers again: quotas are counted together")
		go r.settleAll()
	}
}

// settleAll tells Redis of everybody who was served while it was away.
func (r *Redis) settleAll() {
	r.owedMu.Lock()
	all := r.owed
	r.owed = map[change]int{}
	r.owedMu.Unlock()
	for who, n := range all {
		if n == 0 {
			continue
		}
		if err := r.add(context.Background(), who.subject, who.day, n); err != nil {
			r.owedMu.Lock()
			for who, n := range all {
				r.owed[who] += n
			}
			r.owedMu.Unlock()
			return
		}
		delete(all, who)
	}
}

func (r *Redis) owe(s Subject, d Day, n int) {
	if n == 0 {
		return
	}
	r.owedMu.Lock()
	defer r.owedMu.Unlock()
	r.owed[change{d, s}] += n
}

// settle takes over what is owed of one subject.
func (r *Redis) settle(s Subject, d Day) int {
	r.owedMu.Lock()
	defer r.owedMu.Unlock()
	if len(r.owed) == 0 {
		return 0
	}
	n := r.owed[change{d, s}]
	delete(r.owed, change{d, s})
	return n
}
