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

// reads is the release that a reading and then a snapshot see; what the first
// has shown, the second may not take back.
func reads(t *testing.T, s *store.Store) int {
	t.Helper()
	read := readingSees(t, s)
	if snapshot := snapshotSees(t, s); snapshot < read {
		t.Fatalf("a reading saw release %d, a snapshot after it %d", read, snapshot)
	}
	return read
}

// readingSees is the release that a reading is told, and that its statements
// see.
func readingSees(t *testing.T, s *store.Store) (told int) {
	t.Helper()
	var seen int
	if err := s.Reading(t.Context(), func(ctx context.Context, release *ent.Release) error {
		newest, err := store.NewestRelease(ctx, s.Read.Release)
		told, seen = number(release), number(newest)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if told != seen {
		t.Fatalf("a reading of release %d saw %d", told, seen)
	}
	return told
}

func snapshotSees(t *testing.T, s *store.Store) (told int) {
	t.Helper()
	if err := s.Snapshot(t.Context(), func(_ *ent.Tx, release *ent.Release) error {
		told = number(release)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return told
}

// number is 0 before the first release.
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
			t.Fatalf("release %d is shown after release %d", got, last)
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
		t.Fatalf("before the first release, %d is read", got)
	}
	release(t, writer, 1)
	comesTo(t, reader, 1)

	// It lags: what was seen stays, what is new comes later, and what was just
	// written is read where it was.
	standby.Pause(t)
	release(t, writer, 2)
	if got := reads(t, reader); got != 1 {
		t.Errorf("a replica that lags tells of release %d", got)
	}
	if newest, err := store.NewestRelease(t.Context(), reader.Current().Release); err != nil || newest.ID != 2 {
		t.Errorf("what was just written: %v, %v", newest, err)
	}
	standby.Resume(t)
	comesTo(t, reader, 2)

	// It goes away: the other database is read, and has what it lacks; when it
	// is back with less, that is not shown.
	standby.Pause(t)
	standby.Freeze(t)
	release(t, writer, 3)
	if err := reader.Reading(wait.Context(t), func(context.Context, *ent.Release) error { return nil }); err != nil {
		t.Errorf("a replica that hangs: %v", err)
	}
	comesTo(t, reader, 3)
	standby.Thaw(t)
	reader.LeaveReplica(0) // it is asked again at once
	for range 20 {
		if got := reads(t, reader); got != 3 {
			t.Fatalf("after release 3, release %d is shown", got)
		}
	}
	standby.Resume(t)
	comesTo(t, reader, 3)
}

// A replica that lags has nothing to tell of what it lacks; when it has caught
// up by the end of the reading, that nothing is still of the past.
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
	if err := reader.Reading(t.Context(), func(ctx context.Context, release *ent.Release) (err error) {
		found, err := reader.Read.Category.Query().All(ctx)
		standby.Resume(t)
		standby.CatchUp(t, primary)
		of, categories = number(release), len(found)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if of != 2 || categories != 1 {
		t.Errorf("a reading of release %d saw %d categories", of, categories)
	}
}

// A backup that was restored goes back, and readers with it.
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
			t.Fatalf("after release 3 was undone, a reading sees %d and a snapshot %d", read, snapshot)
		}
	}
}
