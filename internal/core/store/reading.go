package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/release"
)

// WithRelease runs read with one release of the catalog, or nil before the first
// import. All queries that read makes with its context, through the Read client or
// Select, see that release.
//
// A transaction costs more than most queries. So the first attempt runs without
// one, assuming that the newest known release is still the newest. If a statement
// sees another release, read runs again from the start, in a transaction.
func (s *Store) WithRelease(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	if known := s.newest.Load(); known != nil {
		tracker := &releaseTracker{want: known.ID, same: true}
		err := read(context.WithValue(ctx, readKey{}, &readState{tracker: tracker}), known)
		switch { // also after an error, which may come from mixing two releases
		case !tracker.same:
		case tracker.statements == 0 && s.watched.Load(): // Watch keeps the newest release current
		case !tracker.lastHadRows && !errors.Is(err, ErrNeedsTransaction):
			err = errors.Join(err, s.checkRelease(ctx, tracker))
		}
		if tracker.same && !errors.Is(err, ErrNeedsTransaction) {
			return explain(err)
		}
	}
	return s.readInTx(ctx, read)
}

// Newest returns the newest release without a query, or nil if that requires one.
func (s *Store) Newest() *ent.Release {
	if !s.watched.Load() {
		return nil
	}
	return s.newest.Load()
}

// WithEarlierRelease is WithRelease for a release that is not the newest. Such a
// release never changes, so read needs a transaction only if it queries the
// database. If it does, it runs again in one.
func (s *Store) WithEarlierRelease(ctx context.Context, earlier *ent.Release, read func(context.Context) error) error {
	err := read(context.WithValue(ctx, readKey{}, &readState{earlier: earlier.ID}))
	if !errors.Is(err, ErrNeedsTransaction) {
		return explain(err)
	}
	return s.readInTx(ctx, func(ctx context.Context, newest *ent.Release) error {
		return s.readEarlier(ctx, earlier.ID, newest, func(ctx context.Context) error {
			found, err := s.Read.Release.Get(ctx, earlier.ID)
			if err != nil {
				return err
			}
			if !found.ImportedAt.Equal(earlier.ImportedAt) { // a backup was restored
				return ErrNoRelease
			}
			return read(ctx)
		})
	})
}

// ErrNoRelease is returned for a release that does not exist or was pruned. Errors
// that wrap it add its number and the releases that can be read.
var ErrNoRelease = errors.New("no such release")

// readInTx runs read in a transaction.
func (s *Store) readInTx(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	before := s.newest.Load()
	tx, err := s.reader.BeginTx(ctx, s.snapshotOptions())
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	ctx = context.WithValue(ctx, readKey{}, &readState{tx: tx})
	newest, err := NewestRelease(ctx, s.Read.Release)
	if err != nil {
		return explain(err)
	}
	s.updateNewest(before, newest)
	return explain(read(ctx, newest))
}

func (s *Store) snapshotOptions() *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
}

// Snapshot runs read once, in a transaction that sees one release: the one with the
// given number, or the newest if it is 0. The release is nil before the first import.
func (s *Store) Snapshot(ctx context.Context, number int, read func(context.Context, *ent.Release) error) error {
	return s.readInTx(ctx, func(ctx context.Context, newest *ent.Release) error {
		if newest == nil || number == 0 || number == newest.ID {
			return read(ctx, newest)
		}
		return s.readEarlier(ctx, number, newest, func(ctx context.Context) error {
			release, err := s.Read.Release.Get(ctx, number)
			if err != nil {
				return err
			}
			return read(ctx, release)
		})
	})
}

// readEarlier runs read in the transaction of ctx with an earlier release.
func (s *Store) readEarlier(ctx context.Context, number int, newest *ent.Release, read func(context.Context) error) error {
	switch {
	case newest == nil:
		return ErrNoRelease
	case newest.HistoryFrom == newest.ID:
		return fmt.Errorf("%w: %d (only release %d can be read)", ErrNoRelease, number, newest.ID)
	case number >= newest.ID || number < newest.HistoryFrom:
		return fmt.Errorf("%w: %d (releases %d to %d can be read)", ErrNoRelease, number, newest.HistoryFrom, newest.ID)
	}
	state := ctx.Value(readKey{}).(*readState)
	return read(context.WithValue(ctx, readKey{}, &readState{tx: state.tx, earlier: number}))
}

// WithAllVersions returns a context in which statements of a read see the tables as
// they are, with the rows of all releases. They use the same transaction, if there
// is one.
func WithAllVersions(ctx context.Context) context.Context {
	reading, _ := ctx.Value(readKey{}).(*readState)
	if reading == nil {
		return ctx
	}
	all := *reading
	all.allVersions = true
	return context.WithValue(ctx, readKey{}, &all)
}

// WithEarlier returns a context in which statements of a read see an earlier
// release. They require a transaction.
func WithEarlier(ctx context.Context, release int) context.Context {
	reading, _ := ctx.Value(readKey{}).(*readState)
	if reading == nil {
		return ctx
	}
	return context.WithValue(ctx, readKey{}, &readState{tx: reading.tx, earlier: release})
}

