package testkit

import (
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// Creating and dropping a database makes PostgreSQL write everything that it has in
// memory, so tests use databases again. A database belongs to the test that holds a
// lock on its number. The next test empties it, because the last one may have been
// killed.

// migratedPostgres returns an empty, migrated PostgreSQL database, which no other test
// uses until this one ends.
func migratedPostgres(t testing.TB) store.Config {
	t.Helper()
	server, from := ServerURL(t), template(t)
	dir := check.Try(sharedDir()).OK(t)
	for number := 1; ; number++ {
		name := fmt.Sprintf("%s_%d", strings.Replace(from, "template", "pool", 1), number)
		lock, err := openLock(dir, name+".lock", syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		check.OK(t, err)
		t.Cleanup(func() { _ = lock.Close() })
		if !empty(t, databaseURL(t, server, name), databaseURL(t, server, from)) {
			createDatabase(t, server, name, from)
		}
		return store.Config{DatabaseURL: databaseURL(t, server, name), DataDir: t.TempDir()}
	}
}

// empty empties a database like its template. It returns false if there is none, or
// if a test has changed more than rows.
func empty(t testing.TB, database, template string) bool {
	t.Helper()
	var want, got string
	check.MustTrue(t, query(template, fingerprint, &want) == nil, "the template of test databases is unusable: stop all tests, and run them again after a minute")
	return query(database, emptyTables, nil) == nil && query(database, fingerprint, &got) == nil && got == want
}

// query runs statements that return at most one value.
func query(database, statements string, value *string) error {
	db, err := sql.Open("postgres", database)
	if err != nil {
		return err
	}
	defer db.Close()
	if value == nil {
		_, err := db.Exec(statements)
		return err
	}
	return db.QueryRow(statements).Scan(value)
}

//go:embed empty.sql
var emptyTables string

//go:embed fingerprint.sql
var fingerprint string
