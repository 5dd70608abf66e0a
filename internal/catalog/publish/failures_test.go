package publish_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// duringWriting returns a progress function that calls do once, halfway through
// writing the tools.
func duringWriting(do func()) func(stage string, done, total int64) {
	did := false
	return func(stage string, done, total int64) {
		if stage == "writing tools" && done > total/2 && !did {
			did = true
			do()
		}
	}
}

// failedImport imports a large feed while something fails, and checks that the
// catalog does not change.
func failedImport(t *testing.T, s *store.Store, ctx context.Context, progress func(string, int64, int64)) error {
	t.Helper()
	publishFeed(t, s, feedtest.Synthetic(t, synth.Options{Tools: 100, Seed: 1}))
	before := contents(t, s)
	next := feedtest.Synthetic(t, synth.Options{Tools: 1500, Seed: 1, Revision: 3})
	_, err := publish.Import(ctx, s, feed.NewLines(bytes.NewReader(next)), publish.Options{Progress: progress})
	check.Equal(t, contents(t, s), before, "another catalog")
	return err
}

func TestDatabaseLostDuringImport(t *testing.T) {
	cfg := testkit.Postgres(t)
	s := testkit.Open(t, cfg)
	err := failedImport(t, s, t.Context(), duringWriting(func() {
		if _, err := s.Read.ExecContext(context.Background(),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
			t.Error(err)
		}
	}))
	const want = "the database cannot be reached"
	check.Equal(t, fmt.Sprint(err), want)
}

func TestInterruptedImport(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		check.Is(t, failedImport(t, s, ctx, duringWriting(cancel)), context.Canceled)
	})
}

func TestDiskFullDuringImport(t *testing.T) {
	const want = "the database's disk is full"
	t.Run("sqlite", func(t *testing.T) {
		s := testkit.Open(t, store.Config{DataDir: testkit.SmallDisk(t, 4<<20)})
		check.Equal(t, fmt.Sprint(failedImport(t, s, t.Context(), nil)), want)
	})
	t.Run("postgres", func(t *testing.T) {
		disk := testkit.SmallDisk(t, 1<<20)
		testkit.ChownForPostgres(t, disk)
		s := testkit.Open(t, testkit.Postgres(t))
		name := "small_" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
		for _, statement := range []string{
			"CREATE TABLESPACE " + name + " LOCATION '" + disk + "'",
			"ALTER TABLE sections SET TABLESPACE " + name,
		} {
			if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
				testkit.SkipUnsupported(t, "the server does not allow a tablespace on the test's disk")
			}
		}
		t.Cleanup(func() {
			for _, statement := range []string{"ALTER TABLE sections SET TABLESPACE pg_default", "DROP TABLESPACE " + name} {
				_, err := s.Write.ExecContext(context.Background(), statement)
				check.Equal(t, err, nil)
			}
		})
		check.Equal(t, fmt.Sprint(failedImport(t, s, t.Context(), nil)), want)
	})
}
