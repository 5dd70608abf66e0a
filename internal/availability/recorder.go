// Package availability keeps, minute by minute, whether the service answered,
// and shows the last days of it. What a request was about does not enter here.
package availability

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/internal/middleware"
	"palmares/internal/store"
)

const (
	// shownDays is how far back the page goes; what is older is forgotten a
	// day later.
	shownDays = 90
	keptDays  = shownDays + 1
	// mostWaiting is how many minutes wait for a database that is away.
	mostWaiting = 3 * 24 * 60
	minutesADay = 24 * 60
	// A minute that is over is written at the next look, which takes a moment.
	lookEvery = 5 * time.Second
	writeTime = 4 * time.Second
	writtenBy = lookEvery + writeTime + 5*time.Second
)

// Recorder counts the requests of this server.
type Recorder struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	minutes map[int]*counts // not written down yet
}

type counts struct{ requests, failed int }

// NewRecorder keeps minutes in a database.
func NewRecorder(s *store.Store, log *slog.Logger) *Recorder {
	return &Recorder{store: s, log: log, now: time.Now, minutes: map[int]*counts{}}
}

// Observe counts an answer.
func (r *Recorder) Observe(o middleware.Observed) {
	if !counted(o.Request.URL.Path) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.at(minuteOf(r.now()))
	c.requests++
	if o.Status >= http.StatusInternalServerError {
		c.failed++
	}
}

// counted are requests that somebody wants answered: not the probes of who
// runs the server.
func counted(path string) bool {
	return path != "/healthz" && path != "/readyz" && !strings.HasPrefix(path, "/assets/")
}

// at is the counts of a minute, for who holds the lock.
func (r *Recorder) at(minute int) *counts {
	c := r.minutes[minute]
	if c == nil {
		c = &counts{}
		r.minutes[minute] = c
	}
	return c
}

func minuteOf(t time.Time) int { return int(t.Unix() / 60) }

// Run writes down each minute when it is over, until ctx ends, and then what
// is left.
func (r *Recorder) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		r.mu.Lock()
		now := minuteOf(r.now())
		r.at(now) // it is up, whether or not anybody asks
		r.mu.Unlock()
		r.write(ctx, now)
		select {
		case <-ctx.Done():
			r.write(context.WithoutCancel(ctx), now+2)
			return
		case <-ticker.C:
		}
	}
}

// write adds the minutes before one to what other servers wrote. What cannot
// be written now is written another time.
func (r *Recorder) write(ctx context.Context, before int) {
	r.mu.Lock()
	over := map[int]*counts{}
	for at, c := range r.minutes {
		if at < before {
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
		for _, at := range slices.Sorted(maps.Keys(over)) { // in one order, or servers would wait for each other crosswise
			c := over[at]
			err := tx.Minute.Create().SetID(at).SetRequests(c.requests).SetFailed(c.failed).
				OnConflict(entsql.ConflictColumns(minute.FieldID)).
				Update(func(u *ent.MinuteUpsert) { u.AddRequests(c.requests).AddFailed(c.failed) }).Exec(ctx)
			if err != nil {
				return err
			}
		}
		_, err := tx.Minute.Delete().Where(minute.IDLT(before - keptDays*minutesADay)).Exec(ctx)
		return err
	})
	if err == nil {
		return
	}
	r.log.Warn("minutes are not written down yet", "cause", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, c := range over {
		if at < before-mostWaiting {
			continue
		}
		again := r.at(at)
		again.requests += c.requests
		again.failed += c.failed
	}
}
