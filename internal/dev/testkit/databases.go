// Package testkit gives each test its own database, on SQLite and on PostgreSQL,
// and starts the services that tests and development tools need.
package testkit

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	_ "github.com/lib/pq" // the driver of the administrative connections

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// Each runs a test on each kind of database, with an empty one. That of PostgreSQL has
// its tables.
func Each(t *testing.T, test func(t *testing.T, cfg store.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, migratedPostgres(t)) })
}

// EachNew is like Each, with databases that have no tables yet.
func EachNew(t *testing.T, test func(t *testing.T, cfg store.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// EachStore is like Each, with the database opened and migrated.
func EachStore(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, Open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, migratedPostgres(t))) })
}

// EachInFull is like EachStore in make test-full, and runs a test on SQLite alone in make
// test. It is for what reads the catalog from memory: only what writes and loads it depends
// on the database.
func EachInFull(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, Open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) {
		FullTier(t, "it reads the catalog from memory, as on SQLite")
		test(t, Open(t, migratedPostgres(t)))
	})
}

// Open opens and migrates a database, and closes it when the test ends.
func Open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	if entries, err := os.ReadDir(cfg.DataDir); cfg.DatabaseURL == "" && err == nil && len(entries) == 0 {
		copyMigrated(t, cfg.DataDir)
	}
	s := check.Try(store.Open(t.Context(), cfg)).OK(t)
	t.Cleanup(func() { _ = s.Close() })
	check.Try(s.Migrate(t.Context())).OK(t)
	return s
}

// SQLite returns a new embedded database, which is removed when the test ends.
func SQLite(t testing.TB) store.Config {
	return store.Config{DataDir: t.TempDir()}
}

// Postgres returns a new PostgreSQL database, which is dropped when the test ends.
func Postgres(t testing.TB) store.Config {
	t.Helper()
	return postgres(t, "")
}

var databases atomic.Int64

// postgres creates a database, as a copy of the template if there is one.
func postgres(t testing.TB, template string) store.Config {
	t.Helper()
	return createPostgres(t, fmt.Sprintf("palmares_scratch_%d_%d", os.Getpid(), databases.Add(1)), template)
}

func createPostgres(t testing.TB, name, template string) store.Config {
	t.Helper()
	server := ServerURL(t)
	createDatabase(t, server, name, template)
	t.Cleanup(func() { dropDatabase(t, server, name) })
	return store.Config{DatabaseURL: databaseURL(t, server, name), DataDir: t.TempDir()}
}

// createDatabase replaces the database that a killed run left.
func createDatabase(t testing.TB, server, name, template string) {
	t.Helper()
	dropDatabase(t, server, name)
	statement := "CREATE DATABASE " + name
	if template != "" {
		statement += " TEMPLATE " + template
	}
	check.OK(t, query(server, statement, nil))
}

func dropDatabase(t testing.TB, server, name string) {
	t.Helper()
	if err := query(server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", nil); err != nil {
		t.Error(err)
	}
}

// databaseURL returns the URL of a database of a server.
func databaseURL(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(URLVariable + " is not a valid URL")
	}
	u.Path = "/" + name
	return u.String()
}

// Copy returns a copy of a database that is not open. It is removed when the test
// ends.
func Copy(t testing.TB, of store.Config) store.Config {
	t.Helper()
	if of.DatabaseURL != "" {
		return postgres(t, nameOf(t, of))
	}
	cfg := SQLite(t)
	check.OK(t, os.CopyFS(cfg.DataDir, os.DirFS(of.DataDir)))
	return cfg
}

// nameOf returns the name of a PostgreSQL database.
func nameOf(t testing.TB, cfg store.Config) string {
	t.Helper()
	u := check.Try(url.Parse(cfg.DatabaseURL)).OK(t)
	return strings.TrimPrefix(u.Path, "/")
}

// copyMigrated copies the files of a migrated, empty embedded database.
var copyMigrated = Template(func(t testing.TB, dir string) { migrate(t, store.Config{DataDir: dir}) })

func migrate(t testing.TB, cfg store.Config) {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	check.OK(t, err)
	_, err = s.Migrate(t.Context())
	check.OK(t, errors.Join(err, s.Close()))
}

// Template returns a function that copies files into a directory. Fill creates
// them, once, in an empty directory.
func Template(fill func(t testing.TB, dir string)) func(t testing.TB, dir string) {
	var mu sync.Mutex
	files := fstest.MapFS{}
	return func(t testing.TB, dir string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(files) == 0 {
			template := t.TempDir()
			fill(t, template)
			entries := check.Try(os.ReadDir(template)).OK(t)
			for _, entry := range entries {
				data := check.Try(os.ReadFile(filepath.Join(template, entry.Name()))).OK(t)
				files[entry.Name()] = &fstest.MapFile{Data: data}
			}
		}
		check.OK(t, os.CopyFS(dir, files))
	}
}
