package store

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"
)

const (
	// postgresReaders and postgresWriters bound what one process asks of a
	// server that others share.
	postgresReaders = 16
	postgresWriters = 4
	postgresKeys    = 2

	// MostConnections is what a server takes at most from the database that it
	// writes to: those, and one to hear of new releases.
	MostConnections = postgresReaders + postgresWriters + postgresKeys + 1

	// A server that is there but silent, frozen or cut off, must not hold us
	// for ever: no read is as long as this, and no statement of an import.
	readSilence  = 10 * time.Second
	writeSilence = 2 * time.Minute
	connectTime  = 5 * time.Second
	// A replica that is silent has somebody to stand in for it, who must still
	// have time for the answer.
	replicaSilence = 2 * time.Second
)

func openPostgres(cfg Config) (*Store, error) {
	readURL, silence := cfg.DatabaseURL, readSilence
	if cfg.ReadURL != "" {
		readURL, silence = cfg.ReadURL, replicaSilence
	}
	reader, err := postgresPool(readURL, silence, postgresReaders)
	if err != nil {
		return nil, err
	}
	writer, err := postgresPool(cfg.DatabaseURL, writeSilence, postgresWriters)
	if err != nil {
		return nil, err
	}
	keys, err := postgresPool(cfg.DatabaseURL, readSilence, postgresKeys)
	if err != nil {
		return nil, err
	}
	listen, err := postgresURL(cfg.DatabaseURL, connectTime)
	if err != nil {
		return nil, err
	}
	s := &Store{dialect: dialect.Postgres, url: listen, reader: reader, writer: writer, keys: keys, pollEvery: cfg.PollEvery}
	if cfg.ReadURL != "" {
		primary, err := postgresPool(cfg.DatabaseURL, readSilence, postgresReaders)
		if err != nil {
			return nil, err
		}
		s.followWith(primary, cfg.Watch)
	}
	return s, nil
}

func postgresPool(address string, silence time.Duration, size int) (*sql.DB, error) {
	dsn, err := postgresURL(address, min(silence, connectTime))
	if err != nil {
		return nil, err
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		// The driver's own error repeats what it does not understand.
		return nil, &Fault{Message: saidWrongURL, Cause: err}
	}
	connector.Dialer(impatient{silence})
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// CheckURL tells whether an address of a database can be used at all.
func CheckURL(address string) error {
	pool, err := postgresPool(address, readSilence, 1)
	if err != nil {
		return err
	}
	return pool.Close() // nothing was connected
}

// postgresURL fills in what the operator left open; what is spelled out stays.
func postgresURL(raw string, connect time.Duration) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error would repeat the address, password and all.
		return "", &Fault{Message: saidWrongURL}
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", &Fault{Message: saidWrongURL}
		}
	}
	q := u.Query()
	for _, param := range []struct{ key, variable, value string }{
		{"sslmode", "PGSSLMODE", "prefer"}, // as psql does; the driver alone would insist on TLS
		{"connect_timeout", "PGCONNECT_TIMEOUT", strconv.Itoa(int(connect.Seconds()))},
		{"application_name", "PGAPPNAME", "palmares"},
		{"binary_parameters", "", "yes"}, // saves a round trip for each statement
	} {
		if !q.Has(param.key) && os.Getenv(param.variable) == "" {
			q.Set(param.key, param.value)
		}
	}
	// Whatever the server's default: a score is read as it was written.
	q.Set("extra_float_digits", "3")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// impatient makes connections on which no answer may take longer than silence.
type impatient struct{ silence time.Duration }

// Dial is called by the driver.
func (d impatient) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is called by the driver.
func (d impatient) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext is called by the driver.
func (d impatient) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &impatientConn{conn, d.silence}, nil
}

type impatientConn struct {
	net.Conn
	silence time.Duration
}

func (c *impatientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}