// Select runs a statement in a read.
func (s *Store) Select(ctx context.Context, statement string, args ...any) (entsql.ColumnScanner, error) {
	var rows entsql.Rows
	err := s.readDriver.Query(ctx, statement, args, &rows)
	return rows, err
}

// checkRelease reads the newest release if the last statement returned no rows.
// Numbers only increase: if it is still the one known before the first statement,
// all statements saw it.
func (s *Store) checkRelease(ctx context.Context, tracker *releaseTracker) error {
	rows, err := s.reader.QueryContext(ctx, "SELECT "+newestNumber)
	if err != nil {
		return err
	}
	defer rows.Close()
	var newest sql.NullInt64
	for rows.Next() {
		if err := rows.Scan(&newest); err != nil {
			return err
		}
	}
	tracker.same = int(newest.Int64) == tracker.want
	return rows.Err()
}

// readState determines how the statements of a read see one release: in a
// transaction, or with a tracker that checks it.
type readState struct {
	tx          *sql.Tx
	tracker     *releaseTracker
	earlier     int  // the number of the release, if it is not the newest
	allVersions bool // see WithAllVersions
}

type readKey struct{}

// readDriver runs the queries of ent's Read client.
type readDriver struct {
	*entsql.Driver
}

// Query implements dialect.Driver.
func (d *readDriver) Query(ctx context.Context, statement string, args, v any) error {
	reading, _ := ctx.Value(readKey{}).(*readState)
	if reading == nil {
		return d.Driver.Query(ctx, statement, args, v)
	}
	rows, ok := v.(*entsql.Rows)
	values, also := args.([]any)
	if !ok || !also {
		return fmt.Errorf("cannot read with %T into %T", args, v)
	}
	if reading.earlier > 0 {
		if reading.tx == nil {
			return ErrNeedsTransaction
		}
		if !reading.allVersions {
			statement = asOf(d.Dialect(), reading.earlier, statement)
		}
	}
	if reading.tx != nil {
		found, err := reading.tx.QueryContext(ctx, statement, values...)
		*rows = entsql.Rows{ColumnScanner: found}
		return err
	}
	statement, err := reading.tracker.rewrite(statement)
	if err != nil {
		return err
	}
	found, err := d.DB().QueryContext(ctx, statement, values...)
	if err != nil {
		return err
	}
	*rows = entsql.Rows{ColumnScanner: reading.tracker.observe(found)}
	return nil
}

// releaseTracker checks that all statements of a read without a transaction see the
// same release. Each statement is consistent in itself, so it also selects the
// number of the newest release.
type releaseTracker struct {
	want        int
	same        bool // all rows so far belong to the wanted release
	lastHadRows bool // whether the last statement returned rows
	statements  int
}

const newestNumber = `(SELECT max(` + release.FieldID + `) FROM ` + release.Table + `)`

// ErrNeedsTransaction is returned by a read that requires a transaction. It then
// runs again in one.
var ErrNeedsTransaction = errors.New("this needs a transaction")

// InTransaction reports whether a read runs in a transaction, which guarantees that
// all its statements see the same release.
func InTransaction(ctx context.Context) bool {
	reading, _ := ctx.Value(readKey{}).(*readState)
	return reading != nil && reading.tx != nil
}

// rewrite adds the newest release as the first column of a statement.
func (t *releaseTracker) rewrite(statement string) (string, error) {
	columns, ok := strings.CutPrefix(statement, "SELECT ")
	if !ok || strings.HasPrefix(columns, "DISTINCT ") {
		return "", ErrNeedsTransaction
	}
	return "SELECT " + newestNumber + ", " + columns, nil
}

// observe checks that column and returns rows without it.
func (t *releaseTracker) observe(rows *sql.Rows) entsql.ColumnScanner {
	t.lastHadRows = false
	t.statements++
	return &trackedRows{Rows: rows, tracker: t}
}

type trackedRows struct {
	*sql.Rows
	tracker *releaseTracker
	number  sql.NullInt64
	all     []any
}

// Columns returns the names of the other columns.
func (r *trackedRows) Columns() ([]string, error) {
	columns, err := r.Rows.Columns()
	if err != nil {
		return nil, err
	}
	return columns[1:], nil
}

// ColumnTypes returns the types of the other columns.
func (r *trackedRows) ColumnTypes() ([]*sql.ColumnType, error) {
	types, err := r.Rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	return types[1:], nil
}

// Scan reads the other columns.
func (r *trackedRows) Scan(dest ...any) error {
	r.all = append(append(r.all[:0], &r.number), dest...)
	if err := r.Rows.Scan(r.all...); err != nil {
		return err
	}
	r.tracker.lastHadRows = true
	r.tracker.same = r.tracker.same && int(r.number.Int64) == r.tracker.want
	return nil
}
