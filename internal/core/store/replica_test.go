package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// reads returns the release that a reading and then a snapshot see, which must
// be the same.
func reads(t *testing.T, s *store.Store) int {
	t.Helper()
	read := readingSees(t, s)
	if snapshot := snapshotSees(t, s); snapshot < read {
		t.Fatalf("got release %d in a snapshot after %d in a reading", snapshot, read)
	}
	return read
}

// readingSees returns the release of a reading, which its statements must see.
func readingSees(t *testing.T, s *store.Store) (given int) {
	t.Helper()
	var seen int
	if err := s.WithRelease(t.Context(), func(ctx context.Context, release *ent.Release) error {
		newest, err := store.NewestRelease(ctx, s.Read.Release)
		given, seen = number(release), number(newest)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if given != seen {
		t.Fatalf("got release %d in a reading of %d", seen, given)
	}
	return given
}

func snapshotSees(t *testing.T, s *store.Store) (given int) {
	t.Helper()
	if err := s.Snapshot(t.Context(), 0, func(_ context.Context, release *ent.Release) error {
		given = number(release)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return given
}

// number returns the number of a release, or 0 before the first.
func number(release *ent.Release) int {
	if release == nil {
		return 0
	}
	return release.ID
}

// comesTo waits until readers see a release, and checks that they never see an
// older one than before.
func comesTo(t *testing.T, s *store.Store, want int) {
	t.Helper()
	last := 0
	wait.Until(t, fmt.Sprintf("release %d is read", want), func() bool {
		got := reads(t, s)
		if got < last {
			t.Fatalf("got release %d after release %d", got, last)
		}
		last = got
		return got == want
	})
}

func TestReadingFromAReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	standby.CatchUp(t, primary) // without its tables it would be left alone for a while
	if got := reads(t, reader); got != 0 {
		t.Fatalf("got release %d, want none", got)
	}
	release(t, writer, 1)
	comesTo(t, reader, 1)

	// It lags: what was seen stays, what is new comes later, and what was just
	// written is read where it was.
	standby.Pause(t)
	release(t, writer, 2)
	if got := reads(t, reader); got != 1 {
		t.Errorf("got release %d from a replica that lags", got)
	}
	if newest, err := store.NewestRelease(t.Context(), reader.Current().Release); err != nil || newest.ID != 2 {
		t.Errorf("got %v and %v, want what was just written", newest, err)
	}
	standby.Resume(t)
	comesTo(t, reader, 2)

	// It is unavailable: the other database is read, and has what it lacks; when it
	// is back with less, that is not shown.
	standby.Pause(t)
	standby.Freeze(t)
	release(t, writer, 3)
	if err := reader.WithRelease(wait.Context(t), func(context.Context, *ent.Release) error { return nil }); err != nil {
		t.Errorf("got %v with a replica that hangs", err)
	}
	comesTo(t, reader, 3)
	standby.Thaw(t)
	reader.LeaveReplica(0) // use it again at once
	for range 20 {
		if got := reads(t, reader); got != 3 {
			t.Fatalf("got release %d, want 3", got)
		}
	}
	standby.Resume(t)
	comesTo(t, reader, 3)
}

// A query without rows on a replica that lags belongs to the older release, even
// if the replica has caught up by the end of the reading.
func TestReplicaCatchesUpInAReading(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	release(t, writer, 1)
	standby.CatchUp(t, primary)
	comesTo(t, reader, 1)

	standby.Pause(t)
	if err := writer.Update(t.Context(), func(tx *ent.Tx) error {
		return tx.Category.Create().SetID("son").SetLabel("Son").SetFingerprint("x").Exec(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	release(t, writer, 2)
	reader.LeaveReplica(time.Minute)
	comesTo(t, reader, 2)
	reader.LeaveReplica(0)

	var of, categories int
	if err := reader.WithRelease(t.Context(), func(ctx context.Context, release *ent.Release) (err error) {
		found, err := reader.Read.Category.Query().All(ctx)
		standby.Resume(t)
		standby.CatchUp(t, primary)
		of, categories = number(release), len(found)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if of != 2 || categories != 1 {
		t.Errorf("got %d categories in a reading of release %d", categories, of)
	}
}

// Readers follow a restored backup to an older release.
func TestRestoredBackupBehindAReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	for n := range 3 {
		release(t, writer, n+1)
	}
	standby.CatchUp(t, primary)
	comesTo(t, reader, 3)
	if err := writer.Update(t.Context(), func(tx *ent.Tx) error {
		return tx.Release.DeleteOneID(3).Exec(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	// The undoing may reach the replica between a reading and the snapshot
	// after it, so that they are not compared before a reading has seen it.
	wait.Until(t, "what was undone is no longer shown", func() bool { return readingSees(t, reader) == 2 })
	for range 20 {
		if read, snapshot := readingSees(t, reader), snapshotSees(t, reader); read != 2 || snapshot != 2 {
			t.Fatalf("got release %d in a reading and %d in a snapshot, want the restored one", read, snapshot)
		}
	}
}
