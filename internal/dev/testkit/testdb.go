// Package testkit gives each test a real database of its own, on SQLite and on
// PostgreSQL, and starts the PostgreSQL cluster they need. Only tests and the
// tools of the Makefile import it.
package testkit

import (
	"os"
	"testing"

	"palmares/internal/core/store"
)

// URLVariable names the cluster's address in the environment. Whoever it
// belongs to must be allowed to create databases.
const URLVariable = "TEST_DATABASE_URL"

// Each runs test once on each kind of database, with where a new and empty
// one is.
func Each(t *testing.T, test func(t *testing.T, cfg store.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// EachStore is Each with the database opened and migrated.
func EachStore(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, Open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, postgres(t, os.Getenv(TemplateVariable)))) })
}

// Open opens and migrates a database, and closes it when the test ends.
func Open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	if cfg.DatabaseURL == "" {
		if err := copyMigrated(cfg.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// SQLite is a new embedded database in a folder that goes with the test.
func SQLite(t testing.TB) store.Config {
	return store.Config{DataDir: t.TempDir()}
}

// Postgres is a new database of the test cluster, dropped with the test.
func Postgres(t testing.TB) store.Config {
	t.Helper()
	return postgres(t, "")
}

// postgres is Postgres with a copy of another database, if one is named.
func postgres(t testing.TB, template string) store.Config {
	t.Helper()
	address, drop, err := scratch(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return store.Config{DatabaseURL: address, DataDir: t.TempDir()}
}
