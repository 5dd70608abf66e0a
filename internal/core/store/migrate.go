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
// edited once released. `make migration` writes new ones.
//
// The runner is our own because all that is missing must go in as one
// transaction under one lock, on SQLite as on PostgreSQL: ten processes that
// start at once then migrate once, and a failure leaves nothing half done.
//
//go:embed migrations
var migrationFiles embed.FS

// Migration is one step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt string // RFC 3339; empty while it is pending
	sql       string
}

// Migrations lists every step this program knows, with when it was applied.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	applied, err := s.applied(ctx, s.Current())
	if err != nil {
		return nil, explain(err)
	}
	return s.known(applied)
}

// CheckMigrated fails when migrations are missing or the database is newer
// than this program.
func (s *Store) CheckMigrated(ctx context.Context) error {
	steps, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	if n := len(pending(steps)); n > 0 {
		return &Fault{Message: fmt.Sprintf("the database lacks %d migration(s): run palmares migrate up", n)}
	}
	return nil
}

// stillFits is CheckMigrated for who serves already. A newer palmares may have
// taken the database further since: that is how an upgrade begins, and what it
// does must suit the one before it until that is replaced, too.
func (s *Store) stillFits(ctx context.Context) error {
	err := s.CheckMigrated(ctx)
	var fault *Fault
	if errors.As(err, &fault) && fault.newer {
		return nil
	}
	return err
}

// Migrate applies what is missing and returns it.
func (s *Store) Migrate(ctx context.Context) ([]Migration, error) {
	// Most starts find nothing to do, and must not wait for an import to see it.
	steps, err := s.Migrations(ctx)
	if err != nil {
		return nil, err
	}
	if len(pending(steps)) == 0 {
		return nil, nil
	}
	var done []Migration
	err = s.migrating(ctx, func(tx *sql.Tx) error {
		applied, err := s.applied(ctx, tx)
		if err != nil {
			return err
		}
		steps, err := s.known(applied)
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

// migrating runs do in a transaction that no other migration runs beside.
//
// SQLite changes a table by building it anew and dropping the old one, which
// must not take along the rows that refer to it: foreign keys are off
// meanwhile, which only works outside of a transaction, and checked at its end.
func (s *Store) migrating(ctx context.Context, do func(*sql.Tx) error) error {
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
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := s.waitForTurn(ctx, tx, migrationLock); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	if s.dialect == dialect.SQLite {
		broken := false
		err := scanAll(ctx, tx, "PRAGMA foreign_key_check", func(*sql.Rows) error { broken = true; return nil })
		if err != nil || broken {
			return errors.Join(errors.New("the migration breaks references"), err)
		}
	}
	return tx.Commit()
}

const (
	createMigrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL)`
	recordMigration      = `INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)`
	listMigrations       = `SELECT version, applied_at FROM schema_migrations`
)

// known joins the embedded steps with what was applied.
func (s *Store) known(applied map[int]string) ([]Migration, error) {
	steps, err := embedded(s.dialect)
	if err != nil {
		return nil, err
	}
	newest := steps[len(steps)-1].Version
	for version := range applied {
		if version > newest {
			return nil, &Fault{newer: true, Message: fmt.Sprintf(
				"the database is at migration %d and this palmares knows only %d: use a newer palmares", version, newest)}
		}
	}
	for i := range steps {
		steps[i].AppliedAt = applied[steps[i].Version]
	}
	return steps, nil
}

// embedded reads the migration files of one dialect, oldest first.
func embedded(dialectName string) ([]Migration, error) {
	files, err := fs.Glob(migrationFiles, path.Join("migrations", migrationFolder(dialectName), "*.sql"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	steps := make([]Migration, 0, len(files))
	for _, file := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration file %s has no number", file)
		}
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		steps = append(steps, Migration{Version: version, Name: name, sql: string(text)})
	}
	return steps, nil
}

func migrationFolder(dialectName string) string {
	if dialectName == dialect.SQLite {
		return "sqlite"
	}
	return "postgres"
}

func pending(steps []Migration) []Migration {
	return slices.DeleteFunc(slices.Clone(steps), func(m Migration) bool { return m.AppliedAt != "" })
}

// applied maps each applied version to its time; empty on a new database.
func (s *Store) applied(ctx context.Context, db querier) (map[int]string, error) {
	exists := `SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'`
	if s.dialect == dialect.Postgres {
		// Read as a table, the system catalog is as fresh as the statement;
		// to_regclass may answer from a cache older than the lock we waited for.
		exists = `SELECT count(*) FROM pg_tables WHERE tablename = 'schema_migrations' AND schemaname = ANY (current_schemas(false))`
	}
	applied := map[int]string{}
	var tables int
	if err := scanAll(ctx, db, exists, func(rows *sql.Rows) error { return rows.Scan(&tables) }); err != nil || tables == 0 {
		return applied, err
	}
	err := scanAll(ctx, db, listMigrations, func(rows *sql.Rows) error {
		var version int
		var at string
		if err := rows.Scan(&version, &at); err != nil {
			return err
		}
		applied[version] = at
		return nil
	})
	return applied, err
}

// checkEncoding refuses a PostgreSQL database that cannot hold every text.
func (s *Store) checkEncoding(ctx context.Context, db querier) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	var encoding string
	err := scanAll(ctx, db, "SHOW server_encoding", func(rows *sql.Rows) error { return rows.Scan(&encoding) })
	if err == nil && encoding != "UTF8" {
		return &Fault{Message: saidEncoding}
	}
	return err
}

// querier is what a client and a transaction have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func scanAll(ctx context.Context, db querier, query string, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
