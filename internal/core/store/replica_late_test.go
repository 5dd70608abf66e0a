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

// late delays the result of a query that is made with its context.
type late struct {
	armed         atomic.Bool
	queried, pass chan struct{}
}

type lateKey struct{}

func newLate() *late { return &late{queried: make(chan struct{}), pass: make(chan struct{})} }

func (l *late) context() context.Context {
	l.armed.Store(true)
	return context.WithValue(context.Background(), lateKey{}, true)
}

func (l *late) watch(ctx context.Context, _, _ string) func(error) {
	return func(error) {
		if ctx.Value(lateKey{}) != nil && l.armed.CompareAndSwap(true, false) {
			close(l.queried)
			<-l.pass
		}
	}
}

// behindAReplica is a writer, and a reader whose replica stays at release 1.
func behindAReplica(t *testing.T, watch store.Watch) (writer, reader *store.Store) {
	t.Helper()
	primary, standby := testkit.StartReplicated(t)
	writer = testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader = open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL, Watch: watch})
	release(t, writer, 1)
	standby.CatchUp(t, primary)
	comesTo(t, reader, 1)
	standby.Pause(t)
	return writer, reader
}

// After a snapshot, no older release is read.
func TestSnapshotIsRemembered(t *testing.T) {
	t.Parallel()
	writer, reader := behindAReplica(t, nil)
	release(t, writer, 2)
	reader.LeaveReplica(time.Minute)
	if got := snapshotSees(t, reader); got != 2 {
		t.Fatalf("got release %d without the replica, want 2", got)
	}
	reader.LeaveReplica(0)
	if got := readingSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
	if got, err := reader.CurrentRelease(t.Context()); err != nil || got.ID != 2 {
		t.Errorf("got release %v and %v, want 2", got, err)
	}
}

// A reading that starts before another one and ends after it does not make its
// older release the newest again.
func TestLateReadingTakesNothingBack(t *testing.T) {
	t.Parallel()
	held := newLate()
	writer, reader := behindAReplica(t, held.watch)
	reader.LeaveReplica(time.Minute)
	ended := make(chan error, 1)
	go func() {
		ended <- reader.WithRelease(held.context(), func(context.Context, *ent.Release) error { return nil })
	}()
	<-held.queried
	release(t, writer, 2)
	if got := readingSees(t, reader); got != 2 {
		t.Fatalf("got release %d", got)
	}
	close(held.pass)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	reader.LeaveReplica(0)
	if got := readingSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
}

// A poll for new releases with a late result does not either.
func TestLateLookTakesNothingBack(t *testing.T) {
	t.Parallel()
	held := newLate()
	writer, reader := behindAReplica(t, held.watch)
	reader.LeaveReplica(time.Minute)
	ctx, stop := context.WithCancel(held.context())
	seen := make(chan int, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reader.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool { seen <- r.ID; return true })
	}()
	defer func() { stop(); <-ended }()
	<-held.queried
	release(t, writer, 2)
	if got := readingSees(t, reader); got != 2 {
		t.Fatalf("got release %d", got)
	}
	reader.LeaveReplica(0)
	close(held.pass)
	if got := <-seen; got != 2 {
		t.Errorf("got release %d from the watch, want 2", got)
	}
	if got := readingSees(t, reader); got != 2 {
		t.Errorf("got release %d, want 2", got)
	}
}
