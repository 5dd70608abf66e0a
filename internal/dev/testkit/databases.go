// Package testkit gives each test a database of its own, on SQLite and on
// PostgreSQL, and starts the services that tests and development tools need.
package testkit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/lib/pq" // the driver of the administrative connections

	"palmares/internal/core/store"
)

const (
	// URLVariable is the environment variable with the URL of the PostgreSQL
	// server. Its user must be allowed to create databases.
	URLVariable = "TEST_DATABASE_URL"
	// TemplateVariable is the environment variable with the name of a migrated,
	// empty database to copy. Without it, each test runs the migrations.
	TemplateVariable = "TEST_DATABASE_TEMPLATE"
)

// Each runs a test on each kind of database, with a new and empty one.
func Each(t *testing.T, test func(t *testing.T, cfg store.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// EachStore is like Each, with the database opened and migrated.
func EachStore(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, Open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, postgres(t, os.Getenv(TemplateVariable)))) })
}

// Open opens and migrates a database, and closes it when the test ends.
func Open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	if entries, err := os.ReadDir(cfg.DataDir); cfg.DatabaseURL == "" && err == nil && len(entries) == 0 {
		template, err := migratedSQLite()
		if err == nil {
			err = template.WriteTo(cfg.DataDir)
		}
		if err != nil {
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

// SQLite returns a new embedded database, which is removed with the test.
func SQLite(t testing.TB) store.Config {
	return store.Config{DataDir: t.TempDir()}
}

// Postgres returns a new PostgreSQL database, which is dropped with the test.
func Postgres(t testing.TB) store.Config {
	t.Helper()
	return postgres(t, "")
}

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

// Copy returns a copy of a database that nobody has open. It is removed with
// the test.
func Copy(t testing.TB, of store.Config) store.Config {
	t.Helper()
	if of.DatabaseURL != "" {
		u, err := url.Parse(of.DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		return postgres(t, strings.TrimPrefix(u.Path, "/"))
	}
	cfg := SQLite(t)
	files, err := ReadFiles(of.DataDir)
	if err == nil {
		err = files.WriteTo(cfg.DataDir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

var scratches atomic.Int64

// Scratch creates an empty database on the server of URLVariable.
func Scratch(ctx context.Context) (address string, drop func() error, err error) {
	return scratch(ctx, "")
}

// scratch creates a database, as a copy of the template if there is one.
func scratch(ctx context.Context, template string) (address string, drop func() error, err error) {
	server := os.Getenv(URLVariable)
	if server == "" {
		return "", nil, fmt.Errorf("no PostgreSQL server: use the Makefile, or set %s", URLVariable)
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, errors.New(URLVariable + " is not a valid URL")
	}
	name := fmt.Sprintf("palmares_scratch_%d_%d", os.Getpid(), scratches.Add(1))
	statement := "CREATE DATABASE " + name
	if template != "" {
		statement += " TEMPLATE " + template
	}
	if err := execute(ctx, server, statement); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		return execute(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func execute(ctx context.Context, address, statement string) error {
	db, err := sql.Open("postgres", address)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// MakeTemplate creates a migrated database and sets TemplateVariable: copying
// it is much faster than running the migrations under the race detector.
func MakeTemplate(ctx context.Context) (drop func() error, err error) {
	address, drop, err := scratch(ctx, "")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err == nil {
		err = migrate(ctx, store.Config{DatabaseURL: address})
	}
	if err == nil {
		err = os.Setenv(TemplateVariable, strings.TrimPrefix(u.Path, "/"))
	}
	if err != nil {
		_ = drop()
		return nil, err
	}
	return drop, nil
}

// migratedSQLite returns the files of a migrated, empty embedded database.
var migratedSQLite = sync.OnceValues(func() (Files, error) {
	dir, err := os.MkdirTemp("", "palmares-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := migrate(context.Background(), store.Config{DataDir: dir}); err != nil {
		return nil, err
	}
	return ReadFiles(dir)
})

func migrate(ctx context.Context, cfg store.Config) error {
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = s.Migrate(ctx)
	return errors.Join(err, s.Close())
}
