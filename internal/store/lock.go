package store

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"

	"palmares/ent"
)

// Advisory locks of PostgreSQL; the numbers only have to differ.
const (
	migrationLock = 7_061_001
	importLock    = 7_061_002
)

// releaseChannel carries a notification for each published release.
const releaseChannel = "palmares_release"

// Exclusive runs write in a transaction that no other Exclusive, in this or
// another process, runs beside. It waits a while for its turn.
func (s *Store) Exclusive(ctx context.Context, write func(*ent.Tx) error) error {
	return s.locked(ctx, importLock, write)
}

func (s *Store) locked(ctx context.Context, lock int, write func(*ent.Tx) error) error {
	return explain(inTx(ctx, s.Write, nil, func(tx *ent.Tx) error {
		// A SQLite write transaction is immediate: it is the lock.
		if s.dialect == dialect.Postgres {
			statement := fmt.Sprintf("SET LOCAL lock_timeout = %d; SELECT pg_advisory_xact_lock(%d)", s.lockWait.Milliseconds(), lock)
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return write(tx)
	}))
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
