// Package store opens the one database of palmares, PostgreSQL or embedded
// SQLite, migrates it and tells when its catalog changes. It knows nothing of
// feeds, requests or pages: what to read and write is its callers' business.
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
	"palmares/ent/release"
)

// Config says where the data lives.
type Config struct {
	DatabaseURL string // postgres://…; empty for SQLite in DataDir
	ReadURL     string // a replica to read the catalog from; empty for none
	DataDir     string
	MustExist   bool          // do not make a new embedded database
	ForImport   bool          // much is going to be written: take the memory for it
	LockWait    time.Duration // for another process's import or migration; 10 s if zero
	PollEvery   time.Duration // for new releases where no notification comes; 1 s if zero
	Watch       Watch         // hears of statements; nil for nobody
}

const (
	defaultLockWait  = 10 * time.Second
	defaultPollEvery = time.Second // one indexed row is read each time
)

// Store is an open database. Reads and writes have clients of their own:
// SQLite wants a single writer beside its readers, and PostgreSQL's readers may
// sit on a replica.
type Store struct {
	Read  *ent.Client
	Write *ent.Client
	// Keys is for looking up who calls: long questions, which take all the
	// readers' connections, must not keep a key from being refused.
	Keys *ent.Client

	dialect string
	url     string      // PostgreSQL only, for the listener
	path    string      // SQLite only
	file    os.FileInfo // SQLite only: what path named when it was opened
	reader  *sql.DB
	writer  *sql.DB
	keys    *sql.DB

	replica *replica // nil where readers read what is written to

	readDriver *readDriver
	reading    dialect.Driver              // the same, watched if anybody does
	told       Watch                       // nil for nobody
	newest     atomic.Pointer[ent.Release] // the newest that was seen

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
	s.readDriver = newReadDriver(s.dialect, s.reader)
	s.told = cfg.Watch
	s.reading = watch(s.readDriver, poolReader, cfg.Watch)
	s.Read = ent.NewClient(ent.Driver(s.reading))
	s.Write = ent.NewClient(ent.Driver(watch(entsql.OpenDB(s.dialect, s.writer), poolWriter, cfg.Watch)))
	s.Keys = ent.NewClient(ent.Driver(watch(entsql.OpenDB(s.dialect, s.keys), poolKeys, cfg.Watch)))
	if err := s.connect(ctx); err != nil {
		s.Close()
		if said := explain(err); said != err || ctx.Err() != nil {
			return nil, said
		}
		return nil, &Fault{Message: saidOther, Cause: err}
	}
	if err := s.rememberFile(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect tries to, for as long as another process makes the same new SQLite
// database: that does not wait by itself where two could wait for each other.
func (s *Store) connect(ctx context.Context) error {
	for deadline := time.Now().Add(s.lockWait); ; {
		err := s.writer.PingContext(ctx)
		if meaning(err) != saidBusy || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Client is the Read client, for those who know a store by an interface.
func (s *Store) Client() *ent.Client { return s.Read }

// Dialect names the database's kind of SQL, as ent does.
func (s *Store) Dialect() string { return s.dialect }

// Close releases every connection.
func (s *Store) Close() error {
	err := errors.Join(s.reader.Close(), s.writer.Close(), s.keys.Close())
	if s.replica != nil {
		err = errors.Join(err, s.replica.primary.Close())
	}
	return err
}

// Describe names the kind of database, without its address or credentials.
func (s *Store) Describe() string {
	if s.dialect == dialect.Postgres {
		return "PostgreSQL"
	}
	return "embedded SQLite"
}

// Ready answers whether the database can be reached and fits this program. It
// answers when ctx ends, also where the database does not.
func (s *Store) Ready(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() { answered <- errors.Join(s.sameFile(), s.stillFits(ctx)) }()
	select {
	case err := <-answered:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return &Fault{Message: saidLost, Cause: ctx.Err()}
}

// NewestRelease reads it through any client, a transaction's too.
func NewestRelease(ctx context.Context, releases *ent.ReleaseClient) (*ent.Release, error) {
	rel, err := releases.Query().Order(release.ByID(entsql.OrderDesc())).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return rel, err
}

// isolation must be asked of PostgreSQL, whose default an operator may have
// changed; a SQLite transaction has only the one.
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
	defer func() { _ = tx.Rollback() }() // also after a panic; does nothing once it is committed
	if err := do(tx); err != nil {
		return interrupted(ctx, err)
	}
	err = tx.Commit()
	if gaveUp := interrupted(ctx, err); gaveUp != err {
		return gaveUp
	}
	if meaning(err) == saidLost {
		return &Fault{Message: saidUnsure, Cause: err, Unsure: true}
	}
	return err
}

// interrupted is the reason of who gave up, where the driver only tells what
// became of it: a statement that was cancelled, a transaction rolled back.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && (meaning(err) == saidSlow || errors.Is(err, sql.ErrTxDone)) {
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
