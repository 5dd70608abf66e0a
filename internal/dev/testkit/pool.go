package testkit

import (
	"database/sql"
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

const (
	// emptyTables also disconnects what the last test left behind. Migrations fill the
	// tables that it skips.
	emptyTables = `DO $$
DECLARE item record; used boolean;
BEGIN
	PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
	SET LOCAL session_replication_role = replica;
	FOR item IN SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'secrets') LOOP
		EXECUTE format('SELECT EXISTS (SELECT FROM %I)', item.name) INTO used;
		IF used THEN
			EXECUTE format('TRUNCATE %I CASCADE', item.name);
		END IF;
	END LOOP;
	FOR item IN SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL LOOP
		EXECUTE format('ALTER SEQUENCE %I RESTART', item.name);
	END LOOP;
END $$`

	// fingerprint describes everything but the rows of the other tables.
	fingerprint = `SELECT concat(
	(SELECT md5(string_agg(concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, attnotnull), ',' ORDER BY attrelid::regclass::text, attnum))
		FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace),
	(SELECT md5(string_agg(concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)), ',' ORDER BY conrelid::regclass::text, conname)) FROM pg_constraint
		WHERE connamespace = 'public'::regnamespace),
	(SELECT string_agg(tgname::text, ',' ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal),
	(SELECT string_agg(proname::text, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
	(SELECT string_agg(nspname::text, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'),
	(SELECT string_agg(array_to_string(setconfig, ' '), ',') FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()),
	(SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
	(SELECT md5(string_agg(concat_ws(' ', version, name, applied_at), ',' ORDER BY version)) FROM schema_migrations),
	(SELECT md5(string_agg(concat_ws(' ', id, value), ',' ORDER BY id)) FROM secrets))`
)
