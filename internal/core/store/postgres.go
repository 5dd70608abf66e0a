package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"
)

const (
	// The pools limit how many connections one process takes from a shared server.
	postgresReaders = 16
	postgresWriters = 4
	postgresKeys    = 2

	// MaxConnections is the maximum number of connections that a server opens to
	// the primary database, including one to listen for new releases.
	MaxConnections = postgresReaders + postgresWriters + postgresKeys + 1

	// The timeouts apply while a socket receives no data, even if the context of a
	// statement lasts longer. No query and no statement of an import takes this long.
	readTimeout    = 10 * time.Second
	writeTimeout   = 2 * time.Minute
	connectTimeout = 5 * time.Second
)

func openPostgres(cfg Config) (*Store, error) {
	listen, err := postgresURL(cfg.DatabaseURL, connectTimeout)
	if err != nil {
		return nil, err
	}
	pool := func(name string, timeout time.Duration, size int) *sql.DB {
		db, poolErr := postgresPool(cfg.DatabaseURL, name, cfg.OnStatement, timeout, size)
		err = cmp.Or(err, poolErr)
		return db
	}
	return &Store{
		dialect: dialect.Postgres, url: listen, pollEvery: cfg.PollEvery,
		reader: pool(poolReader, readTimeout, postgresReaders),
		writer: pool(poolWriter, writeTimeout, postgresWriters),
		keys:   pool(poolKeys, readTimeout, postgresKeys),
	}, err
}

func postgresPool(url, pool string, hook StatementHook, timeout time.Duration, size int) (*sql.DB, error) {
	dsn, err := postgresURL(url, min(timeout, connectTimeout))
	if err != nil {
		return nil, err
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		// The driver's error repeats the part that it cannot parse.
		return nil, newError(WrongURL, err)
	}
	connector.Dialer(dialer{timeout: timeout})
	return openPool(connector, pool, hook, size), nil
}

// CheckURL returns an error if a database URL cannot be used at all. Errors never contain
// the URL, which may have a password.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return errors.New("must have the form postgres://user:password@host:port/database")
	}
	if strings.Trim(u.Path, "/") == "" {
		return errors.New("must name a database, as in postgres://host:port/database")
	}
	pool, err := postgresPool(address, "", nil, readTimeout, 1)
	if err != nil {
		return errors.New("has an invalid port or parameter")
	}
	return pool.Close() // it has no connections yet
}

// postgresURL adds defaults for parameters that the operator did not set.
func postgresURL(raw string, timeout time.Duration) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's error would repeat the URL with its password.
		return "", newError(WrongURL, nil)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", newError(WrongURL, nil)
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

// dialer opens sockets. The driver only calls DialContext, but requires all methods
// of pq.Dialer.
type dialer struct {
	pq.Dialer
	timeout time.Duration
}

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s, watched := ctx.Value(socketKey{}).(*socket)
	if !watched { // the driver cancels a statement
		s = &socket{}
	}
	return s.connect(conn, d.timeout), nil
}
