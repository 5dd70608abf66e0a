// Package status records minute by minute whether the service is available, and shows the
// last 90 days on a page and as JSON. Start reading at counts.up, which says what
// available means. Neither client errors nor a lack of traffic change the result.
package status

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/internal/core/clock"
	"palmares/internal/core/store"
)

const (
	minutesPerDay = 24 * 60
	// maxStored is the number of minutes in the database. The oldest are deleted
	// by count and not by date: a clock that is a year ahead for a moment must
	// not delete everything. Twice what is shown leaves room for minutes with a
	// wrong date in the future.
	maxStored = 2 * shownDays * minutesPerDay
	// pruneEvery is the number of writes between deletions.
	pruneEvery = 60
	// maxPending is the number of minutes held while the database is unavailable.
	maxPending = 3 * minutesPerDay

	// checkEvery and checkTimeout together are less than the time limit of an
	// operation, so that a timeout caused by an outage is not blamed on the
	// client. checkTimeout is longer than the key lookups that may queue for the
	// same connections.
	checkEvery   = 2 * time.Second
	checkTimeout = 2 * time.Second

	writeEvery   = 5 * time.Second
	writeTimeout = 4 * time.Second
	// maxStep is how far the system clock may be adjusted at once and still be
	// followed immediately, as time synchronization does. Larger jumps are
	// followed after jumpAcceptedAfter: minutes that are recorded before would
	// end up in a wrong year if the clock is soon corrected.
	maxStep           = 10 * time.Second
	jumpAcceptedAfter = 5 * time.Minute
	// writeDelay is how long after the end of a minute all servers have written it.
	writeDelay = writeEvery + writeTimeout + 5*time.Second
)

// Recorder checks regularly that this server can read its database.
type Recorder struct {
	store        *store.Store
	log          *slog.Logger
	clock        *clock.Steady
	checkTimeout time.Duration
	read         func(context.Context) error
	unhealthy    atomic.Bool
	lastFailure  atomic.Pointer[time.Time] // of a check; nil if there was none
	writes       int

	mu      sync.Mutex
	current int            // minute of the last check
	pending map[int]counts // minutes that are not written yet
}

// counts are the checks and the requests for data of a minute.
type counts struct{ checks, failed, requests, errors int }

// up reports whether the service was available: at least 99 in 100 requests for data did
// not fail or, if there were none, 99 in 100 checks of the database. Minutes without a
// row, in which no server was running, are not. isUp is the same rule in SQL.
func (c counts) up() bool {
	if c.requests > 0 {
		return c.errors*100 <= c.requests
	}
	return c.failed*100 <= c.checks
}

// isUp is counts.up for the rows of minutes.
const isUp = "CASE WHEN requests > 0 THEN errors * 100 <= requests ELSE failed * 100 <= checks END"

// maxWait is how long clients wait for a response to start: a server that takes longer for
// a client that has gone has failed, too.
const maxWait = 10 * time.Second

