package process_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// exports returns every release of a database as a feed, oldest first.
func exports(t *testing.T, cfg store.Config) (all []string) {
	t.Helper()
	s := check.Try(store.Open(t.Context(), cfg)).OK(t)
	defer s.Close() // so that the database can be copied later
	for number := 1; ; number++ {
		var buf bytes.Buffer
		err := publish.Export(t.Context(), s, &buf, number)
		if errors.Is(err, store.ErrNoRelease) {
			return all
		}
		check.OK(t, err)
		all = append(all, buf.String())
	}
}

// TestKillKeepsHistory kills imports at random moments. Afterwards, every earlier
// release is unchanged, and the next import works.
func TestKillKeepsHistory(t *testing.T) {
	t.Parallel()
	kills, tools := testkit.Rounds(2, 5), 150
	var feeds []string
	for i := range 5 {
		feeds = append(feeds, blackbox.SynthFile(t, synth.Options{Tools: tools + 20*(i%2), Seed: 5, Revision: 4 * i}))
	}
	testkit.Each(t, func(t *testing.T, old store.Config) {
		for _, file := range feeds[:3] {
			blackbox.MustRun(t, blackbox.Command(t, old, "import", file))
		}
		complete := testkit.Copy(t, old)
		start := time.Now()
		blackbox.MustRun(t, blackbox.Command(t, complete, "import", feeds[3]))
		length := time.Since(start)
		blackbox.MustRun(t, blackbox.Command(t, complete, "import", feeds[4]))
		want := exports(t, complete)
		check.Must(t, len(want), 5, "releases")
		cfg, killed, finished := testkit.Copy(t, old), 0, 0
		for killed < kills {
			check.MustTrue(t, finished <= 5*kills, "got %d of %d imports killed in time, want %d killed", killed, killed+finished, kills)
			died, took := killAfter(t, blackbox.Command(t, cfg, "import", feeds[3]), time.Duration(rand.Int64N(int64(length))))
			got := exports(t, cfg)
			check.MustTrue(t, len(got) == 3 || len(got) == 4, "got %d releases after an import was killed, want 3 or 4", len(got))
			for i := range got {
				check.Must(t, got[i], want[i], "release %d after an import was killed", i+1)
			}
			if died {
				killed++
			} else {
				length = took
			}
			if len(got) == 4 {
				finished++
				cfg = testkit.Copy(t, old)
			}
		}
		for _, file := range feeds[3:] {
			blackbox.MustRun(t, blackbox.Command(t, cfg, "import", file))
		}
		for i, got := range exports(t, cfg) {
			check.Equal(t, got, want[i], "release %d after all imports", i+1)
		}
		t.Logf("%d imports killed, %d finished", killed, finished)
	})
}
