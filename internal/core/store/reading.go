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

// WithRelease runs read on one release of the catalog, or nil before the first
// import. Everything that read queries with its context, through the Read client
// or Select, belongs to that release.
//
// A transaction costs more than most queries. So the first attempt runs without
// one, assuming that the newest known release is still the newest. If a statement
// saw another one, read runs again from the start, in a transaction.
func (s *Store) WithRelease(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	if known := s.newest.Load(); known != nil && !s.replica.skipped() {
		w := &witness{want: known.ID, same: true}
		err := read(context.WithValue(ctx, readingKey{}, &readingState{witness: w}), known)
		switch { // also after an error, which may come from mixing two releases
		case !w.same:
		case s.replica != nil && w.withoutRows > 0:
			w.same = false // it may have lagged then, and caught up since
		case w.statements == 0 && s.watched.Load(): // Watch reports newer releases
		case !w.lastHadRows && !errors.Is(err, ErrNeedsTransaction):
			err = errors.Join(err, s.checkRelease(ctx, w))
		}
		if w.same && !errors.Is(err, ErrNeedsTransaction) && !s.replica.failed(ctx, err) {
			return explain(err)
		}
	}
	return s.inTransaction(ctx, read)
}

// Newest returns the newest release without asking the database, or nil if only
// the database knows it.
func (s *Store) Newest() *ent.Release {
	if !s.watched.Load() || s.replica.skipped() {
		return nil
	}
	return s.newest.Load()
}

// inTransaction runs read in a transaction of the replica, or else the primary.
func (s *Store) inTransaction(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	if s.replica == nil {
		return explain(s.readingIn(ctx, s.reader, read))
	}
	if !s.replica.skipped() {
		err := s.readingIn(ctx, s.reader, read)
		if !errors.Is(err, errLags) && !s.replica.failed(ctx, err) {
			return explain(err)
		}
	}
	return explain(s.readingIn(ctx, s.replica.primary, read))
}