// Observe counts a request for data. One with status 0 has no response, because the client
// has disconnected.
func (r *Recorder) Observe(status int, took time.Duration) {
	one := counts{requests: 1}
	switch {
	case status == 0 && took < maxWait:
		return
	case status == 0, status >= http.StatusInternalServerError:
		one.errors = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(minuteOf(r.clock.Settled()), one)
}

// NewRecorder returns a recorder that writes to the database it checks.
func NewRecorder(s *store.Store, log *slog.Logger) *Recorder {
	return &Recorder{
		store: s, log: log, clock: clock.New(maxStep, jumpAcceptedAfter), checkTimeout: checkTimeout, pending: map[int]counts{},
		// The pool for keys, because clients' queries may occupy all connections
		// for reading, which is not an outage.
		read: func(ctx context.Context) error {
			_, err := s.Keys.Release.Query().Limit(1).IDs(ctx)
			return err
		},
	}
}

// Healthy reports whether the last check succeeded.
func (r *Recorder) Healthy() bool { return !r.unhealthy.Load() }

// DownSince returns when the current outage started, or zero if the last check
// succeeded. Its minutes are not in the database yet, because it is unavailable.
func (r *Recorder) DownSince() time.Time {
	if r.Healthy() {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.current
	for {
		before, known := r.pending[first-1]
		if !known || before.up() {
			return timeOf(first)
		}
		first--
	}
}

// HealthyFor reports whether all checks within a period succeeded. A query that
// an outage blocked may exceed its time limit just after the database is back.
func (r *Recorder) HealthyFor(period time.Duration) bool {
	failure := r.lastFailure.Load()
	return r.Healthy() && (failure == nil || time.Since(*failure) > period)
}

// Run checks the database and writes each minute when it is over. When ctx ends,
// it writes the remaining minutes and returns.
func (r *Recorder) Run(ctx context.Context) {
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { // separate, so that a blocked write does not delay the checks
		clock.Every(ctx, writeEvery, func() { r.write(ctx, false) })
		r.write(context.WithoutCancel(ctx), true)
	})
	r.check(ctx)
	clock.Every(ctx, checkEvery, func() { r.check(ctx) })
}

func (r *Recorder) check(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, r.checkTimeout)
	err := r.read(limited)
	cancel()
	if ctx.Err() != nil {
		return // the server is shutting down
	}
	failed := 0
	if err != nil {
		failed = 1
		now := time.Now() // monotonic, so that a jump of the clock does not matter
		r.lastFailure.Store(&now)
	}
	switch before := r.unhealthy.Swap(err != nil); {
	case err != nil && !before:
		r.log.Error("database check failed", "cause", err)
	case err == nil && before:
		r.log.Info("database check succeeded again")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = minuteOf(r.clock.Settled())
	r.add(r.current, counts{checks: 1, failed: failed})
}

// add adds to the counts of a minute. The caller holds the lock.
func (r *Recorder) add(minute int, more counts) {
	c := r.pending[minute]
	r.pending[minute] = counts{c.checks + more.checks, c.failed + more.failed, c.requests + more.requests, c.errors + more.errors}
}

func minuteOf(t time.Time) int { return int(t.Unix() / 60) }

// write adds pending minutes to those that other servers wrote, without the
// current minute unless all is set. If that fails, they stay pending.
func (r *Recorder) write(ctx context.Context, all bool) {
	r.mu.Lock()
	batch := map[int]counts{}
	for at, c := range r.pending {
		if all || at != r.current {
			batch[at] = c
			delete(r.pending, at)
		}
	}
	r.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.store.Update(ctx, func(tx *ent.Tx) error {
		for _, at := range slices.Sorted(maps.Keys(batch)) { // a fixed order avoids deadlocks between servers
			c := batch[at]
			err := tx.Minute.Create().SetID(at).SetChecks(c.checks).SetFailed(c.failed).SetRequests(c.requests).SetErrors(c.errors).
				OnConflict(
					entsql.ConflictColumns(minute.FieldID),
					entsql.ResolveWith(func(u *entsql.UpdateSet) {
						u.Add(minute.FieldChecks, c.checks).Add(minute.FieldFailed, c.failed)
						u.Add(minute.FieldRequests, c.requests).Add(minute.FieldErrors, c.errors)
					}),
				).Exec(ctx)
			if err != nil {
				return err
			}
		}
		if r.writes%pruneEvery != 0 {
			return nil
		}
		return prune(ctx, tx, maxStored)
	})
	if err == nil {
		r.writes++
		return
	}
	r.log.Warn("writing status minutes failed", "cause", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, c := range batch {
		r.add(at, c)
	}
	oldest := slices.Sorted(maps.Keys(r.pending))
	for _, at := range oldest[:max(0, len(oldest)-maxPending)] {
		delete(r.pending, at)
	}
}

// prune deletes all but the newest minutes.
func prune(ctx context.Context, tx *ent.Tx, keep int) error {
	tooOld, err := tx.Minute.Query().Order(minute.ByID(entsql.OrderDesc())).Offset(keep).Limit(1).IDs(ctx)
	if err != nil || len(tooOld) == 0 {
		return err
	}
	_, err = tx.Minute.Delete().Where(minute.IDLTE(tooOld[0])).Exec(ctx)
	return err
}
