package process_test

import (
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/feed/synth"
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

// TestKillDuringImport kills imports at random moments. Afterwards, the catalog
// is either entirely the old one or entirely the new one.
func TestKillDuringImport(t *testing.T) {
	t.Parallel()
	kills := testkit.Rounds(5, 20)
	feeds, exports := twoCatalogs(t, 200)
	testkit.Each(t, func(t *testing.T, old store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, old, "import", feeds[0]))
		length := measureImport(t, old, feeds[1])
		cfg := testkit.Copy(t, old)
		killed, finished := 0, 0
		for killed < kills {
			check.MustTrue(t, finished <= 20*kills, "got %d of %d imports killed in time, want %d killed", killed, killed+finished, kills) // the duration is estimated from the last import
			died, took := killAfter(t, blackbox.Command(t, cfg, "import", feeds[1]), time.Duration(rand.Int64N(int64(length))))
			got := blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out
			check.MustTrue(t, got == exports[0] || got == exports[1], "got a mix of two catalogs, want the old or the new one")
			if died {
				killed++
			} else {
				length = took
			}
			if got == exports[1] { // an import of the same feed would change nothing
				finished++
				cfg = testkit.Copy(t, old)
			}
		}
		t.Logf("%d imports killed, %d finished", killed, finished)
	})
}

// measureImport returns how long an import takes, on a copy of the database.
func measureImport(t *testing.T, cfg store.Config, feed string) time.Duration {
	t.Helper()
	cfg = testkit.Copy(t, cfg)
	start := time.Now()
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", feed))
	return time.Since(start)
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
