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
	if known := s.newest.Load(); known != nil {
		w := &witness{want: known.ID, same: true}
		err := read(context.WithValue(ctx, readingKey{}, &readingState{witness: w}), known)
		if w.same && !w.sure { // after an error, too: two releases may be its reason
			err = errors.Join(err, s.makeSure(ctx, w))
		}
		if w.same && !errors.Is(err, errNoWitness) {
			return explain(err)
		}
	}
	opts := &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
	tx, err := s.reader.BeginTx(ctx, opts)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	ctx = context.WithValue(ctx, readingKey{}, &readingState{tx: tx})
	newest, err := NewestRelease(ctx, s.Read.Release)
	if err != nil {
		return explain(err)
	}
	s.newest.Store(newest)
	return explain(read(ctx, newest))
}

// Select runs a statement of one's own in a reading.
func (s *Store) Select(ctx context.Context, text string, args ...any) (entsql.ColumnScanner, error) {
	var rows entsql.Rows
	err := s.readDriver.Query(ctx, text, args, &rows)
	return rows, err
}

// makeSure asks for the release where the last statement had no row to tell.
// Releases only grow: if it is still the one known before the first
// statement, it was for all of them.
func (s *Store) makeSure(ctx context.Context, w *witness) error {
	rows, err := s.readDriver.statements.query(ctx, "SELECT "+newestNumber, nil)
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
	tx      *sql.Tx
	witness *witness
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
		found, err := d.statements.queryIn(ctx, reading.tx, text, values)
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
