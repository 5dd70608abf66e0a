package main

import (
	"database/sql"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/feed/synth"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// twoCatalogs are two large states of one catalog, as feeds and as exports.
func twoCatalogs(t *testing.T, tools int) (feeds, exports [2]string) {
	t.Helper()
	for i := range feeds {
		feeds[i] = synthFile(t, synth.Options{Tools: tools, Seed: 5, Revision: 10 * i})
		cfg := testdb.SQLite(t)
		succeeds(t, shipped(t, cfg, "import", feeds[0]))
		if i == 1 { // the history of prices comes from having seen both
			succeeds(t, shipped(t, cfg, "import", feeds[1]))
		}
		exports[i] = succeeds(t, shipped(t, cfg, "export")).out
	}
	return feeds, exports
}

// TestKillDuringImport kills imports at random moments. Afterwards the catalog
// is the old one whole or the new one whole.
func TestKillDuringImport(t *testing.T) {
	const kills = 20
	feeds, exports := twoCatalogs(t, 1500)
	testdb.Each(t, func(t *testing.T, cfg store.Config) {
		killed, finished := 0, 0
		for killed < kills {
			if finished > kills {
				t.Fatalf("only %d of %d imports could be killed in time", killed, killed+finished)
			}
			fresh := cfg
			if finished > 0 { // once the new catalog is in, there is nothing left to kill
				fresh = another(t, cfg)
			}
			succeeds(t, shipped(t, fresh, "import", feeds[0]))
			length := duration(t, another(t, cfg), feeds)
			for killed < kills {
				died := killAfter(t, shipped(t, fresh, "import", feeds[1]), time.Duration(rand.Int64N(int64(length))))
				got := succeeds(t, shipped(t, fresh, "export")).out
				if got != exports[0] && got != exports[1] {
					t.Fatal("the catalog is neither the old nor the new one")
				}
				if died {
					killed++
				}
				if got == exports[1] {
					finished++
					break
				}
			}
		}
		t.Logf("%d imports killed, %d came through", killed, finished)
	})
}

// another is a new database of the same kind.
func another(t *testing.T, cfg store.Config) store.Config {
	if cfg.DatabaseURL != "" {
		return testdb.Postgres(t)
	}
	return testdb.SQLite(t)
}

// duration measures an import that is left alone.
func duration(t *testing.T, cfg store.Config, feeds [2]string) time.Duration {
	t.Helper()
	succeeds(t, shipped(t, cfg, "import", feeds[0]))
	start := time.Now()
	succeeds(t, shipped(t, cfg, "import", feeds[1]))
	return time.Since(start)
}

// killAfter starts a process and kills it after a while, if it still lives.
func killAfter(t *testing.T, cmd *exec.Cmd, after time.Duration) (died bool) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return !cmd.ProcessState.Exited()
}

func TestImportsAtOnceNeverMix(t *testing.T) {
	testdb.Each(t, func(t *testing.T, cfg store.Config) {
		const importers = 4
		var feeds [importers]string
		whole := map[string]bool{}
		for i := range feeds {
			// Catalogs with nothing in common but a few slugs.
			feeds[i] = synthFile(t, synth.Options{Tools: 300, Seed: uint64(i)})
			alone := testdb.SQLite(t)
			succeeds(t, shipped(t, alone, "import", feeds[i]))
			whole[withoutHistory(succeeds(t, shipped(t, alone, "export")).out)] = true
		}
		succeeds(t, shipped(t, cfg, "migrate", "up"))
		var all sync.WaitGroup
		for _, feed := range feeds {
			cmd := shipped(t, cfg, "import", "--force", feed)
			all.Go(func() {
				if r := runs(t, cmd); r.code != 0 && !strings.Contains(r.err, "another import or migration is still running: try again when it has ended") {
					t.Errorf("exit %d: %s", r.code, r.err)
				}
			})
		}
		all.Wait()
		if got := succeeds(t, shipped(t, cfg, "export")).out; !whole[withoutHistory(got)] {
			t.Error("the catalog is a mix")
		}
	})
}

// withoutHistory drops what depends on which catalogs came before.
func withoutHistory(export string) string {
	return regexp.MustCompile(`,"price_history":\[[^]]*\]`).ReplaceAllString(export, "")
}

func TestImportDoesNotWaitForEver(t *testing.T) {
	testdb.Each(t, func(t *testing.T, cfg store.Config) {
		holder := testdb.Open(t, cfg)
		cfg.LockWait = 200 * time.Millisecond
		waiter := testdb.Open(t, cfg)
		err := holder.Exclusive(t.Context(), func(*ent.Tx, *sql.Tx) error {
			return waiter.Exclusive(t.Context(), func(*ent.Tx, *sql.Tx) error { return nil })
		})
		if err == nil || err.Error() != "another import or migration is still running: try again when it has ended" {
			t.Errorf("got %v", err)
		}
	})
}
