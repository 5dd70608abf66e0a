// Package store opens the database, PostgreSQL or embedded SQLite, migrates it
// and reports new releases of its catalog. It knows nothing of feeds, requests
// or pages.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
)

// Config selects the database.
type Config struct {
	DatabaseURL string // postgres://…; empty for SQLite in DataDir
	ReadURL     string // of a replica to read the catalog from; empty for none
	DataDir     string
	MustExist   bool          // do not create a new embedded database
	ForImport   bool          // use more memory for many writes
	LockWait    time.Duration // for another process's import or migration; 10 s if zero
	PollEvery   time.Duration // for new releases without notifications; 1 s if zero
	Watch       Watch         // observes statements; nil for none
}

const (
	defaultLockWait  = 10 * time.Second
	defaultPollEvery = time.Second // each poll reads one indexed row
)

// Store is an open database. Reads and writes have separate clients, because
// SQLite needs a single writer and PostgreSQL's readers may use a replica.
type Store struct {
	Read  *ent.Client
	Write *ent.Client
	// Keys looks up API keys on connections of its own, so that slow queries
	// which take all connections of Read do not delay authentication.
	Keys *ent.Client

	dialect string
	url     string      // PostgreSQL only, for the listener
	path    string      // SQLite only
	file    os.FileInfo // SQLite only: of path when it was opened
	reader  *sql.DB
	writer  *sql.DB
	keys    *sql.DB

	replica    *replica // nil if reader is the primary
	readDriver *readDriver
	newest     atomic.Pointer[ent.Release] // the newest known

	watched             atomic.Bool // Watch is running
	lockWait, pollEvery time.Duration
}

// Open connects to the database without changing it; see Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.LockWait = cmp.Or(cfg.LockWait, defaultLockWait)
	cfg.PollEvery = cmp.Or(cfg.PollEvery, defaultPollEvery)
	open := openSQLite
	if cfg.DatabaseURL != "" {
		open = openPostgres
	}
	s, err := open(cfg)
	if err != nil {
		return nil, explain(err)
	}
	s.lockWait = cfg.LockWait
	s.readDriver = &readDriver{entsql.OpenDB(s.dialect, s.reader)}
	s.Read = ent.NewClient(ent.Driver(s.readDriver))
	s.Write = ent.NewClient(ent.Driver(entsql.OpenDB(s.dialect, s.writer)))
	s.Keys = ent.NewClient(ent.Driver(entsql.OpenDB(s.dialect, s.keys)))
	if err := s.connect(ctx); err != nil {
		s.Close()
		if explained := explain(err); explained != err || ctx.Err() != nil {
			return nil, explained
		}
		return nil, &Fault{Message: messageOther, Cause: err}
	}
	if err := s.rememberFile(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect retries while another process creates the same SQLite database, for
// which SQLite itself does not wait if that could deadlock.
func (s *Store) connect(ctx context.Context) error {
	for deadline := time.Now().Add(s.lockWait); ; {
		err := s.writer.PingContext(ctx)
		if meaning(err) != messageBusy || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Client returns the Read client, for interfaces.
func (s *Store) Client() *ent.Client { return s.Read }

// Dialect returns the SQL dialect, as ent names it.
func (s *Store) Dialect() string { return s.dialect }

// Close closes every connection.
func (s *Store) Close() error {
	err := errors.Join(s.reader.Close(), s.writer.Close(), s.keys.Close())
	if s.replica != nil {
		err = errors.Join(err, s.replica.primary.Close())
	}
	return err
}

// Describe returns the kind of database, without its address or credentials.
func (s *Store) Describe() string {
	if s.dialect == dialect.Postgres {
		return "PostgreSQL"
	}
	return "embedded SQLite"
}

// Ready returns an error unless the database can be reached and fits this
// program. It returns when ctx ends, even if the database hangs.
func (s *Store) Ready(ctx context.Context) error {
	result := make(chan error, 1)
	go func() { result <- errors.Join(s.sameFile(), s.stillFits(ctx)) }()
	select {
	case err := <-result:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return &Fault{Message: messageLost, Cause: ctx.Err()}
}

// isolation returns a level for PostgreSQL, whose default an operator may have
// changed. SQLite transactions have only one.
func (s *Store) isolation(level sql.IsolationLevel) sql.IsolationLevel {
	if s.dialect == dialect.Postgres {
		return level
	}
	return sql.LevelDefault
}

func inTx(ctx context.Context, client *ent.Client, opts *sql.TxOptions, do func(*ent.Tx) error) error {
	tx, err := client.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // also after a panic; no effect once committed
	if err := do(tx); err != nil {
		return interrupted(ctx, err)
	}
	err = tx.Commit()
	if cancelled := interrupted(ctx, err); cancelled != err {
		return cancelled
	}
	if meaning(err) == messageLost {
		return &Fault{Message: messageUnsure, Cause: err, Unsure: true}
	}
	return err
}

// interrupted adds the context's error, where the driver only reports its
// consequence: a cancelled statement or a transaction that is rolled back.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && (meaning(err) == messageSlow || errors.Is(err, sql.ErrTxDone)) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// Secret returns a random value that all servers of the database share.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	row, err := s.Write.Secret.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", name, err)
	}
	return row.Value, nil
}

// ErrNotEmbedded is the error of a backup of PostgreSQL.
var ErrNotEmbedded = errors.New("PostgreSQL has its own tools for backups: use pg_dump, as deploy/README.md says")

// Backup writes a consistent copy of the embedded database to a file that is
// new or empty, while others may read and write.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.dialect != dialect.SQLite {
		return ErrNotEmbedded
	}
	_, err := s.writer.ExecContext(ctx, "VACUUM INTO $1", file)
	return explain(err)
}

// ClockOffset returns how far the database server's clock is ahead of now; 0
// for SQLite, which has no clock of its own.
func (s *Store) ClockOffset(ctx context.Context, now time.Time) (time.Duration, error) {
	if s.dialect != dialect.Postgres {
		return 0, nil
	}
	var seconds float64
	if err := s.keys.QueryRowContext(ctx, "SELECT extract(epoch FROM clock_timestamp())::float8").Scan(&seconds); err != nil {
		return 0, explain(err)
	}
	return time.UnixMicro(int64(seconds * 1e6)).Sub(now), nil
}
