package store

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// JobDriver lets River keep its jobs in this database, so that a job can be
// written in the transaction of what it follows from.
func (s *Store) JobDriver() riverdriver.Driver[*sql.Tx] {
	if s.dialect == dialect.Postgres {
		return riverdatabasesql.New(s.writer)
	}
	return riversqlite.New(s.writer)
}

// jobsVersion is the newest of River's migrations that this program knows. A
// test holds it against the library.
const jobsVersion = 6

// jobsMigrated tells whether River's tables are as this program needs them.
func (s *Store) jobsMigrated(ctx context.Context, db querier) (bool, error) {
	exists := `SELECT count(*) FROM sqlite_master WHERE name = 'river_migration'`
	if s.dialect == dialect.Postgres {
		exists = `SELECT count(*) FROM pg_tables WHERE tablename = 'river_migration' AND schemaname = ANY (current_schemas(false))`
	}
	var tables, version int
	if err := scanAll(ctx, db, exists, func(rows *sql.Rows) error { return rows.Scan(&tables) }); err != nil || tables == 0 {
		return false, err
	}
	err := scanAll(ctx, db, `SELECT coalesce(max(version), 0) FROM river_migration`, func(rows *sql.Rows) error { return rows.Scan(&version) })
	return version >= jobsVersion, err
}

// migrateJobs brings River's own tables up to date.
func (s *Store) migrateJobs(ctx context.Context) error {
	done, err := s.jobsMigrated(ctx, s.Current())
	if err != nil || done {
		return err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(s.JobDriver(), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	return s.withJobsLock(ctx, func() error {
		// Each step has a transaction of its own: PostgreSQL cannot use a new
		// value of an enum in the one that adds it. What is interrupted, the
		// next start finishes.
		if done, err := s.jobsMigrated(ctx, s.Write); err != nil || done {
			return err
		}
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: jobsVersion})
		return err
	})
}

// withJobsLock makes other processes that migrate wait. SQLite has no lock
// for more than a transaction: there, who was overtaken in the middle tries
// again, and finds it done.
func (s *Store) withJobsLock(ctx context.Context, do func() error) error {
	if s.dialect == dialect.SQLite {
		err := do()
		for deadline := time.Now().Add(s.lockWait); err != nil && ctx.Err() == nil && time.Now().Before(deadline); err = do() {
			time.Sleep(20 * time.Millisecond)
		}
		return err
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", jobsLock); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", jobsLock) }()
	return do()
}
