package timetravel_test

import (
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// A replica that lags serves the releases that it has, as they were, and never
// one in place of another.
func TestReplica(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	db := testkit.Open(t, store.Config{DatabaseURL: primary.URL})
	reader, err := store.Open(t.Context(), store.Config{DatabaseURL: primary.URL, ReadURL: standby.URL})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	standby.CatchUp(t, primary)

	want := map[int]string{}
	current := newServer(t, db)
	publishNext := func() {
		t.Helper()
		number := current.publish(t, db, randomCatalog(t, len(want), 12))
		want[number] = sample(t, current, number)
	}
	publishNext()
	publishNext()
	standby.CatchUp(t, primary)
	s := newServer(t, reader)
	from := 1
	// check reads all releases with and without anything in memory, and returns
	// the newest.
	check := func() (found int) {
		t.Helper()
		for _, s := range []*server{s, newServer(t, reader)} {
			for release := from; release <= len(want)+1; release++ {
				got := sample(t, s, release)
				switch {
				case got == want[release]:
					found = max(found, release)
				case !strings.HasPrefix(got, "404 "):
					t.Errorf("release %d: differs %s", release, differsAt(got, want[release]))
				}
			}
		}
		return found
	}
	if found := check(); found != 2 {
		t.Errorf("got releases up to %d, want 2", found)
	}
	standby.Pause(t)
	publishNext()
	publishNext()
	if found := check(); found != 2 {
		t.Errorf("got releases up to %d from a replica that lags, want 2", found)
	}
	standby.Resume(t)
	wait.Until(t, "all releases are read", func() bool { return check() == 4 })

	// It is unavailable: the primary is read, which has one more.
	standby.Pause(t)
	publishNext()
	standby.Freeze(t)
	if found := check(); found != 5 {
		t.Errorf("got releases up to %d while the replica hangs, want 5", found)
	}
	standby.Thaw(t)
	for start := time.Now(); time.Since(start) < 7*time.Second; { // a replica that failed is not used for 5 seconds
		if found := check(); found != 5 {
			t.Errorf("got releases up to %d after 5 was read, want 5", found)
		}
	}
	standby.Resume(t)
	wait.Until(t, "the last release is read", func() bool { return check() == 5 })

	// A release that was pruned is readable until the replica has caught up.
	stats := current.get(anonymous, "/api/v1/stats?as_of=2").Body.String()
	standby.Pause(t)
	if _, err := feed.Prune(t.Context(), db, 3); err != nil {
		t.Fatal(err)
	}
	from = 3
	check()
	standby.Resume(t)
	wait.Until(t, "the history is pruned", func() bool {
		check()
		got := newServer(t, reader).get(anonymous, "/api/v1/stats?as_of=2")
		if got.Code == 200 && got.Body.String() != stats {
			t.Fatalf("got %s for a release that is being pruned, want %s", got.Body, stats)
		}
		return got.Code == 404 && strings.Contains(got.Body.String(), "Available releases: 3 (")
	})
}
