// Package availability records, minute by minute, whether the service could
// read its database, and shows the last days of it. Requests do not enter here:
// neither what callers do nor that there are none changes what is shown.
package status

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/internal/core/store"
)

const (
	// shownDays is how far back the page goes.
	shownDays   = 90
	minutesADay = 24 * 60
	// keptMinutes is how many are stored. The oldest are deleted by their
	// number and never by the clock: one that is a year ahead for a moment would
	// delete everything. Twice what is shown leaves room for minutes of a wrong
	// future.
	keptMinutes = 2 * shownDays * minutesADay
	// pruneEvery is how many writes there are for each look at what is too old.
	pruneEvery = 60
	// mostWaiting is how many minutes wait for a database that is unavailable.
	mostWaiting = 3 * minutesADay

	// A database that is lost is noticed within probeEvery and probeTime
	// together, which is less than an operation may take: an operation that
	// times out because of it is not blamed on its caller. probeTime is more
	// than all look-ups of keys take that may queue for the same connections.
	probeEvery = 2 * time.Second
	probeTime  = 2 * time.Second

	// A minute that is over is written the next time, which takes a moment.
	writeEvery = 5 * time.Second
	writeTime  = 4 * time.Second
	writtenBy  = writeEvery + writeTime + 5*time.Second
)

// Recorder checks regularly that this server can read its database.
type Recorder struct {
	store     *store.Store
	log       *slog.Logger
	clock     *steadyClock
	probeTime time.Duration
	read      func(context.Context) error
	pending   chan error // the result of a read that is not over
	lost      atomic.Bool
	writes    int

	mu      sync.Mutex
	current int             // the minute of the last check
	minutes map[int]*counts // that are not written yet
}

// counts are the checks of a minute. The columns for them are named after the
// requests that earlier versions counted.
type counts struct{ checks, failed int }

// NewRecorder records minutes in a database.
func NewRecorder(s *store.Store, log *slog.Logger) *Recorder {
	return &Recorder{
		store: s, log: log, clock: newSteadyClock(), probeTime: probeTime, minutes: map[int]*counts{},
		// The pool of the keys: readers' connections may all be taken by
		// callers' long queries, which is no outage.
		read: func(ctx context.Context) error {
			_, err := s.Keys.Release.Query().Limit(1).IDs(ctx)
			return err
		},
	}
}

// Healthy reports whether the last check succeeded.
func (r *Recorder) Healthy() bool { return !r.lost.Load() }

// Run checks the database and writes each minute when it is over, until ctx
// ends; then it writes what is left.
func (r *Recorder) Run(ctx context.Context) {
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { r.keepWriting(ctx) }) // apart: a frozen database must not hold up the checks
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		r.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Recorder) keepWriting(ctx context.Context) {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.write(context.WithoutCancel(ctx), true)
			return
		case <-ticker.C:
			r.write(ctx, false)
		}
	}
}

// check probes the database and counts the result.
func (r *Recorder) check(ctx context.Context) {
	err := r.probe(ctx)
	if ctx.Err() != nil {
		return // the server is shutting down
	}
	if was := r.lost.Swap(err != nil); was != (err != nil) {
		if err != nil {
			r.log.Error("database check failed", "cause", store.Explain(err))
		} else {
			r.log.Info("database check succeeded again")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = minuteOf(r.clock.now())
	failed := 0
	if err != nil {
		failed = 1
	}
	r.add(r.current, counts{1, failed})
}

var errNoResponse = errors.New("the database does not respond")

// probe reads from the database within probeTime. A read from a frozen
// database ignores its deadline and occupies a connection: until it is over,
// there is no other one.
func (r *Recorder) probe(ctx context.Context) error {
	patience := time.NewTimer(r.probeTime)
	defer patience.Stop()
	for {
		late := r.pending != nil
		if !late {
			r.pending = make(chan error, 1)
			go func(done chan<- error) {
				ctx, cancel := context.WithTimeout(ctx, r.probeTime)
				defer cancel()
				done <- r.read(ctx)
			}(r.pending)
		}
		select {
		case err := <-r.pending:
			r.pending = nil
			if !late {
				return err
			}
		case <-patience.C:
			return errNoResponse
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add counts checks of a minute, for callers that hold the lock.
func (r *Recorder) add(minute int, more counts) {
	c := r.minutes[minute]
	if c == nil {
		c = &counts{}
		r.minutes[minute] = c
	}
	c.checks += more.checks
	c.failed += more.failed
}

func minuteOf(t time.Time) int { return int(t.Unix() / 60) }

// write adds the minutes that are over, or all, to what other servers wrote.
// What cannot be written now is written another time.
func (r *Recorder) write(ctx context.Context, all bool) {
	r.mu.Lock()
	over := map[int]*counts{}
	for at, c := range r.minutes {
		if all || at != r.current {
			over[at] = c
			delete(r.minutes, at)
		}
	}
	r.mu.Unlock()
	if len(over) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err := r.store.Update(ctx, func(tx *ent.Tx) error {
		for _, at := range slices.Sorted(maps.Keys(over)) { // in one order, or servers would deadlock
			c := over[at]
			err := tx.Minute.Create().SetID(at).SetRequests(c.checks).SetFailed(c.failed).
				OnConflict(entsql.ConflictColumns(minute.FieldID)).
				Update(func(u *ent.MinuteUpsert) { u.AddRequests(c.checks).AddFailed(c.failed) }).Exec(ctx)
			if err != nil {
				return err
			}
		}
		if r.writes%pruneEvery != 0 {
			return nil
		}
		return prune(ctx, tx, keptMinutes)
	})
	if err == nil {
		r.writes++
		return
	}
	r.log.Warn("writing minutes failed", "cause", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, c := range over {
		r.add(at, *c)
	}
	oldest := slices.Sorted(maps.Keys(r.minutes))
	for _, at := range oldest[:max(0, len(oldest)-mostWaiting)] {
		delete(r.minutes, at)
	}
}

// prune deletes all minutes but the newest.
func prune(ctx context.Context, tx *ent.Tx, kept int) error {
	tooOld, err := tx.Minute.Query().Order(minute.ByID(entsql.OrderDesc())).Offset(kept).Limit(1).IDs(ctx)
	if err != nil || len(tooOld) == 0 {
		return err
	}
	_, err = tx.Minute.Delete().Where(minute.IDLTE(tooOld[0])).Exec(ctx)
	return err
}
