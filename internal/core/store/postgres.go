package store

import (
	"cmp"
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
	// The pools limit what one process takes from a server that others share.
	postgresReaders = 16
	postgresWriters = 4
	postgresKeys    = 2

	// MostConnections is the maximum number of connections that a server opens to
	// the primary database, including one to listen for new releases.
	MostConnections = postgresReaders + postgresWriters + postgresKeys + 1

	// A database that hangs must not block the program forever. No query and no
	// statement of an import takes this long.
	readSilence    = 10 * time.Second
	writeSilence   = 2 * time.Minute
	connectTimeout = 5 * time.Second
	// A replica that hangs must leave time to query the primary.
	replicaSilence = 2 * time.Second
)

func openPostgres(cfg Config) (*Store, error) {
	listen, err := postgresURL(cfg.DatabaseURL, connectTimeout)
	if err != nil {
		return nil, err
	}
	pool := func(url, name string, silence time.Duration, size int) *sql.DB {
		db, failed := postgresPool(url, name, cfg.Watch, silence, size)
		err = cmp.Or(err, failed)
		return db
	}
	s := &Store{
		dialect: dialect.Postgres, url: listen, pollEvery: cfg.PollEvery,
		writer: pool(cfg.DatabaseURL, poolWriter, writeSilence, postgresWriters),
		keys:   pool(cfg.DatabaseURL, poolKeys, readSilence, postgresKeys),
	}
	if cfg.ReadURL == "" {
		s.reader = pool(cfg.DatabaseURL, poolReader, readSilence, postgresReaders)
	} else {
		s.reader = pool(cfg.ReadURL, poolReader, replicaSilence, postgresReaders)
		s.setPrimary(pool(cfg.DatabaseURL, poolPrimary, readSilence, postgresReaders))
	}
	return s, err
}

func postgresPool(url, pool string, watch Watch, silence time.Duration, size int) (*sql.DB, error) {
	dsn, err := postgresURL(url, min(silence, connectTimeout))
	if err != nil {
		return nil, err
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		// The driver's error repeats the part that it cannot parse.
		return nil, &Fault{Message: messageWrongURL, Cause: err}
	}
	connector.Dialer(dialer{silence: silence})
	return openPool(connector, pool, watch, size), nil
}

// CheckURL returns an error if a database URL cannot be used at all.
func CheckURL(url string) error {
	pool, err := postgresPool(url, "", nil, readSilence, 1)
	if err != nil {
		return err
	}
	return pool.Close() // it has no connections yet
}

// postgresURL adds defaults for parameters that the operator did not set.
func postgresURL(raw string, timeout time.Duration) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's error would repeat the URL with its password.
		return "", &Fault{Message: messageWrongURL}
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", &Fault{Message: messageWrongURL}
		}
	}
	q := u.Query()
	for _, param := range []struct{ key, variable, value string }{
		{"sslmode", "PGSSLMODE", "prefer"}, // as psql does; the driver would require TLS
		{"connect_timeout", "PGCONNECT_TIMEOUT", strconv.Itoa(int(timeout.Seconds()))},
		{"application_name", "PGAPPNAME", "palmares"},
		{"binary_parameters", "", "yes"}, // saves a round trip per statement
	} {
		if !q.Has(param.key) && os.Getenv(param.variable) == "" {
			q.Set(param.key, param.value)
		}
	}
	// Scores are read exactly as they were written, regardless of the server's
	// default.
	q.Set("extra_float_digits", "3")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// dialer opens connections on which a read fails if no data arrives for a while.
// The driver calls DialContext only, but requires all methods of pq.Dialer.
type dialer struct {
	pq.Dialer
	silence time.Duration
}

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &timeoutConn{conn, d.silence}, nil
}

type timeoutConn struct {
	net.Conn
	silence time.Duration
}

func (c *timeoutConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}
