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
// driver, where it sees every statement.
func openPool(connector driver.Connector, pool string, hook StatementHook, size int) *sql.DB {
	start := func(context.Context, string) func(error) { return func(error) {} }
	if hook != nil {
		start = func(ctx context.Context, statement string) func(error) { return hook(ctx, pool, statement) }
	}
	if _, isFile := connector.(sqliteConnector); !isFile || hook != nil { // otherwise there is nothing to watch
		connector = watchedConnector{connector, start}
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// startFunc is the hook of one pool.
type startFunc func(ctx context.Context, statement string) (ended func(error))

type watchedConnector struct {
	driver.Connector
	start startFunc
}

func (c watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	dialed := &socket{}
	ended := dialed.watch(ctx)
	conn, err := c.Connector.Connect(context.WithValue(ctx, socketKey{}, dialed))
	if err = ended(err); err != nil {
		return nil, err
	}
	if dialed.Conn == nil {
		dialed = nil
	}
	return &watchedConn{conn.(driverConn), dialed, c.start}, nil
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

// watchedConn calls the hook and interrupts the socket for all statements but
// prepared ones, which neither ent nor this program uses.
type watchedConn struct {
	driverConn
	socket *socket // nil for SQLite, whose driver interrupts statements
	start  startFunc
}

// begin starts a statement. The function it returns ends it.
func (c *watchedConn) begin(ctx context.Context, statement string) (ended func(error) error) {
	report, stop := c.start(ctx, statement), c.socket.watch(ctx)
	return func(err error) error {
		err = stop(err)
		report(err)
		return err
	}
}

// IsValid reports whether the connection can be used again.
func (c *watchedConn) IsValid() bool { return !c.socket.isInterrupted() && c.driverConn.IsValid() }

// CheckNamedValue converts an argument if the driver has conversions of its own.
func (c *watchedConn) CheckNamedValue(arg *driver.NamedValue) error {
	if checker, ok := c.driverConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(arg)
	}
	return driver.ErrSkip // database/sql converts it
}

func (c *watchedConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	ended := c.begin(ctx, statement)
	result, err := c.driverConn.ExecContext(ctx, statement, args)
	return result, ended(err)
}

func (c *watchedConn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	ended := c.begin(ctx, statement)
	rows, err := c.driverConn.QueryContext(ctx, statement, args)
	if err != nil {
		return nil, ended(err)
	}
	return &watchedRows{rows.(driver.RowsColumnTypeScanType), ctx, ended, nil}, nil
}

func (c *watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	ended := c.socket.watch(ctx)
	tx, err := c.driverConn.BeginTx(ctx, opts)
	return watchedTx{tx, c, ctx}, ended(err)
}

type watchedTx struct {
	driver.Tx
	conn *watchedConn
	ctx  context.Context
}

func (t watchedTx) Commit() error {
	ended := t.conn.begin(t.ctx, "COMMIT")
	return ended(t.Tx.Commit())
}

func (t watchedTx) Rollback() error {
	ended := t.conn.socket.watch(t.ctx)
	return ended(t.Tx.Rollback())
}

// watchedRows ends a query when its rows are closed. ent reads the types of columns.
type watchedRows struct {
	driver.RowsColumnTypeScanType
	ctx   context.Context
	ended func(error) error
	err   error
}

func (r *watchedRows) Next(dest []driver.Value) error {
	err := r.RowsColumnTypeScanType.Next(dest)
	if err != io.EOF {
		err = withCause(r.ctx, err)
		r.err = err
	}
	return err
}

func (r *watchedRows) Close() error {
	err := r.RowsColumnTypeScanType.Close()
	_ = r.ended(r.err)
	return err
}
