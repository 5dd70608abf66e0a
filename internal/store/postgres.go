package store

import (
	"database/sql"
	"net/url"

	"entgo.io/ent/dialect"
	_ "github.com/lib/pq" // the PostgreSQL driver
)

// postgresConns bounds what one process asks of a server that others share.
const postgresConns = 16

func openPostgres(cfg Config) (*Store, error) {
	dsn, err := postgresURL(cfg.DatabaseURL)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	return &Store{dialect: dialect.Postgres, url: dsn, reader: db, writer: db}, nil
}

// postgresURL fills in what the operator left open; what is spelled out stays.
func postgresURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error would repeat the address, password and all.
		return "", &Fault{Message: "DATABASE_URL is not a valid address"}
	}
	q := u.Query()
	for key, value := range map[string]string{
		"sslmode":           "prefer", // as psql does; the driver alone would insist on TLS
		"connect_timeout":   "5",
		"application_name":  "palmares",
		"binary_parameters": "yes", // saves a round trip for each statement
	} {
		if !q.Has(key) {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}
