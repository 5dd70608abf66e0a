// Package store opens the database (PostgreSQL or embedded SQLite), migrates it
// and detects new releases of the catalog. It does not depend on feeds, requests or
// pages.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
)

// Config selects the database.
type Config struct {
	DatabaseURL string // postgres://…; empty for SQLite in DataDir
	DataDir     string
	MustExist   bool          // do not create a new embedded database
	ForImport   bool          // use more memory for many writes
	LockWait    time.Duration // how long to wait for another import or migration; 10 s if zero
	PollEvery   time.Duration // interval of polls for new releases; 1 s if zero
	OnStatement StatementHook // nil for none
}

const (
	defaultLockWait  = 10 * time.Second
	defaultPollEvery = time.Second // each poll reads one indexed row
)

// Store is an open database. Reads and writes have separate clients, because
// SQLite needs a single writer.
type Store struct {
	Read  *ent.Client
	Write *ent.Client
	// Keys looks up API keys on separate connections, so that slow queries that
	// occupy all connections of Read do not delay authentication.
	Keys *ent.Client

	dialect string
	url     string                 // PostgreSQL only, for the listener
	path    string                 // SQLite only
	files   map[string]os.FileInfo // SQLite only: by path, when they were opened
	reader  *sql.DB
	writer  *sql.DB
	keys    *sql.DB

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
	s.Read = newClient(entsql.OpenDB(s.dialect, s.reader))
	s.Write = newClient(entsql.OpenDB(s.dialect, s.writer))
	s.Keys = newClient(entsql.OpenDB(s.dialect, s.keys))
	if err := s.connect(ctx); err != nil {
		s.Close()
		if explained := explain(err); explained != err || ctx.Err() != nil {
			return nil, explained
		}
		return nil, newError(Failed, err)
	}
	if err := s.recordFile(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// newClient returns a client whose database errors are of type Error.
func newClient(driver dialect.Driver) *ent.Client {
	client := ent.NewClient(ent.Driver(driver))
	client.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, query ent.Query) (ent.Value, error) {
			found, err := next.Query(ctx, query)
			return found, explain(err)
		})
	}))
	client.Use(func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, mutation ent.Mutation) (ent.Value, error) {
			saved, err := next.Mutate(ctx, mutation)
			return saved, explain(err)
		})
	})
	return client
}

// connect retries while another process creates the same SQLite database. SQLite
// itself does not wait for that if it could cause a deadlock.
func (s *Store) connect(ctx context.Context) error {
	for deadline := time.Now().Add(s.lockWait); ; {
		_, err := s.writer.ExecContext(ctx, s.firstStatement())
		if codeOf(err) != Busy || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Client returns the Read client. It implements interfaces of other packages.
func (s *Store) Client() *ent.Client { return s.Read }

// Dialect returns the SQL dialect, as ent names it.
func (s *Store) Dialect() string { return s.dialect }

// Close closes every connection.
func (s *Store) Close() error {
	return errors.Join(s.reader.Close(), s.writer.Close(), s.keys.Close())
}

// Describe returns the kind of database, without its address or credentials.
func (s *Store) Describe() string {
	if s.dialect == dialect.Postgres {
		return "PostgreSQL"
	}
	return "embedded SQLite"
}

// Ready returns an error unless the database responds and is compatible with this
// program.
func (s *Store) Ready(ctx context.Context) error {
	err := s.checkSameFile()
	if err == nil { // a replaced file may look damaged
		err = s.checkCompatible(ctx)
	}
	if ctx.Err() != nil {
		return newError(Lost, ctx.Err())
	}
	return err
}

// isolation returns level for PostgreSQL, whose default an operator may have
// changed. SQLite has only one isolation level.
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
	if canceled := interrupted(ctx, err); canceled != err {
		return canceled
	}
	if codeOf(err) == Lost {
		return &Error{Code: CommitLost, Message: string(CommitLost), Cause: err, CommitUnknown: true}
	}
	return err
}

// interrupted adds the context's error if the driver only reports its consequence:
// a canceled statement or a transaction that was rolled back.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) && (codeOf(err) == Slow || errors.Is(err, sql.ErrTxDone)) {
		return fmt.Errorf("%w: %v", ctx.Err(), err) // not an *Error
	}
	return err
}

// Secret returns a random value that all servers with this database share.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	row, err := s.Write.Secret.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", name, err)
	}
	return row.Value, nil
}

// ErrNotEmbedded is returned by Backup for PostgreSQL.
var ErrNotEmbedded = errors.New("only the embedded database can be backed up with this command: use pg_dump for PostgreSQL (see deploy/README.md)")

// Backup writes a consistent copy of the embedded database to a new or empty file.
// The database can be read and written in the meantime.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.dialect != dialect.SQLite {
		return ErrNotEmbedded
	}
	_, err := s.writer.ExecContext(ctx, "VACUUM INTO $1", file)
	return explain(err)
}

// ClockOffset returns how far the database server's clock is ahead of now. It is 0
// for SQLite, which uses this machine's clock.
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

// Advisory locks of PostgreSQL; the numbers only have to differ.
const (
	migrationLock = 7_061_001
	importLock    = 7_061_002
	orderLock     = 7_061_003
)

// releaseChannel carries a notification for each published release.
const releaseChannel = "palmares_release"

// Exclusive runs write in a transaction while no other Exclusive runs, in this
// or another process. It waits up to Config.LockWait.
func (s *Store) Exclusive(ctx context.Context, write func(*ent.Tx) error) error {
	return s.updateLocked(ctx, importLock, write)
}

// Sequential runs write in a transaction while no other Sequential runs, in this
// or another process, so that anything it counts does not change until it commits.
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
// transaction is immediate, so it already has the lock.
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

// Analyze updates the statistics of PostgreSQL's planner after an import. Until
// autovacuum does so, the planner may sort whole tables instead of using an
// index.
func (s *Store) Analyze(ctx context.Context, tx *ent.Tx) error {
	return s.onPostgres(ctx, tx, "ANALYZE categories, tools, sections, price_changes, comparisons, tool_search, journal_entries, "+
		"categories_versions, tools_versions, sections_versions, price_changes_versions, comparisons_versions")
}

// NotifyRelease notifies servers of a release when tx commits. Servers on SQLite
// poll instead.
func (s *Store) NotifyRelease(ctx context.Context, tx *ent.Tx, release int) error {
	return s.onPostgres(ctx, tx, "SELECT pg_notify($1, $2)", releaseChannel, fmt.Sprint(release))
}

// Update runs write in a transaction.
func (s *Store) Update(ctx context.Context, write func(*ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: s.isolation(sql.LevelReadCommitted)}
	return explain(inTx(ctx, s.Write, opts, write))
}

// WithRowLock runs write in a transaction that locks a row. On SQLite, all writes
// are sequential.
func (s *Store) WithRowLock(ctx context.Context, table string, id int, write func(*ent.Tx) error) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		if err := s.onPostgres(ctx, tx, fmt.Sprintf("SELECT 1 FROM %s WHERE id = $1 FOR UPDATE", table), id); err != nil {
			return err
		}
		return write(tx)
	})
}
