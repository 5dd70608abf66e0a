package webhook

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"palmares/ent/endpoint"
	"palmares/internal/store"
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
	workers      = 50
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
}

// Work is what River calls.
func (p *publishedWorker) Work(ctx context.Context, _ *river.Job[published]) error {
	ids, err := p.hooks.Store.Current().Endpoint.Query().Where(endpoint.StateEQ(endpoint.StateActive)).IDs(ctx)
	if err != nil {
		return err
	}
	return wakeUp(ctx, river.ClientFromContext[*sql.Tx](ctx), ids)
}

// wakeWorker sends what there is.
type wakeWorker struct {
	river.WorkerDefaults[wake]
	hooks *Webhooks
}

// Work is what River calls. What is left when its time is over is found by the
// next look.
func (k *wakeWorker) Work(ctx context.Context, job *river.Job[wake]) error {
	beginning, cancel := context.WithTimeout(ctx, k.hooks.times.work)
	defer cancel()
	for beginning.Err() == nil {
		more, err := k.hooks.round(ctx, beginning, job.Args.Endpoint)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func wakeUp(ctx context.Context, client *river.Client[*sql.Tx], endpoints []int) error {
	if len(endpoints) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(endpoints))
	for i, id := range endpoints {
		jobs[i].Args = wake{id}
	}
	_, err := client.InsertMany(ctx, jobs)
	return err
}

func (w *Webhooks) newRiver() (*river.Client[*sql.Tx], error) {
	all := river.NewWorkers()
	river.AddWorker(all, &publishedWorker{hooks: w})
	river.AddWorker(all, &wakeWorker{hooks: w})
	return river.NewClient(w.Store.JobDriver(), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:                     all,
		Logger:                      slog.New(atLeast{w.Log.Handler(), slog.LevelWarn}),
		RetryPolicy:                 soon{},
		MaxAttempts:                 1_000, // it is never given up: what is due stays due
		JobTimeout:                  w.times.job(),
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
