package store

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Watch is told when a statement begins, and returns what is to be told when
// it has ended: when its last row was read, where it has rows. It hears the
// statement's text and never its arguments.
type Watch func(ctx context.Context, pool, text string) (ended func(error))

// The pools of connections, by the names that a Watch hears.
const (
	poolReader  = "reader"
	poolWriter  = "writer"
	poolKeys    = "keys"
	poolPrimary = "primary" // what stands in for a replica
)

// Pools are the connections of the store, for who counts them.
func (s *Store) Pools() map[string]*sql.DB {
	pools := map[string]*sql.DB{poolReader: s.reader, poolWriter: s.writer, poolKeys: s.keys}
	if s.replica != nil {
		pools[poolPrimary] = s.replica.primary
	}
	return pools
}

// entDriver is all that ent's clients ask of a driver.
type entDriver interface {
	dialect.Driver
	BeginTx(context.Context, *sql.TxOptions) (dialect.Tx, error)
	plainQuerier
}

// plainQuerier is what statements go through that ent did not write.
type plainQuerier interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// watch puts a Watch before a driver. Where nobody watches, nothing stands in
// the way.
func watch(driver entDriver, pool string, told Watch) dialect.Driver {
	if told == nil {
		return driver
	}
	return &watchedDriver{entDriver: driver, watched: watched{driver, driver, pool, told}}
}

type watchedDriver struct {
	entDriver
	watched
}

// Exec is called by ent for statements without rows.
func (d *watchedDriver) Exec(ctx context.Context, text string, args, v any) error {
	return d.watched.Exec(ctx, text, args, v)
}

// Query is called by ent for statements with rows.
func (d *watchedDriver) Query(ctx context.Context, text string, args, v any) error {
	return d.watched.Query(ctx, text, args, v)
}

// ExecContext runs a statement as it is.
func (d *watchedDriver) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return d.watched.ExecContext(ctx, text, args...)
}

// QueryContext runs a statement as it is.
func (d *watchedDriver) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return d.watched.QueryContext(ctx, text, args...)
}

// Tx begins a transaction.
func (d *watchedDriver) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

// BeginTx begins a transaction whose statements are watched, too.
func (d *watchedDriver) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	tx, err := d.entDriver.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	plain, ok := tx.(plainQuerier)
	if !ok {
		return tx, nil
	}
	return &watchedTx{watched{tx, plain, d.pool, d.told}, tx, ctx}, nil
}

type watchedTx struct {
	watched
	tx  dialect.Tx
	ctx context.Context // that it was begun with: Commit gets none
}

// Commit is where writes wait for the disk.
func (t *watchedTx) Commit() error {
	ended := t.told(t.ctx, t.pool, "COMMIT")
	err := t.tx.Commit()
	ended(err)
	return err
}

// Rollback tells nobody: mostly there is nothing to roll back any more.
func (t *watchedTx) Rollback() error { return t.tx.Rollback() }

// watched are the ways to run a statement, on connections or in a transaction.
type watched struct {
	ent   dialect.ExecQuerier
	plain plainQuerier
	pool  string
	told  Watch
}

// Exec is called by ent for statements without rows.
func (w *watched) Exec(ctx context.Context, text string, args, v any) error {
	ended := w.told(ctx, w.pool, text)
	err := w.ent.Exec(ctx, text, args, v)
	ended(err)
	return err
}

// Query is called by ent for statements with rows.
func (w *watched) Query(ctx context.Context, text string, args, v any) error {
	ended := w.told(ctx, w.pool, text)
	err := w.ent.Query(ctx, text, args, v)
	rows, ok := v.(*entsql.Rows)
	if err != nil || !ok || rows.ColumnScanner == nil {
		ended(err)
		return err
	}
	rows.ColumnScanner = &watchedRows{rows.ColumnScanner, ended}
	return nil
}

// ExecContext runs a statement as it is.
func (w *watched) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ended := w.told(ctx, w.pool, text)
	result, err := w.plain.ExecContext(ctx, text, args...)
	ended(err)
	return result, err
}

// QueryContext runs a statement as it is. Its rows are read out of our sight.
func (w *watched) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	ended := w.told(ctx, w.pool, text)
	rows, err := w.plain.QueryContext(ctx, text, args...)
	ended(err)
	return rows, err
}

// watchedRows tell when they were read: SQLite works while they are.
type watchedRows struct {
	entsql.ColumnScanner
	ended func(error) // nil once it was told
}

// Close is called when nobody wants more rows.
func (r *watchedRows) Close() error {
	err := r.ColumnScanner.Close()
	if r.ended != nil {
		r.ended(r.Err())
		r.ended = nil
	}
	return err
}
