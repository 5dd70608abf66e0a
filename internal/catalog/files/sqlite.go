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
	"slices"
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

// columnsOf returns the definitions of the columns that the tags of Row declare.
func columnsOf[Row any]() (columns []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		kind, null := f.Type, " NOT NULL"
		if kind.Kind() == reflect.Pointer {
			kind, null = kind.Elem(), ""
		}
		sqlType := map[reflect.Kind]string{
			reflect.String: "TEXT", reflect.Float64: "REAL", reflect.Bool: "BOOLEAN", reflect.Int32: "INTEGER",
		}[kind.Kind()]
		if kind == reflect.TypeFor[Date]() {
			sqlType = "DATE"
		}
		columns = append(columns, name+" "+sqlType+null)
	}
	return columns
}

// insertInto creates a table and returns a function that inserts a row.
func insertInto[Row any](d *database, name string, key []string) (func(Row) error, error) {
	columns := columnsOf[Row]()
	definitions := append(slices.Clone(columns), "PRIMARY KEY ("+strings.Join(key, ", ")+")")
	if _, err := d.tx.ExecContext(d.ctx, fmt.Sprintf("CREATE TABLE %s (%s) WITHOUT ROWID", name, strings.Join(definitions, ", "))); err != nil {
		return nil, fileError(err)
	}
	statement, err := d.tx.PrepareContext(d.ctx, fmt.Sprintf("INSERT INTO %s VALUES (?%s)", name, strings.Repeat(", ?", len(columns)-1)))
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	return func(row Row) error {
		fields := reflect.ValueOf(row)
		for i := range columns {
			values[i] = sqlValue(fields.Field(i))
		}
		_, err := statement.ExecContext(context.WithoutCancel(d.ctx), values...) // a context that can end costs more than a row
		return fileError(err)
	}, nil
}

func sqlValue(field reflect.Value) any {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return nil
		}
		field = field.Elem()
	}
	if day, ok := field.Interface().(Date); ok {
		return day.String()
	}
	return field.Interface()
}
