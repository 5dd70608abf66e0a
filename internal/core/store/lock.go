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

// Exclusive runs write in a transaction that no other Exclusive, in this or
// another process, runs beside. It waits a while for its turn.
func (s *Store) Exclusive(ctx context.Context, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if err := s.waitForTurn(ctx, tx, importLock); err != nil {
			return err
		}
		return write(tx)
	})
}

// waitForTurn takes a lock that goes with the transaction. A SQLite write
// transaction is immediate: it is the lock.
func (s *Store) waitForTurn(ctx context.Context, tx executor, lock int) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	statement := fmt.Sprintf("SET LOCAL lock_timeout = %d; SELECT pg_advisory_xact_lock(%d)", s.lockWait.Milliseconds(), lock)
	_, err := tx.ExecContext(ctx, statement)
	return err
}

// executor is what transactions of ent and of database/sql have in common.
type executor interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// Analyze tells PostgreSQL's planner what an import has just changed: until it
// finds out by itself, it may sort whole tables where an index is at hand.
// SQLite picks the same indexes without.
func (s *Store) Analyze(ctx context.Context, tx *ent.Tx) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, "ANALYZE categories, tools, sections, price_changes, comparisons, comparison_categories, journal_entries")
	return err
}

// Tidy lets PostgreSQL read from its indexes alone what an import has changed;
// it would come to that by itself, a minute later. What is not done now is
// done then.
func (s *Store) Tidy(ctx context.Context) {
	if s.dialect == dialect.Postgres {
		_, _ = s.writer.ExecContext(ctx, "VACUUM tools, comparisons")
	}
}

// Announce tells the watching servers of a release when tx commits. On SQLite
// they find out by themselves.
func (s *Store) Announce(ctx context.Context, tx *ent.Tx, release int) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", releaseChannel, fmt.Sprint(release))
	return err
}

// CountOn makes PostgreSQL number on from the newest row of a table whose rows
// were given numbers: a program of before, which lets the database number, must
// not begin below. SQLite does so by itself.
func (s *Store) CountOn(ctx context.Context, tx *ent.Tx, table string) error {
	if s.dialect != dialect.Postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT setval(pg_get_serial_sequence($1, 'id'), max(id)) FROM "+pq.QuoteIdentifier(table), table)
	return err
}

// Update runs write in a transaction.
func (s *Store) Update(ctx context.Context, write func(*ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: s.isolation(sql.LevelReadCommitted)}
	return explain(inTx(ctx, s.Write, opts, write))
}

// OneByOne runs write in a transaction that no other OneByOne, in this or
// another process, runs beside: what it counts stays true until its end.
func (s *Store) OneByOne(ctx context.Context, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if err := s.waitForTurn(ctx, tx, orderLock); err != nil {
			return err
		}
		return write(tx)
	})
}

// InTurn runs write in a transaction in which a row is locked: others that
// want its turn wait. On SQLite every write waits for every other.
func (s *Store) InTurn(ctx context.Context, table string, id int, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if s.dialect == dialect.Postgres {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT 1 FROM %s WHERE id = $1 FOR UPDATE", table), id); err != nil {
				return err
			}
		}
		return write(tx)
	})
}
