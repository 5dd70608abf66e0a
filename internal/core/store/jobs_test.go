package store_test

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The program's idea of River's newest migration is the library's.
func TestJobsAreMigrated(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		migrator := newMigrator(t, s.JobDriver())
		all := migrator.AllVersions()
		there, err := migrator.ExistingVersions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(there) != len(all) || there[len(there)-1].Version != all[len(all)-1].Version {
			t.Errorf("%d of %d migrations are applied", len(there), len(all))
		}
		if err := s.CheckMigrated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A database whose jobs were left halfway is finished by the next start.
func TestJobsAreMigratedFromHalfway(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		migrator := newMigrator(t, s.JobDriver())
		if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: 4}); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckMigrated(t.Context()); err == nil {
			t.Error("nothing is missing")
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckMigrated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func newMigrator(t *testing.T, driver riverdriver.Driver[*sql.Tx]) *rivermigrate.Migrator[*sql.Tx] {
	t.Helper()
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	return migrator
}

func TestTenMigrateJobsAtOnce(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				s, err := store.Open(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if _, err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
				if err := s.CheckMigrated(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
