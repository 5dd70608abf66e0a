package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
)

// testedVersion is the oldest PostgreSQL that our tests run on.
const testedVersion = 15

// postgres tells whether it makes sense to go on.
func postgres(ctx context.Context, cfg *Config, db *store.Store, took time.Duration, r *report) bool {
	var version int
	var name, encoding string
	err := row(ctx, db.Write, `SELECT current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1), current_setting('server_encoding')`,
		&version, &name, &encoding)
	if err != nil {
		broken(r, "database", store.Explain(err))
		return false
	}
	if version < testedVersion*10000 {
		r.warn("database", fmt.Sprintf("PostgreSQL %s is older than what palmares is tested with.", name), fmt.Sprintf("Use PostgreSQL %d or newer.", testedVersion), nil)
	} else {
		r.ok("database", "PostgreSQL %s answers after %s.", name, took.Round(time.Millisecond))
	}
	if encoding != "UTF8" {
		r.wrong("encoding", "The database does not keep text as UTF-8.", "Make it anew with ENCODING 'UTF8', and restore into it.", nil)
		return false
	}
	r.ok("encoding", "Text is kept as UTF-8.")
	postgresClock(ctx, cfg, db, r)
	connections(ctx, cfg, db, r)
	return true
}

func postgresClock(ctx context.Context, cfg *Config, db *store.Store, r *report) {
	var seconds float64
	asked := cfg.Now()
	if err := row(ctx, db.Write, `SELECT extract(epoch FROM clock_timestamp())::float8`, &seconds); err != nil {
		broken(r, "database clock", store.Explain(err))
		return
	}
	clock(r, "database clock", "The database's", time.UnixMicro(int64(seconds*1e6)), asked.Add(cfg.Now().Sub(asked)/2))
}

// connections that are free must do for this server, and for another one while
// an upgrade runs both. The user and the database may have limits of their own.
func connections(ctx context.Context, cfg *Config, db *store.Store, r *report) {
	var most, taken int
	err := row(ctx, db.Write, `
SELECT least(
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
	(SELECT CASE WHEN rolconnlimit < 0 THEN 1000000 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user),
	(SELECT CASE WHEN datconnlimit < 0 THEN 1000000 ELSE datconnlimit END FROM pg_database WHERE datname = current_database())),
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())::int`, &most, &taken)
	if err != nil {
		message, cause := said(ctx, store.Explain(err))
		r.warn("connections", sentence(message), "See how many connections are left: a server takes up to "+fmt.Sprint(store.MostConnections)+".", cause)
		return
	}
	free := max(most-taken, 0)
	if free < store.MostConnections {
		r.warn("connections", fmt.Sprintf("%d of %d are free, and a server takes up to %d.", free, most, store.MostConnections),
			"Raise max_connections, or the limit of the user or database.", nil)
		return
	}
	r.ok("connections", "%d of %d are free, and a server takes up to %d.", free, most, store.MostConnections)
}

// row reads the one row that a statement has.
func row(ctx context.Context, client *ent.Client, statement string, into ...any) error {
	rows, err := client.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	return rows.Close()
}
