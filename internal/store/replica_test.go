package store_test

import (
	"context"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// reads is the release that a reading and a snapshot see, in one statement and
// in several; they must agree.
func reads(t *testing.T, s *store.Store) int {
	t.Helper()
	number := func(release *ent.Release) int {
		if release == nil {
			return 0
		}
		return release.ID
	}
	var read, seen, snapshot int
	err := s.Reading(t.Context(), func(ctx context.Context, release *ent.Release) error {
		read = number(release)
		newest, err := store.NewestRelease(ctx, s.Read.Release)
		seen = number(newest)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot(t.Context(), func(_ *ent.Tx, release *ent.Release) error {
		snapshot = number(release)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if read != seen || snapshot < read {
		t.Fatalf("a reading of release %d saw %d, a snapshot after it %d", read, seen, snapshot)
	}
	return read
}

// comesTo waits until readers see a release, and checks that they never see an
// older one than before.
func comesTo(t *testing.T, s *store.Store, want int) {
	t.Helper()
	last := 0
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := reads(t, s)
		if got < last {
			t.Fatalf("release %d is shown after release %d", got, last)
		}
		if last = got; got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("release %d is read, not %d", got, want)
		}
	}
}

func TestReadingFromAReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testdb.StartReplicated(t)
	writer := testdb.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
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
	hurry, stop := context.WithTimeout(t.Context(), 4*time.Second) // as a request has
	defer stop()
	if err := reader.Reading(hurry, func(context.Context, *ent.Release) error { return nil }); err != nil {
		t.Errorf("a replica that hangs: %v", err)
	}
	comesTo(t, reader, 3)
	standby.Thaw(t)
	time.Sleep(6 * time.Second) // until it is asked again
	for range 20 {
		if got := reads(t, reader); got != 3 {
			t.Fatalf("after release 3, release %d is shown", got)
		}
	}
	standby.Resume(t)
	comesTo(t, reader, 3)
}

// A backup that was restored goes back, and readers with it.
func TestRestoredBackupBehindAReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testdb.StartReplicated(t)
	writer := testdb.Open(t, store.Config{DatabaseURL: primary.URL})
	reader := open(t, store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	for n := range 3 {
		release(t, writer, n+1)
	}
	comesTo(t, reader, 3)
	if err := writer.Update(t.Context(), func(tx *ent.Tx) error {
		return tx.Release.DeleteOneID(3).Exec(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); reads(t, reader) != 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was undone is still shown")
		}
	}
}
