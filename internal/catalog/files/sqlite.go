package files

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
)

// database is a SQLite database that is being written.
type database struct {
	*sql.DB
	ctx context.Context
	tx  *sql.Tx
}

// createDatabase creates a database in a new file. Nothing reads it before it is
// complete, so it needs no journal.
func createDatabase(ctx context.Context, path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": {
		"journal_mode(OFF)", "synchronous(OFF)", "locking_mode(EXCLUSIVE)", "cache_size(-1024)", fmt.Sprintf("user_version(%d)", Format),
	}}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		_ = db.Close()
		return nil, fileError(err)
	}
	return &database{db, ctx, tx}, nil
}

// finish commits everything and closes the file.
func (d *database) finish() error { return fileError(cmp.Or(d.tx.Commit(), d.Close())) }

// Close closes the file, without what is not committed.
func (d *database) Close() error {
	_ = d.tx.Rollback() // it holds the connection
	return d.DB.Close()
}

// fileError marks an error of the driver, whose words mean nothing to a user.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "write", Path: SQLiteFile, Err: err}
}

// sqlTypes are the types of columns.
var sqlTypes = map[reflect.Type]string{
	reflect.TypeFor[string](): "TEXT", reflect.TypeFor[float64](): "REAL", reflect.TypeFor[bool](): "BOOLEAN",
	reflect.TypeFor[int32](): "INTEGER", reflect.TypeFor[Date](): "DATE",
}

// insertInto creates a table and returns a function that inserts a row.
func (d *database) insertInto(t table) (func(row) error, error) {
	var definitions []string
	for _, c := range t.columns {
		null := " NOT NULL"
		if c.null {
			null = ""
		}
		definitions = append(definitions, c.name+" "+sqlTypes[c.kind]+null)
	}
	definitions = append(definitions, "PRIMARY KEY ("+strings.Join(t.key, ", ")+")")
	if _, err := d.tx.ExecContext(d.ctx, fmt.Sprintf("CREATE TABLE %s (%s) WITHOUT ROWID", t.name, strings.Join(definitions, ", "))); err != nil {
		return nil, fileError(err)
	}
	statement, err := d.tx.PrepareContext(d.ctx, fmt.Sprintf("INSERT INTO %s VALUES (?%s)", t.name, strings.Repeat(", ?", len(t.columns)-1)))
	if err != nil {
		return nil, err
	}
	values := make([]any, len(t.columns))
	return func(r row) error {
		r.toSQL(values)
		_, err := statement.ExecContext(context.WithoutCancel(d.ctx), values...) // a context that can end costs more than a row
		return fileError(err)
	}, nil
}
