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

// reads returns the release that a read sees. A snapshot taken after it must
// not see an older one.
func reads(t *testing.T, s *store.Store) int {
	t.Helper()
	read := readSees(t, s)
	if snapshot := snapshotSees(t, s); snapshot < read {
		t.Fatalf("got release %d in a snapshot, want at least %d, as in the read before", snapshot, read)
	}
	return read
}

// readSees returns the release of a read, and checks that its statements
// see it.
func readSees(t *testing.T, s *store.Store) (given int) {
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
		t.Fatalf("got release %d from a statement, want release %d of its read", seen, given)
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

// waitForRelease waits until readers see a release, and checks that they never
// see an older one than before.
func waitForRelease(t *testing.T, s *store.Store, want int) {
	t.Helper()
	last := 0
	wait.Until(t, fmt.Sprintf("release %d is read", want), func() bool {
		got := reads(t, s)
		if got < last {
			t.Fatalf("got release %d, want at least %d, which was read before", got, last)
		}
		last = got
		return got == want
	})
}

func TestReadFromReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	standby.CatchUp(t, primary) // a replica without tables would be skipped for a while
	if got := reads(t, reader); got != 0 {
		t.Fatalf("got release %d, want none", got)
	}
	release(t, writer, 1)
	waitForRelease(t, reader, 1)

	// While the replica lags, readers stay on the release they saw, and the
	// latest writes are read from the primary.
	standby.Pause(t)
	release(t, writer, 2)
	if got := reads(t, reader); got != 1 {
		t.Errorf("lagging replica: got release %d, want 1", got)
	}
	if newest, err := store.NewestRelease(t.Context(), reader.Current().Release); err != nil || newest.ID != 2 {
		t.Errorf("got release %v and %v from the primary, want 2", newest, err)
	}
	standby.Resume(t)
	waitForRelease(t, reader, 2)

	// While the replica is unavailable, the primary is read. When the replica is
	// back with an older release, that release is not served.
	standby.Pause(t)
	standby.Freeze(t)
	release(t, writer, 3)
	if err := reader.WithRelease(wait.Context(t), func(context.Context, *ent.Release) error { return nil }); err != nil {
		t.Errorf("hanging replica: got %v, want the primary to be read", err)
	}
	waitForRelease(t, reader, 3)
	standby.Thaw(t)
	reader.SkipReplica(0) // use it again immediately
	for range 20 {
		if got := reads(t, reader); got != 3 {
			t.Fatalf("got release %d, want 3", got)
		}
	}
	standby.Resume(t)
	waitForRelease(t, reader, 3)
}

// A query that finds no rows on a lagging replica belongs to the older release,
// even if the replica has caught up by the end of the read.
func TestReplicaCatchesUpDuringRead(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	release(t, writer, 1)
	standby.CatchUp(t, primary)
	waitForRelease(t, reader, 1)

	standby.Pause(t)
	if err := writer.Update(t.Context(), func(tx *ent.Tx) error {
		return tx.Category.Create().SetID("son").SetLabel("Son").SetFingerprint("x").Exec(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	release(t, writer, 2)
	reader.SkipReplica(time.Minute)
	waitForRelease(t, reader, 2)
	reader.SkipReplica(0)

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
		t.Errorf("got %d categories in release %d, want 1 in release 2", categories, of)
	}
}

// Readers follow a restored backup to an older release.
func TestRestoredBackupWithReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	writer := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	for n := range 3 {
		release(t, writer, n+1)
	}
	standby.CatchUp(t, primary)
	waitForRelease(t, reader, 3)
	if err := writer.Update(t.Context(), func(tx *ent.Tx) error {
		return tx.Release.DeleteOneID(3).Exec(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	// The deletion may reach the replica between a read and the snapshot
	// after it, so they are compared only once a read has seen it.
	wait.Until(t, "release 3 is no longer read", func() bool { return readSees(t, reader) == 2 })
	for range 20 {
		if read, snapshot := readSees(t, reader), snapshotSees(t, reader); read != 2 || snapshot != 2 {
			t.Fatalf("got release %d in a read and %d in a snapshot, want 2 in both", read, snapshot)
		}
	}
}
