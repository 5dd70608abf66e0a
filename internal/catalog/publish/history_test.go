package publish_test

import (
	"bytes"
	"errors"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// exportOf returns a release as a feed.
func exportOf(t *testing.T, s *store.Store, release int) string {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &buf, release), "release %d", release)
	return buf.String()
}

// TestHistory publishes random catalogs, and then exports each release again.
func TestHistory(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		exports := map[int]string{}
		for i := range 30 {
			data := mutate(synthetic(t, synth.Options{Tools: 40, Seed: uint64(i / 10), Revision: i % 10}), uint64(i))
			if report := publishFeed(t, s, data, publish.Options{Force: true}); report.Release > 0 {
				exports[report.Release] = export(t, s)
			}
		}
		if len(exports) < 25 {
			t.Fatalf("got %d releases, want at least 25", len(exports))
		}
		for release, want := range exports {
			check.Equal(t, exportOf(t, s, release), want, "release %d: another export", release)
		}
		checkPruning(t, s, exports)
	})
}

// checkPruning prunes a part of the history, and checks that the rest is
// unchanged.
func checkPruning(t *testing.T, s *store.Store, exports map[int]string) {
	t.Helper()
	const before = 12
	if pruning, err := publish.Prune(t.Context(), s, before); err != nil || pruning.Rows == 0 {
		t.Fatalf("got %+v and %v, want some rows", pruning, err)
	}
	for release, want := range exports {
		if release >= before {
			check.Equal(t, exportOf(t, s, release), want, "release %d after pruning: another export", release)
		} else if err := publish.Export(t.Context(), s, &bytes.Buffer{}, release); !errors.Is(err, store.ErrNoRelease) {
			t.Errorf("pruned release %d: got %v, want %v", release, err, store.ErrNoRelease)
		}
	}
	for _, number := range []int{before, 1, -1, 1000} {
		if _, err := publish.Prune(t.Context(), s, number); err == nil {
			t.Errorf("pruning before %d: got no error, want one", number)
		}
	}
}
