package store_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// delay delays the result of the first query that is made with its context.
type delay struct {
	armed           atomic.Bool
	queried, resume chan struct{}
}

type delayKey struct{}

func newDelay() *delay { return &delay{queried: make(chan struct{}), resume: make(chan struct{})} }

func (d *delay) context() context.Context {
	d.armed.Store(true)
	return context.WithValue(context.Background(), delayKey{}, true)
}

func (d *delay) hook(ctx context.Context, _, _ string) func(error) {
	return func(error) {
		if ctx.Value(delayKey{}) != nil && d.armed.CompareAndSwap(true, false) {
			close(d.queried)
			<-d.resume
		}
	}
}

// withDelay runs a test on each database with a writer that has published release 1,
// and a reader whose queries can be delayed.
func withDelay(t *testing.T, test func(t *testing.T, writer, reader *store.Store, d *delay)) {
	t.Helper()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		d := newDelay()
		writer := testkit.Open(t, cfg)
		release(t, writer, 1)
		cfg.OnStatement, cfg.PollEvery = d.hook, time.Hour // only the test reads
		test(t, writer, open(t, cfg), d)
	})
}

// readSees returns the release of a read, and checks that its statements see it.
func readSees(t *testing.T, s *store.Store) (given int) {
	t.Helper()
	seen := 0
	if err := s.WithRelease(t.Context(), func(ctx context.Context, release *ent.Release) error {
		newest, err := store.NewestRelease(ctx, s.Read.Release)
		given, seen = release.ID, newest.ID // of the last attempt
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if given != seen {
		t.Errorf("got release %d from a statement, want release %d of its read", seen, given)
	}
	return given
}

// A read that starts before another one and ends after it does not make its
// older release the newest again.
func TestSlowReadDoesNotRevertRelease(t *testing.T) {
	withDelay(t, func(t *testing.T, writer, reader *store.Store, d *delay) {
		ctx, stop := context.WithCancel(t.Context())
		seen, ended := make(chan int, 10), make(chan struct{})
		go func() {
			defer close(ended)
			reader.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool { seen <- r.ID; return true })
		}()
		defer func() { stop(); <-ended }()
		<-seen
		read := make(chan error, 1)
		go func() {
			read <- reader.Snapshot(d.context(), 0, func(context.Context, *ent.Release) error { return nil })
		}()
		<-d.queried
		release(t, writer, 2)
		if got := readSees(t, reader); got != 2 {
			t.Errorf("got release %d, want 2", got)
		}
		close(d.resume)
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		if got := reader.Newest(); got.ID != 2 {
			t.Errorf("got release %d as the newest, want 2", got.ID)
		}
	})
}

// Neither does a poll for new releases whose result arrives late.
func TestSlowPollDoesNotRevertRelease(t *testing.T) {
	withDelay(t, func(t *testing.T, writer, reader *store.Store, d *delay) {
		ctx, stop := context.WithCancel(d.context())
		seen := make(chan int, 10)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			reader.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool { seen <- r.ID; return true })
		}()
		defer func() { stop(); <-ended }()
		<-d.queried
		release(t, writer, 2)
		if got := readSees(t, reader); got != 2 {
			t.Errorf("got release %d, want 2", got)
		}
		close(d.resume)
		if got := <-seen; got != 2 {
			t.Errorf("got release %d from the watch, want 2", got)
		}
		if got := readSees(t, reader); got != 2 {
			t.Errorf("got release %d, want 2", got)
		}
	})
}
