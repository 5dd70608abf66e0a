package webhook

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/predicate"
	"palmares/internal/catalog/journal"
)

// timing holds timeouts and intervals. Tests shorten them.
type timing struct{ attempt, prompt, work, record, locked, stop, poll, lease time.Duration }

var defaultTiming = timing{
	attempt: 15 * time.Second,       // timeout of a request, including the response body
	prompt:  50 * time.Millisecond,  // how long the next event waits for the response to the previous one
	work:    15 * time.Second,       // how long an endpoint is served before others get its worker
	record:  20 * time.Second,       // how long outcomes may take to record after shutdown starts
	locked:  15 * time.Minute,       // how long outcomes may take to record while the database is locked
	stop:    10 * time.Second,       // how long Run waits for its workers
	poll:    500 * time.Millisecond, // between checks for due endpoints
	lease:   5 * time.Second,        // how long a lease is valid unless it is renewed
}

// defaultWorkers limits how many endpoints a server delivers to at once. There can be
// many, because workers mostly wait for receivers. One account can occupy at most
// MaxEndpoints of them.
const defaultWorkers = 25 * MaxEndpoints

// scheduler leases endpoints for this server and delivers to them.
type scheduler struct {
	*Webhooks
	server  string // name in leases
	running sync.WaitGroup
	mu      sync.Mutex
	workers map[int]*worker // by endpoint

	polled      time.Time // when the last poll reached the database
	steadySince time.Time // since when no poll has been missed
	renewed     time.Time // when leases were last renewed
}

// worker delivers to one endpoint.
type worker struct {
	failing bool // the endpoint's last attempt failed
	cancel  context.CancelFunc
}

func (w *Webhooks) newScheduler() *scheduler {
	return &scheduler{Webhooks: w, server: rand.Text(), workers: map[int]*worker{}}
}

// Run delivers events until ctx ends. Any number of servers can run at the same
// time: each leases the endpoints that it works on and renews these leases
// while it works. The leases of a server that dies expire, and another server
// takes over. A server that only appeared dead may send an event that the other
// one sends too; both requests have the same webhook-id.
func (w *Webhooks) Run(ctx context.Context) {
	s := w.newScheduler()
	tick := time.Tick(w.timing.poll)
	for healthy := true; ctx.Err() == nil; {
		err := s.poll(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			w.Log.Warn("polling for due webhooks failed", "cause", err)
		}
		healthy = err == nil
		select {
		case <-ctx.Done():
		case <-tick:
		}
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.running.Wait() }()
	select {
	case <-stopped:
	case <-time.After(w.timing.stop):
	}
	w.transport.CloseIdleConnections()
}

// poll leases due endpoints, starts a worker for each, and renews the leases of
// running workers.
func (s *scheduler) poll(ctx context.Context) error {
	if exist, err := s.Store.Read.Endpoint.Query().Exist(ctx); err != nil || !exist {
		return err
	}
	started := time.Now()
	offset, err := s.Store.ClockOffset(ctx, started)
	if err != nil {
		return err
	}
	if started.Sub(s.polled) > s.timing.poll+s.timing.lease/4 {
		s.steadySince = started
	}
	s.polled = started
	now := started.Add(offset).UTC() // the clocks of servers may differ
	due, err := s.due(ctx, now)
	if err != nil {
		return err
	}
	chosen, working := s.choose(due)
	if len(chosen) == 0 && (len(working) == 0 || started.Sub(s.renewed) < s.timing.lease/3) {
		return nil
	}
	held, err := s.lease(ctx, chosen, working, now)
	if err != nil {
		return err
	}
	s.renewed = started
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, worker := range s.workers {
		if !slices.Contains(held, id) {
			worker.cancel()
		}
	}
	for _, e := range chosen {
		if slices.Contains(held, e.ID) {
			s.start(ctx, e)
		}
	}
	return nil
}

// due returns the endpoints that have something to send and can be leased.
func (s *scheduler) due(ctx context.Context, now time.Time) ([]*ent.Endpoint, error) {
	db := s.Store.Read
	newest, err := journal.Newest(ctx, db.JournalEntry)
	if err != nil {
		return nil, err
	}
	// A position after the newest event means that a backup was restored. It has
	// to be corrected before new events get these numbers.
	behind := endpoint.And(endpoint.StateEQ(endpoint.StateActive), endpoint.PositionNEQ(newest), endpoint.Or(
		endpoint.FailuresLT(probeAfter), endpoint.Not(endpoint.HasDeliveries()),
		endpoint.HasAccountWith(account.PlanNEQ(account.PlanPro)))) // skips events
	retry := endpoint.HasDeliveriesWith(delivery.NextAtLTE(s.now().UTC()))
	return db.Endpoint.Query().
		Where(endpoint.Or(behind, retry), s.acceptsEvents(), s.available(now)).All(ctx)
}

