package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
)

// Reading runs read on one release of the catalog; nil before the first
// import. What is read with the context that it gets, through the Read client
// or Select, is of that release.
//
// A transaction costs more than most answers do. So the first attempt goes
// without one, in the belief that the release known from before is still the
// newest; only where a statement saw another one, read is run again, from its
// start, in a transaction.
func (s *Store) Reading(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	if known := s.newest.Load(); known != nil && !s.replica.away() {
		w := &witness{want: known.ID, same: true}
		err := read(context.WithValue(ctx, readingKey{}, &readingState{witness: w}), known)
		switch { // after an error, too: two releases may be its reason
		case !w.same:
		case s.replica != nil && w.silent > 0:
			w.same = false // it may have lagged then, and caught up since
		case !w.sure:
			err = errors.Join(err, s.makeSure(ctx, w))
		}
		if w.same && !errors.Is(err, errNoWitness) && !s.replica.failed(ctx, err) {
			return explain(err)
		}
	}
	if s.replica == nil {
		return explain(s.readingIn(ctx, s.reader, s.readDriver.statements, read))
	}
	if !s.replica.away() {
		err := s.readingIn(ctx, s.reader, s.readDriver.statements, read)
		if !errors.Is(err, errLags) && !s.replica.failed(ctx, err) {
			return explain(err)
		}
	}
	return explain(s.readingIn(ctx, s.replica.primary, s.replica.statements, read))
}

var errLags = errors.New("the replica does not have the release yet")

// readingIn runs read in a transaction of one of the databases.
func (s *Store) readingIn(ctx context.Context, db *sql.DB, statements *statements, read func(context.Context, *ent.Release) error) error {
	opts := &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
	before := s.newest.Load()
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	ctx = context.WithValue(ctx, readingKey{}, &readingState{tx: tx, statements: statements})
	newest, err := NewestRelease(ctx, s.Read.Release)
	if err != nil {
		return err
	}
	if s.replica == nil || db != s.reader {
		s.saw(before, newest)
	} else if !s.follow(newest) {
		return errLags
	}
	return read(ctx, newest)
}

// Snapshot runs read in a transaction that sees one release of the catalog
// from its first statement to its last; nil before the first import.
func (s *Store) Snapshot(ctx context.Context, read func(*ent.Tx, *ent.Release) error) error {
	if s.replica != nil && !s.replica.away() {
		begun := false // what read has done already, another one would do again
		err := s.snapshotOf(ctx, s.Read, func(tx *ent.Tx, release *ent.Release) error {
			if !s.follow(release) {
				return errLags
			}
			begun = true
			return read(tx, release)
		})
		if failed := s.replica.failed(ctx, err); begun || !failed && !errors.Is(err, errLags) {
			return explain(err)
		}
	}
	before := s.newest.Load()
	return explain(s.snapshotOf(ctx, s.Current(), func(tx *ent.Tx, release *ent.Release) error {
		s.saw(before, release)
		return read(tx, release)
	}))
}

func (s *Store) snapshotOf(ctx context.Context, client *ent.Client, read func(*ent.Tx, *ent.Release) error) error {
	opts := &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
	return inTx(ctx, client, opts, func(tx *ent.Tx) error {
		release, err := NewestRelease(ctx, tx.Release)
		if err != nil {
			return err
		}
		return read(tx, release)
	})
}

// Select runs a statement of one's own in a reading.
func (s *Store) Select(ctx context.Context, text string, args ...any) (entsql.ColumnScanner, error) {
	var rows entsql.Rows
	err := s.reading.Query(ctx, text, args, &rows)
	return rows, err
}

// makeSure asks for the release where the last statement had no row to tell.
// Releases only grow: if it is still the one known before the first
// statement, it was for all of them.
func (s *Store) makeSure(ctx context.Context, w *witness) (err error) {
	const text = "SELECT " + newestNumber
	if s.told != nil {
		ended := s.told(ctx, poolReader, text)
		defer func() { ended(err) }()
	}
	rows, err := s.readDriver.statements.query(ctx, text, nil)
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

// readingState is how the statements of one reading see one release: in a
// transaction, or with a witness.
type readingState struct {
	tx         *sql.Tx
	statements *statements // prepared where tx is
	witness    *witness
}

type readingKey struct{}

// readDriver is ent's way to the readers' connections.
type readDriver struct {
	*entsql.Driver
	statements *statements
}

func newReadDriver(dialect string, db *sql.DB) *readDriver {
	return &readDriver{entsql.OpenDB(dialect, db), newStatements(db)}
}

// Query is called by ent for every read.
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
	if reading.tx != nil {
		found, err := reading.statements.queryIn(ctx, reading.tx, text, values)
		*rows = entsql.Rows{ColumnScanner: found}
		return err
	}
	text, err := reading.witness.ask(text)
	if err != nil {
		return err
	}
	found, err := d.statements.query(ctx, text, values)
	if err != nil {
		return err
	}
	*rows = entsql.Rows{ColumnScanner: reading.witness.hear(found)}
	return nil
}
