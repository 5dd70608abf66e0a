package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// redisTime is what Redis may add to a request.
	redisTime = 45 * time.Millisecond
	// probeEvery is how often a Redis that is away is tried.
	probeEvery = 500 * time.Millisecond
	keptDays   = 2 * dayLength
	// Requests wait for Redis together, many in one message on a connection
	// that is always there: a burst must not look as if Redis were slow.
	askers      = 2
	mostAtOnce  = 256
	queueLength = 4096
	// slack is the count up to which it is not worth knowing whether Redis has
	// lost it.
	slack = 20
)

// Redis counts for several servers. While it is slow or gone, each goes on
// from what it knew, and tells Redis afterwards what it granted.
type Redis struct {
	client *redis.Client
	local  *Counter // what is known here
	log    *slog.Logger
	time   time.Duration // that a request waits for it
	queue  chan *waiter
	ended  chan struct{}

	Failed atomic.Int64 // requests that were counted without Redis

	mu     sync.Mutex
	away   bool
	owed   map[change]int // what was counted meanwhile
	births births
}

// waiter is one request that waits for its count.
type waiter struct {
	change
	quota  int
	counts chan taken // closed if Redis did not say

	// Under the store's lock.
	unsent bool // Redis never hears of it
	alone  bool // it was granted here
}

// NewRedis counts in the Redis at an address.
func NewRedis(address string, local *Counter, log *slog.Logger) (*Redis, error) {
	options, err := redisOptions(address)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = time.Second, time.Second, time.Second
	options.MaxRetries = -1 // what may have been counted is not sent again
	options.MinIdleConns = askers
	redis.SetLogger(silent{}) // its lines would name the address
	r := &Redis{
		client: redis.NewClient(options), local: local, log: log, time: redisTime,
		queue: make(chan *waiter, queueLength), ended: make(chan struct{}), owed: map[change]int{}, births: births{},
	}
	for range askers {
		go r.ask()
	}
	go r.probe()
	return r, nil
}

// CheckRedis tells whether an address of a Redis can be used at all.
func CheckRedis(address string) error {
	_, err := redisOptions(address)
	return err
}

func redisOptions(address string) (*redis.Options, error) {
	options, err := redis.ParseURL(address)
	if err != nil { // the library's own words repeat it, password and all
		return nil, errors.New("is not an address of the form redis://user:password@host:port/number")
	}
	return options, nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections. Nothing may be counted from then on.
func (r *Redis) Close() error {
	close(r.ended)
	return r.client.Close()
}

func redisKey(c change) string { return fmt.Sprintf("palmares:quota:%s:%x", c.day, uint64(c.subject)) }

// Take implements Store.
func (r *Redis) Take(ctx context.Context, s Subject, d Day, quota int) int {
	who := change{d, s}
	if count, done := r.takeAlone(ctx, who, quota); done {
		return count
	}
	t := &waiter{change: who, quota: quota, counts: make(chan taken, 1)}
	patience := time.NewTimer(r.time)
	defer patience.Stop()
	select {
	case r.queue <- t:
	default: // far more wait than can be served in time: Redis never hears of this one
		r.lost(errors.New("too many requests wait for it"))
		count, _ := r.takeAlone(ctx, who, quota)
		return count
	}
	select {
	case counts, heard := <-t.counts:
		if heard {
			return counts.told()
		}
	case <-patience.C:
	}
	return r.takeUnheard(ctx, t)
}

// takeUnheard decides here on a request that Redis did not answer in time.
// What was sent it counts, or will when it goes on: it is not told again. If it
// does not go on, what is known here is what it begins from.
func (r *Redis) takeUnheard(ctx context.Context, t *waiter) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case counts, heard := <-t.counts: // just in time
		if heard {
			return counts.told()
		}
	default:
	}
	r.Failed.Add(1)
	count := r.local.Take(ctx, t.subject, t.day, t.quota)
	t.alone = t.quota == 0 || count <= t.quota
	if t.alone && t.unsent {
		r.owe(t.change)
	}
	return count
}

// turnAway tells whether Redis is away, so that those who still wait are not
// sent: on a new connection, nothing would reach it before they are gone.
func (r *Redis) turnAway(waiting []*waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		return false
	}
	for _, t := range waiting {
		t.unsent = true
		if t.alone { // it is gone already
			r.owe(t.change)
		}
		close(t.counts)
	}
	return true
}

// owe has Redis told of a request when it is back, which the probe sees to.
func (r *Redis) owe(who change) {
	r.owed[who]++
	r.away = true
}

