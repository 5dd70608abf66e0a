// Package store opens the one database of palmares, PostgreSQL or embedded
// SQLite, migrates it and tells when its catalog changes. It knows nothing of
// feeds, requests or pages: what to read and write is its callers' business.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/release"
)

// Config says where the data lives.
type Config struct {
	DatabaseURL string // postgres://…; empty for SQLite in DataDir
	DataDir     string
	LockWait    time.Duration // for another process's import or migration; 10 s if zero
}

const defaultLockWait = 10 * time.Second

// Store is an open database. Reads and writes have clients of their own:
// SQLite wants a single writer beside its readers, and PostgreSQL readers may
// one day sit on a replica.
type Store struct {
	Read  *ent.Client
	Write *ent.Client

	dialect  string
	url      string // PostgreSQL only, for the listener
	lockWait time.Duration
	reader   *sql.DB
	writer   *sql.DB
}

// Open connects to the database without changing it; see Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.LockWait == 0 {
		cfg.LockWait = defaultLockWait
	}
	open := openSQLite
	if cfg.DatabaseURL != "" {
		open = openPostgres
	}
	s, err := open(cfg)
	if err != nil {
		return nil, explain(err)
	}
	s.lockWait = cfg.LockWait
	s.Read = ent.NewClient(ent.Driver(entsql.OpenDB(s.dialect, s.reader)))
	s.Write = ent.NewClient(ent.Driver(entsql.OpenDB(s.dialect, s.writer)))
	if err := s.writer.PingContext(ctx); err != nil {
		s.Close()
		return nil, explain(err)
	}
	return s, nil
}

// Close releases every connection.
func (s *Store) Close() error {
	if s.reader == s.writer {
		return s.writer.Close()
	}
	return errors.Join(s.reader.Close(), s.writer.Close())
}

// Describe names the kind of database, without its address or credentials.
func (s *Store) Describe() string {
	if s.dialect == dialect.Postgres {
		return "PostgreSQL"
	}
	return "embedded SQLite"
}

// Ready answers whether the database can be reached and fits this program.
func (s *Store) Ready(ctx context.Context) error {
	return s.CheckMigrated(ctx)
}

// CurrentRelease is the newest release, or nil before the first import.
func (s *Store) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	rel, err := NewestRelease(ctx, s.Read.Release)
	return rel, explain(err)
}

// NewestRelease reads it through any client, a transaction's too.
func NewestRelease(ctx context.Context, releases *ent.ReleaseClient) (*ent.Release, error) {
	rel, err := releases.Query().Order(release.ByID(entsql.OrderDesc())).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return rel, err
}

// Snapshot runs read in a transaction that sees one release of the catalog
// from its first statement to its last; nil before the first import.
func (s *Store) Snapshot(ctx context.Context, read func(*ent.Tx, *ent.Release) error) error {
	opts := &sql.TxOptions{ReadOnly: true, Isolation: s.snapshotIsolation()}
	return explain(inTx(ctx, s.Read, opts, func(tx *ent.Tx) error {
		release, err := NewestRelease(ctx, tx.Release)
		if err != nil {
			return err
		}
		return read(tx, release)
	}))
}

// snapshotIsolation is what keeps a transaction on one state: PostgreSQL must
// be asked, a SQLite transaction has no other way.
func (s *Store) snapshotIsolation() sql.IsolationLevel {
	if s.dialect == dialect.Postgres {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault
}

func inTx(ctx context.Context, client *ent.Client, opts *sql.TxOptions, do func(*ent.Tx) error) error {
	tx, err := client.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		// The transaction is lost either way; the first error is the one to tell.
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
