package store

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"

	"palmares/ent"
)

// Advisory locks of PostgreSQL; the numbers only have to differ.
const (
	migrationLock = 7_061_001
	importLock    = 7_061_002
	orderLock     = 7_061_003
)

// releaseChannel carries a notification for each published release.
const releaseChannel = "palmares_release"

// Exclusive runs write in a transaction while no other Exclusive runs, in this
// or another process; it waits for them for a while.
func (s *Store) Exclusive(ctx context.Context, write func(*ent.Tx) error) error {
	return s.updateLocked(ctx, importLock, write)
}

// Sequential runs write in a transaction while no other Sequential runs, in this or
// another process: what it counts stays true until its end.
func (s *Store) Sequential(ctx context.Context, write func(*ent.Tx) error) error {
	return s.updateLocked(ctx, orderLock, write)
}

func (s *Store) updateLocked(ctx context.Context, lock int, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if err := s.lock(ctx, tx, lock); err != nil {
			return err
		}
		return write(tx)
	})
}

// lock takes an advisory lock until the transaction ends. A SQLite write
// transaction is immediate, so it has the lock already.
func (s *Store) lock(ctx context.Context, tx executor, lock int) error {
	return s.onPostgres(ctx, tx, fmt.Sprintf("SET LOCAL lock_timeout = %d; SELECT pg_advisory_xact_lock(%d)", s.lockWait.Milliseconds(), lock))
}

// executor is what transactions of ent and of database/sql have in common.
type executor interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// onPostgres runs a statement that SQLite does not need.
func (s *Store) onPostgres(ctx context.Context, on executor, statement string, args ...any) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	_, err := on.ExecContext(ctx, statement, args...)
	return err
}

// Analyze updates the statistics of PostgreSQL's planner after an import.
// Until it does so by itself, it may sort whole tables instead of using an
// index.
func (s *Store) Analyze(ctx context.Context, tx *ent.Tx) error {
	return s.onPostgres(ctx, tx, "ANALYZE categories, tools, sections, price_changes, comparisons, tool_search, journal_entries")
}

// NotifyRelease notifies watching servers of a release when tx commits. On SQLite
// they poll.
func (s *Store) NotifyRelease(ctx context.Context, tx *ent.Tx, release int) error {
	return s.onPostgres(ctx, tx, "SELECT pg_notify($1, $2)", releaseChannel, fmt.Sprint(release))
}

// SyncSequence makes PostgreSQL continue after the highest id of a table whose rows
// were inserted with ids, as SQLite does by itself: an older program, which
// lets the database assign ids, must not get used ones.
func (s *Store) SyncSequence(ctx context.Context, tx *ent.Tx, table string) error {
	return s.onPostgres(ctx, tx, "SELECT setval(pg_get_serial_sequence($1, 'id'), max(id)) FROM "+pq.QuoteIdentifier(table), table)
}

// Update runs write in a transaction.
func (s *Store) Update(ctx context.Context, write func(*ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: s.isolation(sql.LevelReadCommitted)}
	return explain(inTx(ctx, s.Write, opts, write))
}

// WithRowLock runs write in a transaction that locks a row. On SQLite all writes are
// sequential.
func (s *Store) WithRowLock(ctx context.Context, table string, id int, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if err := s.onPostgres(ctx, tx, fmt.Sprintf("SELECT 1 FROM %s WHERE id = $1 FOR UPDATE", table), id); err != nil {
			return err
		}
		return write(tx)
	})
}