// acceptsEvents matches endpoints whose receiver has not requested to wait.
func (w *Webhooks) acceptsEvents() predicate.Endpoint {
	return endpoint.Or(endpoint.NotBeforeIsNil(), endpoint.NotBeforeLTE(w.now().UTC()))
}

// available matches endpoints that are not leased. Expired leases count only if
// this server has been polling without interruption: after a database outage,
// the servers that are still working must have time to renew theirs.
func (s *scheduler) available(now time.Time) predicate.Endpoint {
	if time.Since(s.steadySince) < s.timing.lease {
		return endpoint.LeasedBy("")
	}
	return endpoint.Or(endpoint.LeasedBy(""), endpoint.LeasedUntilLT(now))
}

// choose returns as many due endpoints as there are free workers, starting with
// those that have waited longest, and the endpoints that workers are delivering
// to. Failing endpoints have their own limit, so that unresponsive receivers do
// not delay the others.
func (s *scheduler) choose(due []*ent.Endpoint) (chosen []*ent.Endpoint, working []int) {
	slices.SortFunc(due, func(a, b *ent.Endpoint) int { return a.LeasedUntil.Compare(b.LeasedUntil) })
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := map[bool]int{} // by whether the endpoint is failing
	for id, worker := range s.workers {
		busy[worker.failing]++
		working = append(working, id)
	}
	for _, e := range due {
		if failing := e.Failures > 0; s.workers[e.ID] == nil && busy[failing] < s.maxWorkers {
			busy[failing]++
			chosen = append(chosen, e)
		}
	}
	return chosen, working
}

// lease leases the chosen endpoints, renews the leases of the working ones, and
// returns the IDs of all endpoints that this server has leased.
func (s *scheduler) lease(ctx context.Context, chosen []*ent.Endpoint, working []int, now time.Time) (held []int, err error) {
	// On PostgreSQL, this pool detects within seconds that a connection hangs.
	db := s.Store.Read
	if s.Store.Dialect() == dialect.SQLite {
		db = s.Store.Write
	}
	wanted := make([]int, len(chosen))
	for i, e := range chosen {
		wanted[i] = e.ID
	}
	mine := endpoint.LeasedBy(s.server)
	leasable := endpoint.Or(endpoint.And(endpoint.IDIn(working...), mine), endpoint.And(endpoint.IDIn(wanted...), s.available(now)))
	err = db.Endpoint.Update().Where(skipLocked(leasable)).SetLeasedBy(s.server).SetLeasedUntil(now.Add(s.timing.lease)).Exec(ctx)
	if err != nil {
		return nil, err
	}
	return db.Endpoint.Query().Where(mine, endpoint.LeasedUntilGT(now)).IDs(ctx)
}

// skipLocked matches the same rows as match, except rows that another transaction has
// locked: a server that hangs in a transaction must not block the others.
func skipLocked(match predicate.Endpoint) predicate.Endpoint {
	return func(update *sql.Selector) {
		rows := sql.Dialect(update.Dialect()).Select(endpoint.FieldID).From(sql.Table(endpoint.Table))
		match(rows)
		if update.Dialect() == dialect.Postgres {
			rows.ForUpdate(sql.WithLockAction(sql.SkipLocked))
		}
		update.Where(sql.In(update.C(endpoint.FieldID), rows))
	}
}

// start runs a worker for a leased endpoint. The caller holds the mutex.
func (s *scheduler) start(ctx context.Context, e *ent.Endpoint) {
	ctx, cancel := context.WithCancel(ctx)
	s.workers[e.ID] = &worker{failing: e.Failures > 0, cancel: cancel}
	s.running.Go(func() {
		defer cancel()
		s.work(ctx, e.ID)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.workers, e.ID)
	})
}

// work delivers to an endpoint until nothing is due or its time is up, and then
// releases the lease. After an error it lets the lease expire, which delays the next
// attempt.
func (s *scheduler) work(ctx context.Context, id int) {
	mayStart := within(s.timing.work)
	for more := true; more; {
		var err error
		more, err = s.round(ctx, mayStart, id)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("delivering webhooks failed", "endpoint", id, "cause", err)
			return
		}
		more = more && err == nil && mayStart()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timing.stop)
	defer cancel()
	_ = s.Store.Write.Endpoint.Update().Where(endpoint.ID(id), endpoint.LeasedBy(s.server)).SetLeasedBy("").Exec(ctx)
}

// within returns a function that returns true until limit has passed since its first
// call. The time starts with the first event that is sent.
func within(limit time.Duration) func() bool {
	end := sync.OnceValue(func() time.Time { return time.Now().Add(limit) })
	return func() bool { return time.Now().Before(end()) }
}
