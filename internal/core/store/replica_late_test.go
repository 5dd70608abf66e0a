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

// withLaggingReplica returns a writer, and a reader whose replica stays at
// release 1.
func withLaggingReplica(t *testing.T, hook store.StatementHook) (writer, reader *store.Store) {
	t.Helper()
	primary, standby := testkit.StartReplicated(t)
	writer = testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader = open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL, OnStatement: hook})
	release(t, writer, 1)
	standby.CatchUp(t, primary)
	waitForRelease(t, reader, 1)
	standby.Pause(t)
	return writer, reader
}

// After a snapshot of a release, no older release is read.
func TestNoOlderReleaseAfterSnapshot(t *testing.T) {
	t.Parallel()
	writer, reader := withLaggingReplica(t, nil)
	release(t, writer, 2)
	reader.SkipReplica(time.Minute)
	if got := snapshotSees(t, reader); got != 2 {
		t.Fatalf("got release %d without the replica, want 2", got)
	}
	reader.SkipReplica(0)
	if got := readSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
	if got, err := reader.CurrentRelease(t.Context()); err != nil || got.ID != 2 {
		t.Errorf("got release %v and %v, want 2", got, err)
	}
}

// A read that starts before another one and ends after it does not make its
// older release the newest again.
func TestSlowReadDoesNotRevertRelease(t *testing.T) {
	t.Parallel()
	delayed := newDelay()
	writer, reader := withLaggingReplica(t, delayed.hook)
	reader.SkipReplica(time.Minute)
	ended := make(chan error, 1)
	go func() {
		ended <- reader.WithRelease(delayed.context(), func(context.Context, *ent.Release) error { return nil })
	}()
	<-delayed.queried
	release(t, writer, 2)
	if got := readSees(t, reader); got != 2 {
		t.Fatalf("got release %d, want 2", got)
	}
	close(delayed.resume)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	reader.SkipReplica(0)
	if got := readSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
}

// Neither does a poll for new releases whose result arrives late.
func TestSlowPollDoesNotRevertRelease(t *testing.T) {
	t.Parallel()
	delayed := newDelay()
	writer, reader := withLaggingReplica(t, delayed.hook)
	reader.SkipReplica(time.Minute)
	ctx, stop := context.WithCancel(delayed.context())
	seen := make(chan int, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reader.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool { seen <- r.ID; return true })
	}()
	defer func() { stop(); <-ended }()
	<-delayed.queried
	release(t, writer, 2)
	if got := readSees(t, reader); got != 2 {
		t.Fatalf("got release %d, want 2", got)
	}
	reader.SkipReplica(0)
	close(delayed.resume)
	if got := <-seen; got != 2 {
		t.Errorf("got release %d from the watch, want 2", got)
	}
	if got := readSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
}
