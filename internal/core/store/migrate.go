package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
)

// The migrations of both databases: NNNN_name.sql, applied in order, never
// edited once released. `make generate` writes new ones. The first one creates all
// tables; upgradeFile replaces it in databases that earlier migrations created.
//
// The runner is custom because all pending migrations must be applied in one
// transaction under one lock, on both databases: several processes that start
// together then migrate once, and a failure changes nothing.
//
//go:embed migrations
var migrationFiles embed.FS

var folders = map[string]string{dialect.SQLite: "sqlite", dialect.Postgres: "postgres"}

// upgradeFile makes a database at migration upgradable like a new one at the next.
const (
	upgradable  = 25
	upgradeFile = "0026_from_0025"
)

// Migration is one step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt string // RFC 3339; empty while it is pending
	sql       string
}

// Migrations returns every migration that this program knows, oldest first.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	steps, err := s.steps(ctx, s.Read)
	return steps, explain(err)
}

// OpenMigrated opens a database that exists and that was migrated.
func OpenMigrated(ctx context.Context, cfg Config) (*Store, error) {
	cfg.MustExist = true
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.CheckMigrated(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// CheckMigrated returns an error if migrations are pending or the database is
// newer than this program.
func (s *Store) CheckMigrated(ctx context.Context) error {
	steps, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	if n := len(pending(steps)); n > 0 {
		return &Error{Message: fmt.Sprintf("%d migration(s) are pending: run palmares migrate up", n)}
	}
	return nil
}

// checkCompatible is CheckMigrated for a running server. A newer version may have
// migrated the database in the meantime: that is how upgrades start, and older
// servers keep working until they are replaced.
func (s *Store) checkCompatible(ctx context.Context) error {
	err := s.CheckMigrated(ctx)
	var databaseErr *Error
	if errors.As(err, &databaseErr) && databaseErr.newer {
		return nil
	}
	return err
}

// Migrate applies pending migrations and returns them.
func (s *Store) Migrate(ctx context.Context) (done []Migration, err error) {
	// Most starts find nothing to do, and should not wait for an import.
	steps, err := s.Migrations(ctx)
	if err != nil || len(pending(steps)) == 0 {
		return nil, err
	}
	err = s.inMigrationTx(ctx, func(tx *sql.Tx) error {
		steps, err := s.steps(ctx, tx)
		if err != nil {
			return err
		}
		if err := s.checkEncoding(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, createMigrationTable); err != nil {
			return err
		}
		done = pending(steps)
		for _, m := range done {
			if _, err := tx.ExecContext(ctx, m.sql); err != nil {
				return fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
			}
			if _, err := tx.ExecContext(ctx, recordMigration, m.Version, m.Name, time.Now().UTC().Format(time.RFC3339)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, explain(err)
	}
	return done, nil
}

// inMigrationTx runs do in a transaction while no other migration runs.
//
// SQLite changes a table by building a new one and dropping the old one, which
// must not delete the rows that reference it. So foreign keys are disabled, which
// only works outside a transaction, and checked at the end.
func (s *Store) inMigrationTx(ctx context.Context, do func(*sql.Tx) error) error {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.dialect == dialect.SQLite {
		if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = off"); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = on") }()
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation(sql.LevelReadCommitted)})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect once committed
	if err := s.lock(ctx, tx, migrationLock); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	if s.dialect == dialect.SQLite {
		broken := false
		err := ScanRows(ctx, tx, func(*sql.Rows) error { broken = true; return nil }, "PRAGMA foreign_key_check")
		if err != nil || broken {
			return errors.Join(errors.New("the migration breaks foreign keys"), err)
		}
	}
	return tx.Commit()
}

const (
	createMigrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL)`
	recordMigration      = `INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)`
)

// steps returns the embedded migrations with the times when they were applied.
func (s *Store) steps(ctx context.Context, db Querier) ([]Migration, error) {
	steps, err := embedded(s.dialect)
	if err != nil {
		return nil, err
	}
	exists := `SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'`
	if s.dialect == dialect.Postgres {
		// The system catalog is always current; to_regclass may use a cache that is
		// older than the lock.
		exists = `SELECT 1 FROM pg_tables WHERE tablename = 'schema_migrations' AND schemaname = ANY (current_schemas(false))`
	}
	migrated := false
	err = ScanRows(ctx, db, func(*sql.Rows) error { migrated = true; return nil }, exists)
	if err != nil || !migrated {
		return steps, err
	}
	newest, applied := steps[len(steps)-1].Version, 0
	err = ScanRows(ctx, db, func(rows *sql.Rows) error {
		var version int
		var at string
		if err := rows.Scan(&version, &at); err != nil {
			return err
		}
		if version > newest {
			return &Error{newer: true, Message: fmt.Sprintf(
				"the database is at migration %d, but this version of palmares supports only up to %d: upgrade palmares", version, newest)}
		}
		applied = max(applied, version)
		for i := range steps {
			if steps[i].Version == version {
				steps[i].AppliedAt = at
			}
		}
		return nil
	}, `SELECT version, applied_at FROM schema_migrations`)
	switch {
	case err != nil, applied == 0, applied > upgradable:
		return steps, err
	case applied < upgradable:
		return nil, &Error{Message: fmt.Sprintf("the database is at migration %d, but this version of palmares upgrades only from %d: "+
			"first run palmares migrate up with the last version that has migration %d", applied, upgradable, upgradable)}
	}
	steps[0], err = readMigration(s.dialect, upgradeFile)
	return steps, err
}

// embedded returns the migrations of a new database of a dialect, oldest first.
func embedded(dialectName string) ([]Migration, error) {
	files, err := fs.Glob(migrationFiles, path.Join("migrations", folders[dialectName], "*.sql"))
	if err != nil {
		return nil, err
	}
	var steps []Migration
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".sql")
		if name == upgradeFile {
			continue
		}
		step, err := readMigration(dialectName, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func readMigration(dialectName, file string) (Migration, error) {
	number, name, _ := strings.Cut(file, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return Migration{}, fmt.Errorf("migration file %s must start with a number", file)
	}
	text, err := migrationFiles.ReadFile(path.Join("migrations", folders[dialectName], file+".sql"))
	return Migration{Version: version, Name: name, sql: string(text)}, err
}

func pending(steps []Migration) []Migration {
	return slices.DeleteFunc(slices.Clone(steps), func(m Migration) bool { return m.AppliedAt != "" })
}

// checkEncoding returns an error if a PostgreSQL database cannot store all of
// Unicode.
func (s *Store) checkEncoding(ctx context.Context, db Querier) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	var encoding string
	err := ScanRows(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&encoding) }, "SHOW server_encoding")
	if err == nil && encoding != "UTF8" {
		return newError(WrongEncoding, nil)
	}
	return err
}

// Querier is implemented by clients and transactions.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ScanRows calls scan for each row of a query.
func ScanRows(ctx context.Context, db Querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return explain(err)
		}
	}
	return explain(rows.Err())
}
