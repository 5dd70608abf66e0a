package store

import (
	"database/sql"
	"errors"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/release"
)

// witness tells which release the statements of a reading saw, for readings
// that have no transaction: each statement reads the newest number beside its
// own rows, and a statement sees one state of the data.
type witness struct {
	want int
	// same holds as long as every row was of the wanted release; sure, if the
	// last statement had a row to tell it; silent are those that had none.
	same, sure bool
	silent     int
}

const newestNumber = `(SELECT max(` + release.FieldID + `) FROM ` + release.Table + `)`

var errNoWitness = errors.New("a statement of this form cannot tell its release")

// ask makes a statement tell its release in a column before the others.
func (w *witness) ask(text string) (string, error) {
	columns, ok := strings.CutPrefix(text, "SELECT ")
	if !ok || strings.HasPrefix(columns, "DISTINCT ") {
		return "", errNoWitness
	}
	return "SELECT " + newestNumber + ", " + columns, nil
}

// hear hides the column again from who reads the rows.
func (w *witness) hear(rows *sql.Rows) entsql.ColumnScanner {
	w.sure = false
	w.silent++
	return &witnessedRows{Rows: rows, witness: w}
}

// witnessedRows are rows without their first column.
type witnessedRows struct {
	*sql.Rows
	witness *witness
	told    bool
	number  sql.NullInt64
	all     []any
}

// Columns are the names of what the reader asked for.
func (r *witnessedRows) Columns() ([]string, error) {
	columns, err := r.Rows.Columns()
	if err != nil {
		return nil, err
	}
	return columns[1:], nil
}

// ColumnTypes are the types of what the reader asked for.
func (r *witnessedRows) ColumnTypes() ([]*sql.ColumnType, error) {
	types, err := r.Rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	return types[1:], nil
}

// Scan reads a row.
func (r *witnessedRows) Scan(dest ...any) error {
	r.all = append(append(r.all[:0], &r.number), dest...)
	if err := r.Rows.Scan(r.all...); err != nil {
		return err
	}
	if !r.told {
		r.told, r.witness.sure = true, true
		r.witness.silent--
	}
	r.witness.same = r.witness.same && int(r.number.Int64) == r.witness.want
	return nil
}
