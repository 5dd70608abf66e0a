package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
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
		start := func(ctx context.Context, statement string) func(error) { return hook(ctx, pool, statement) }
		connector = hookedConnector{connector, start}
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// startFunc is the hook of one pool.
type startFunc func(ctx context.Context, statement string) (ended func(error))

type hookedConnector struct {
	driver.Connector
	start startFunc
}

func (c hookedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &hookedConn{conn.(driverConn), c.start}, nil
}

// driverConn is what database/sql uses of the connections of both drivers.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// hookedConn calls the hook for all statements but prepared ones, which neither
// ent nor this program uses.
type hookedConn struct {
	driverConn
	start startFunc
}

// CheckNamedValue converts an argument if the driver has conversions of its own.
func (c *hookedConn) CheckNamedValue(arg *driver.NamedValue) error {
	if checker, ok := c.driverConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(arg)
	}
	return driver.ErrSkip // database/sql converts it
}

func (c *hookedConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	ended := c.start(ctx, statement)
	result, err := c.driverConn.ExecContext(ctx, statement, args)
	ended(err)
	return result, err
}

func (c *hookedConn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	ended := c.start(ctx, statement)
	rows, err := c.driverConn.QueryContext(ctx, statement, args)
	if err != nil {
		ended(err)
		return nil, err
	}
	return &hookedRows{rows.(driver.RowsColumnTypeScanType), ended, nil}, nil
}

func (c *hookedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.driverConn.BeginTx(ctx, opts)
	return hookedTx{tx, func() func(error) { return c.start(ctx, "COMMIT") }}, err
}

type hookedTx struct {
	driver.Tx
	start func() (ended func(error))
}

func (t hookedTx) Commit() error {
	ended := t.start()
	err := t.Tx.Commit()
	ended(err)
	return err
}

// hookedRows ends a query when its rows are closed. ent reads the types of columns.
type hookedRows struct {
	driver.RowsColumnTypeScanType
	ended func(error)
	err   error
}

func (r *hookedRows) Next(dest []driver.Value) error {
	err := r.RowsColumnTypeScanType.Next(dest)
	if err != io.EOF {
		r.err = err
	}
	return err
}

func (r *hookedRows) Close() error {
	err := r.RowsColumnTypeScanType.Close()
	r.ended(r.err)
	return err
}