// WithEarlierRelease is WithRelease for a release that is not the newest. Such a
// release never changes, so read only needs a transaction if it reads the
// database: then it runs again in one.
func (s *Store) WithEarlierRelease(ctx context.Context, earlier *ent.Release, read func(context.Context) error) error {
	err := read(context.WithValue(ctx, readingKey{}, &readingState{earlier: earlier.ID}))
	if !errors.Is(err, ErrNeedsTransaction) {
		return explain(err)
	}
	return s.inTransaction(ctx, func(ctx context.Context, newest *ent.Release) error {
		return s.inEarlier(ctx, earlier.ID, newest, func(ctx context.Context) error {
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

// ErrNoRelease is the error for a release that does not exist or was pruned.
// Errors that wrap it add its number and the releases that can be read.
var ErrNoRelease = errors.New("no such release")

var errLags = errors.New("the replica does not have the release yet")

// readingIn runs read in a transaction.
func (s *Store) readingIn(ctx context.Context, db *sql.DB, read func(context.Context, *ent.Release) error) error {
	before := s.newest.Load()
	tx, err := db.BeginTx(ctx, s.snapshotOptions())
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	ctx = context.WithValue(ctx, readingKey{}, &readingState{tx: tx})
	newest, err := NewestRelease(ctx, s.Read.Release)
	if err != nil {
		return err
	}
	if s.replica == nil || db != s.reader {
		s.saw(before, newest)
	} else if !s.sawOnReplica(newest) {
		return errLags
	}
	return read(ctx, newest)
}

func (s *Store) snapshotOptions() *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
}

// Snapshot runs read once, in a transaction that sees one release: the newest, or
// one with a number. The release is nil before the first import.
func (s *Store) Snapshot(ctx context.Context, number int, read func(context.Context, *ent.Release) error) error {
	var failed error
	started := false // read may have had effects, and must not run again
	once := func(ctx context.Context, release *ent.Release) error {
		started, failed = true, read(ctx, release)
		return failed
	}
	return s.inTransaction(ctx, func(ctx context.Context, newest *ent.Release) error {
		switch {
		case started:
			return failed
		case newest == nil || number == 0 || number == newest.ID:
			return once(ctx, newest)
		}
		return s.inEarlier(ctx, number, newest, func(ctx context.Context) error {
			release, err := s.Read.Release.Get(ctx, number)
			if err != nil {
				return err
			}
			return once(ctx, release)
		})
	})
}

// inEarlier continues a reading in a transaction with an earlier release.
func (s *Store) inEarlier(ctx context.Context, number int, newest *ent.Release, read func(context.Context) error) error {
	switch {
	case newest == nil:
		return ErrNoRelease
	case newest.HistoryFrom == newest.ID:
		return fmt.Errorf("%w: %d (only release %d can be read)", ErrNoRelease, number, newest.ID)
	case number >= newest.ID || number < newest.HistoryFrom:
		return fmt.Errorf("%w: %d (releases %d to %d can be read)", ErrNoRelease, number, newest.HistoryFrom, newest.ID)
	}
	state := ctx.Value(readingKey{}).(*readingState)
	return read(context.WithValue(ctx, readingKey{}, &readingState{tx: state.tx, earlier: number}))
}

// WithAllVersions returns the context of a reading in which statements see the
// tables as they are, with the rows of all releases. It is the same transaction,
// if there is one.
func WithAllVersions(ctx context.Context) context.Context {
	reading, _ := ctx.Value(readingKey{}).(*readingState)
	if reading == nil {
		return ctx
	}
	all := *reading
	all.allVersions = true
	return context.WithValue(ctx, readingKey{}, &all)
}

// WithEarlier returns the context of a reading in which statements see a release
// before the one that is read. They need a transaction.
func WithEarlier(ctx context.Context, release int) context.Context {
	reading, _ := ctx.Value(readingKey{}).(*readingState)
	if reading == nil {
		return ctx
	}
	return context.WithValue(ctx, readingKey{}, &readingState{tx: reading.tx, earlier: release})
}

// Select runs a statement in a reading.
func (s *Store) Select(ctx context.Context, text string, args ...any) (entsql.ColumnScanner, error) {
	var rows entsql.Rows
	err := s.readDriver.Query(ctx, text, args, &rows)
	return rows, err
}

// checkRelease reads the newest release if the last statement had no rows.
// Numbers only grow: if it is still the one known before the first statement, all
// statements saw it.
func (s *Store) checkRelease(ctx context.Context, w *witness) error {
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
	w.same = int(newest.Int64) == w.want
	return rows.Err()
}

// readingState determines how the statements of one reading see one release: in
// a transaction, or with a witness.
type readingState struct {
	tx      *sql.Tx
	witness *witness
	earlier int // the number of the release, if it is not the newest
	// allVersions is set if statements see the tables as they are.
	allVersions bool
}

type readingKey struct{}

// readDriver runs the queries of ent's Read client.
type readDriver struct {
	*entsql.Driver
}

// Query implements dialect.Driver.
func (d *readDriver) Query(ctx context.Context, text string, args, v any) error {
	reading, _ := ctx.Value(readingKey{}).(*readingState)
	if reading == nil {
		return d.Driver.Query(ctx, text, args, v)
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
			text = asOf(d.Dialect(), reading.earlier, text)
		}
	}
	if reading.tx != nil {
		found, err := reading.tx.QueryContext(ctx, text, values...)
		*rows = entsql.Rows{ColumnScanner: found}
		return err
	}
	text, err := reading.witness.rewrite(text)
	if err != nil {
		return err
	}
	found, err := d.DB().QueryContext(ctx, text, values...)
	if err != nil {
		return err
	}
	*rows = entsql.Rows{ColumnScanner: reading.witness.observe(found)}
	return nil
}

// witness finds out which release the statements of a reading saw without a
// transaction. Each statement also reads the newest number, in addition to its
// own columns, and sees one state of the data.
type witness struct {
	want        int
	same        bool // all rows so far were of the wanted release
	lastHadRows bool // the last statement
	statements  int
	withoutRows int // statements that had none
}

const newestNumber = `(SELECT max(` + release.FieldID + `) FROM ` + release.Table + `)`

// ErrNeedsTransaction is returned by a reading that requires a transaction. The
// reading runs again in one.
var ErrNeedsTransaction = errors.New("this needs a transaction")

// InTransaction reports whether a reading runs in a transaction, so that
// everything it reads certainly belongs to its release.
func InTransaction(ctx context.Context) bool {
	reading, _ := ctx.Value(readingKey{}).(*readingState)
	return reading != nil && reading.tx != nil
}

// rewrite adds the release as the first column of a statement.
func (w *witness) rewrite(text string) (string, error) {
	columns, ok := strings.CutPrefix(text, "SELECT ")
	if !ok || strings.HasPrefix(columns, "DISTINCT ") {
		return "", ErrNeedsTransaction
	}
	return "SELECT " + newestNumber + ", " + columns, nil
}

// observe returns rows without that column.
func (w *witness) observe(rows *sql.Rows) entsql.ColumnScanner {
	w.lastHadRows = false
	w.statements++
	w.withoutRows++
	return &witnessedRows{Rows: rows, witness: w}
}

type witnessedRows struct {
	*sql.Rows
	witness *witness
	hadRow  bool
	number  sql.NullInt64
	all     []any
}

// Columns returns the names of the other columns.
func (r *witnessedRows) Columns() ([]string, error) {
	columns, err := r.Rows.Columns()
	if err != nil {
		return nil, err
	}
	return columns[1:], nil
}

// ColumnTypes returns the types of the other columns.
func (r *witnessedRows) ColumnTypes() ([]*sql.ColumnType, error) {
	types, err := r.Rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	return types[1:], nil
}

// Scan reads the other columns.
func (r *witnessedRows) Scan(dest ...any) error {
	r.all = append(append(r.all[:0], &r.number), dest...)
	if err := r.Rows.Scan(r.all...); err != nil {
		return err
	}
	if !r.hadRow {
		r.hadRow, r.witness.lastHadRows = true, true
		r.witness.withoutRows--
	}
	r.witness.same = r.witness.same && int(r.number.Int64) == r.witness.want
	return nil
}