// takeAlone counts while Redis is away; false while it is not.
func (r *Redis) takeAlone(ctx context.Context, who change, quota int) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		return 0, false
	}
	r.Failed.Add(1)
	count := r.local.Take(ctx, who.subject, who.day, quota)
	if quota == 0 || count <= quota {
		r.owed[who]++
	}
	return count, true
}

// GiveBack implements Store.
func (r *Redis) GiveBack(ctx context.Context, s Subject, d Day) {
	who := change{d, s}
	r.local.GiveBack(ctx, s, d)
	r.mu.Lock()
	if r.away {
		r.owed[who]--
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.time)
	defer cancel()
	if err := r.settle(ctx, who, -1, 0); err != nil {
		r.lost(err) // it may be given back yet; twice it is not
	}
}

func (r *Redis) settle(ctx context.Context, who change, n, atLeast int) error {
	return settleScript.Run(ctx, r.client, []string{redisKey(who)}, n, atLeast, keptSeconds, newBirth()).Err()
}

// ask takes what waits and sends it together.
func (r *Redis) ask() {
	for {
		var waiting []*waiter
		select {
		case <-r.ended:
			return
		case first := <-r.queue:
			waiting = append(waiting, first)
		}
		for more := true; more && len(waiting) < mostAtOnce; {
			select {
			case next := <-r.queue:
				waiting = append(waiting, next)
			default:
				more = false
			}
		}
		if !r.turnAway(waiting) {
			r.send(waiting)
		}
	}
}

func (r *Redis) send(waiting []*waiter) {
	ctx, cancel := context.WithTimeout(context.Background(), r.time)
	defer cancel()
	answers := make([]*redis.Cmd, len(waiting))
	_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, t := range waiting {
			answers[i] = takeScript.Eval(ctx, pipe, []string{redisKey(t.change)}, t.quota, r.knownBut(t.change), keptSeconds, newBirth())
		}
		return nil
	})
	for i, t := range waiting {
		counts, failed := takenOf(answers[i])
		if failed != nil {
			close(t.counts)
			err = failed
			continue
		}
		if lost := r.hear(ctx, t, counts); lost > 0 {
			_ = r.settle(ctx, t.change, 0, lost)
		}
	}
	if err != nil {
		r.lost(err)
	}
}

// hear takes an answer over. Who has not waited for it was counted here
// meanwhile, which would be once more. It returns the count that Redis has lost
// and another server knew less of, if so.
func (r *Redis) hear(ctx context.Context, t *waiter, counts taken) (lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if counts.granted && t.alone {
		r.local.GiveBack(ctx, t.subject, t.day)
	}
	known := r.local.observe(t.subject, t.day, counts.count, counts.granted)
	t.counts <- counts
	if anew := r.births.changed(t.change, counts); anew && counts.count < known {
		return known
	}
	if counts.count < known-slack { // other servers gave back
		r.local.restore(t.subject, t.day, counts.count-known)
	}
	return 0
}

// Away tells whether quotas are counted here alone for now.
func (r *Redis) Away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

func (r *Redis) lost(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		r.log.Warn("Redis does not answer: quotas are counted here alone", "cause", err)
	}
	r.away = true
}

// probe tries a Redis that is away, with a question that counts nothing, and
// tells it what it missed before anybody asks it again.
func (r *Redis) probe() {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.ended:
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		away := r.away
		r.mu.Unlock()
		if away && r.answers() {
			r.catchUp()
		}
	}
}

func (r *Redis) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), r.time)
	defer cancel()
	return r.client.Ping(ctx).Err() == nil
}

// knownBut is what is known here, but for what Redis is yet to be told. It is
// right where Redis begins anew, and never more than is right otherwise.
func (r *Redis) knownBut(who change) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.local.count(who.subject, who.day)-r.owed[who])
}

// catchUp settles what is owed until nothing is, and then lets Redis count
// again.
func (r *Redis) catchUp() {
	for {
		r.mu.Lock()
		owed := r.owed
		r.owed = map[change]int{}
		if len(owed) == 0 {
			r.away = false
			r.mu.Unlock()
			r.log.Info("Redis answers again: quotas are counted together")
			return
		}
		r.mu.Unlock()
		for who, n := range owed {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			err := r.settle(ctx, who, n, r.knownBut(who))
			cancel()
			if err == nil {
				delete(owed, who)
				continue
			}
			delete(owed, who) // it may have been counted: rather not twice
			r.mu.Lock()
			for who, n := range owed {
				r.owed[who] += n
			}
			r.mu.Unlock()
			return
		}
	}
}
