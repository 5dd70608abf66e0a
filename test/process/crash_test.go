package process_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// twoCatalogs returns two large revisions of a catalog, as feeds and as exports.
func twoCatalogs(t *testing.T, tools int) (feeds, exports [2]string) {
	t.Helper()
	cfg := testkit.SQLite(t) // one database for both, because the price history depends on the first
	for i := range feeds {
		feeds[i] = blackbox.SynthFile(t, synth.Options{Tools: tools, Seed: 5, Revision: 10 * i})
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", feeds[i]))
		exports[i] = blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out
	}
	return feeds, exports
}

// exports returns every release of a database as a feed, oldest first, and checks that
// each has the event of its publication.
func exports(t *testing.T, cfg store.Config) (all []string) {
	t.Helper()
	s := check.Try(store.Open(t.Context(), cfg)).OK(t)
	defer s.Close() // so that the database can be copied later
	for number := 1; ; number++ {
		var buf bytes.Buffer
		err := publish.Export(t.Context(), s, &buf, number)
		if errors.Is(err, store.ErrNoRelease) {
			published := s.Read.JournalEntry.Query().Where(journalentry.Event(journal.EventCatalogPublished)).CountX(t.Context())
			check.Equal(t, published, len(all), "events of releases")
			return all
		}
		check.OK(t, err)
		all = append(all, buf.String())
	}
}

// TestKillDuringImport kills imports at random moments. Afterwards, the new release is
// there with all its events or not at all, every earlier one is unchanged, and the next
// import works.
func TestKillDuringImport(t *testing.T) {
	t.Parallel()
	kills, tools := testkit.Rounds(5, 20), 150
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
			check.MustTrue(t, finished <= 20*kills, "got %d of %d imports killed in time, want %d killed", killed, killed+finished, kills)
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

// killAfter starts a process, kills it after a while unless it has exited, and
// returns how long it ran.
func killAfter(t *testing.T, cmd *exec.Cmd, after time.Duration) (died bool, took time.Duration) {
	t.Helper()
	start := time.Now()
	check.OK(t, cmd.Start())
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	kill.Stop()
	return !cmd.ProcessState.Exited(), time.Since(start)
}

func TestConcurrentImports(t *testing.T) {
	t.Parallel()
	const importers = 4
	var feeds [importers]string
	complete := map[string]bool{}
	for i := range feeds {
		// The catalogs have few slugs in common.
		feeds[i] = blackbox.SynthFile(t, synth.Options{Tools: 100, Seed: uint64(i)})
		alone := testkit.SQLite(t)
		blackbox.MustRun(t, blackbox.Command(t, alone, "import", feeds[i]))
		complete[withoutHistory(blackbox.MustRun(t, blackbox.Command(t, alone, "export")).Out)] = true
	}
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "up"))
		var all sync.WaitGroup
		for _, feed := range feeds {
			cmd := blackbox.Command(t, cfg, "import", "--force", feed)
			all.Go(func() {
				if r := blackbox.Run(t, cmd); r.Code != 0 && !strings.Contains(r.Err, "another import or migration is still running: try again when it has finished") {
					t.Errorf("got exit code %d and %q, want 0 or another import running", r.Code, r.Err)
				}
			})
		}
		all.Wait()
		got := blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out
		check.True(t, complete[withoutHistory(got)], "got a mix of catalogs, want one of them")
	})
}

// withoutHistory removes the price history, which depends on earlier imports.
func withoutHistory(export string) string {
	return regexp.MustCompile(`,"price_history":\[[^]]*\]`).ReplaceAllString(export, "")
}

func TestImportLockTimeout(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		holder := testkit.Open(t, cfg)
		cfg.LockWait = 200 * time.Millisecond
		waiter := testkit.Open(t, cfg)
		err := holder.Exclusive(t.Context(), func(*ent.Tx) error {
			return waiter.Exclusive(t.Context(), func(*ent.Tx) error { return nil })
		})
		check.True(t, err != nil && err.Error() == "another import or migration is still running: try again when it has finished", "got %v, want another import or migration running", err)
	})
}
