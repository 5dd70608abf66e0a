package webhook

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/store"
)

// published says that a release is out. It is written in the release's own
// transaction; who is to be told is worked out afterwards.
type published struct {
	Release int `json:"release"`
}

// Kind names the job to River.
func (published) Kind() string { return "release.published" }

// wake says that an endpoint may have something to be sent. What that is, its
// position and deliveries tell.
type wake struct {
	Endpoint int `json:"endpoint"`
}

// Kind names the job to River.
func (wake) Kind() string { return "webhook.wake" }

// InsertOpts let an endpoint be at work once at a time.
func (wake) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// Announce is what an import writes with its release.
func Announce(s *store.Store) func(ctx context.Context, tx *sql.Tx, release int) error {
	return func(ctx context.Context, tx *sql.Tx, release int) error {
		client, err := river.NewClient(s.JobDriver(), &river.Config{})
		if err != nil {
			return err
		}
		_, err = client.InsertTx(ctx, tx, published{release}, nil)
		return err
	}
}

const (
	// workers of a queue mostly wait for receivers, so there can be many. No
	// account has more than a few of them: it has no more endpoints.
	workers = 25 * MostEndpoints
	// failing is the queue of endpoints whose last event did not arrive. Those
	// that are silent must not keep the others waiting.
	failing      = "failing"
	completeKept = time.Hour
)

// soon is when a job is worked again that our database failed.
type soon struct{}

// NextRetry is what River asks.
func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(5 * time.Second) }

// publishedWorker wakes everybody up.
type publishedWorker struct {
	river.WorkerDefaults[published]
	hooks *Webhooks
	ready <-chan struct{} // see newRiver
}

// Work is what River calls.
func (p *publishedWorker) Work(ctx context.Context, _ *river.Job[published]) error {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	all, err := p.hooks.Store.Current().Endpoint.Query().Where(endpoint.StateEQ(endpoint.StateActive), p.hooks.notLeftAlone()).All(ctx)
	if err != nil {
		return err
	}
	return wakeUp(ctx, river.ClientFromContext[*sql.Tx](ctx), all)
}

// wakeWorker sends what there is.
type wakeWorker struct {
	river.WorkerDefaults[wake]
	hooks *Webhooks
}

// Work is what River calls. What is left when its time is over is found by the
// next look. One that still writes down what it sent has River think that it
// is stuck: then nobody begins anew beside it.
func (k *wakeWorker) Work(ctx context.Context, job *river.Job[wake]) error {
	if _, atWork := k.hooks.busy.LoadOrStore(job.Args.Endpoint, true); atWork {
		return nil
	}
	defer k.hooks.busy.Delete(job.Args.Endpoint)
	mayBegin := within(k.hooks.times.work)
	for {
		more, err := k.hooks.round(ctx, mayBegin, job.Args.Endpoint)
		switch {
		case ctx.Err() != nil: // this server ends: another finds the rest, and is not to wait for our retry
			return nil
		case err != nil || !more || !mayBegin():
			return err
		}
	}
}

// within says yes for some time from when it is asked first: reading the first
// event does not count.
func within(limit time.Duration) func() bool {
	var end time.Time
	return func() bool {
		if end.IsZero() {
			end = time.Now().Add(limit)
		}
		return time.Now().Before(end)
	}
}

func wakeUp(ctx context.Context, client *river.Client[*sql.Tx], endpoints []*ent.Endpoint) error {
	if len(endpoints) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(endpoints))
	for i, e := range endpoints {
		jobs[i].Args = wake{e.ID}
		if e.Failures > 0 {
			jobs[i].InsertOpts = &river.InsertOpts{Queue: failing}
		}
	}
	_, err := client.InsertMany(ctx, jobs)
	return err
}

// newRiver works when ready is closed, which is after it was started: a job
// that inserts others touches queues that River may still be starting.
func (w *Webhooks) newRiver(ready <-chan struct{}) (*river.Client[*sql.Tx], error) {
	all := river.NewWorkers()
	river.AddWorker(all, &publishedWorker{hooks: w, ready: ready})
	river.AddWorker(all, &wakeWorker{hooks: w})
	return river.NewClient(w.Store.JobDriver(), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.workers}, failing: {MaxWorkers: w.workers}},
		Workers:                     all,
		Logger:                      slog.New(atLeast{w.Log.Handler(), slog.LevelWarn}),
		RetryPolicy:                 soon{},
		MaxAttempts:                 1_000, // it is never given up: what is due stays due
		JobTimeout:                  -1,    // each step has its own
		RescueStuckJobsAfter:        w.times.stuck(),
		FetchPollInterval:           w.times.poll,
		CompletedJobRetentionPeriod: completeKept,
		PollOnly:                    true,
	})
}

// atLeast keeps River's daily business out of our log.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled is what slog asks.
func (a atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= a.level && a.Handler.Enabled(ctx, level)
}
