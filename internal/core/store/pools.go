package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"

	"github.com/ngrok/sqlmw"
)

// StatementHook is called when a statement starts. The function it returns is
// called when the statement ends: after its last row was read, because SQLite
// works until then. The hook receives the SQL text, but never the arguments.
type StatementHook func(ctx context.Context, pool, statement string) (ended func(error))

// The names of the connection pools.
const (
	poolReader = "reader"
	poolWriter = "writer"
	poolKeys   = "keys"
)

// Pools returns the connection pools by name.
func (s *Store) Pools() map[string]*sql.DB {
	return map[string]*sql.DB{poolReader: s.reader, poolWriter: s.writer, poolKeys: s.keys}
}

// openPool opens a pool of up to size connections. A hook is installed in the
// driver, where it sees every statement; without one, there is no overhead.
func openPool(connector driver.Connector, pool string, hook StatementHook, size int) *sql.DB {
	if hook != nil {
		wrapped := sqlmw.Driver(connectorDriver{connector}, &interceptor{pool: pool, hook: hook})
		connector, _ = wrapped.(driver.DriverContext).OpenConnector("") // never fails
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// connectorDriver is a driver whose connections all come from one connector.
type connectorDriver struct{ driver.Connector }

func (d connectorDriver) Open(string) (driver.Conn, error) { return d.Connect(context.Background()) }

func (d connectorDriver) OpenConnector(string) (driver.Connector, error) { return d.Connector, nil }

// interceptor calls a hook for the statements of a pool.
type interceptor struct {
	sqlmw.NullInterceptor
	pool string
	hook StatementHook
}

func (i *interceptor) ConnExecContext(ctx context.Context, conn driver.ExecerContext, statement string, args []driver.NamedValue) (driver.Result, error) {
	ended := i.hook(ctx, i.pool, statement)
	result, err := conn.ExecContext(ctx, statement, args)
	ended(err)
	return result, err
}

func (i *interceptor) StmtExecContext(ctx context.Context, stmt driver.StmtExecContext, statement string, args []driver.NamedValue) (driver.Result, error) {
	ended := i.hook(ctx, i.pool, statement)
	result, err := stmt.ExecContext(ctx, args)
	ended(err)
	return result, err
}

func (i *interceptor) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, statement string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	return i.query(ctx, statement, func() (driver.Rows, error) { return conn.QueryContext(ctx, statement, args) })
}

func (i *interceptor) StmtQueryContext(ctx context.Context, stmt driver.StmtQueryContext, statement string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	return i.query(ctx, statement, func() (driver.Rows, error) { return stmt.QueryContext(ctx, args) })
}

func (i *interceptor) TxCommit(ctx context.Context, tx driver.Tx) error {
	ended := i.hook(ctx, i.pool, "COMMIT")
	err := tx.Commit()
	ended(err)
	return err
}

// query returns a context that carries the query to RowsNext and RowsClose.
func (i *interceptor) query(ctx context.Context, statement string, run func() (driver.Rows, error)) (context.Context, driver.Rows, error) {
	query := &openQuery{ended: i.hook(ctx, i.pool, statement)}
	rows, err := run()
	if err != nil {
		query.ended(err)
	}
	return context.WithValue(ctx, openQueryKey{}, query), rows, err
}

// openQuery is a query whose rows are being read.
type openQuery struct {
	ended func(error)
	err   error
}

type openQueryKey struct{}

func (i *interceptor) RowsNext(ctx context.Context, rows driver.Rows, dest []driver.Value) error {
	err := rows.Next(dest)
	if err != nil && err != io.EOF {
		ctx.Value(openQueryKey{}).(*openQuery).err = err
	}
	return err
}

func (i *interceptor) RowsClose(ctx context.Context, rows driver.Rows) error {
	err := rows.Close()
	query := ctx.Value(openQueryKey{}).(*openQuery)
	query.ended(query.err)
	return err
}
