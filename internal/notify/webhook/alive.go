package webhook

import (
	"context"
	"time"

	"entgo.io/ent/dialect"
)

// A server that dies at work leaves a job that says it is running, and its
// endpoint waits. River takes such a job up when it must be over, a minute
// later. So servers also tell each other that they live, in a table that River
// made for it, by the database's clock; who has not for a while has its jobs
// taken over. One that only seems dead sends what another sends, too: an event
// may come twice, with its one id.

// life is what a server knows of its own.
type life struct {
	id    string
	since time.Time // when it began to beat without a pause
	last  time.Time
}

// beat tells that the server lives, and takes over what the dead have left. A
// server that could not tell it itself for a while does not judge: the database
// was away for all of them.
func (w *Webhooks) beat(ctx context.Context, l *life) error {
	if err := w.exec(ctx, beatPostgres, beatSQLite, l.id); err != nil {
		return err
	}
	now := time.Now()
	if now.Sub(l.last) > w.times.look+w.times.dead/8 { // others may look dead by as much more
		l.since = now
	}
	l.last = now
	if now.Sub(l.since) < w.times.dead {
		return nil
	}
	return w.exec(ctx, takeOverPostgres, takeOverSQLite, wake{}.Kind(), w.times.dead.Seconds())
}

const (
	beatPostgres = `INSERT INTO river_client (id, updated_at) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET updated_at = now()`
	beatSQLite   = `INSERT INTO river_client (id, updated_at) VALUES (?, strftime('%Y-%m-%d %H:%M:%f')) ON CONFLICT (id) DO UPDATE SET updated_at = strftime('%Y-%m-%d %H:%M:%f')`

	takeOverPostgres = `UPDATE river_job SET state = 'available', scheduled_at = now()
		WHERE kind = $1 AND state = 'running' AND attempted_at < now() - make_interval(secs => $2::float8) AND NOT EXISTS (
			SELECT FROM river_client WHERE id = attempted_by[array_upper(attempted_by, 1)] AND updated_at > now() - make_interval(secs => $2::float8))`
	takeOverSQLite = `UPDATE river_job SET state = 'available', scheduled_at = strftime('%Y-%m-%d %H:%M:%f')
		WHERE kind = ?1 AND state = 'running' AND julianday(attempted_at) < julianday('now') - ?2 / 86400 AND NOT EXISTS (
			SELECT 1 FROM river_client WHERE id = json_extract(attempted_by, '$[#-1]') AND julianday(updated_at) > julianday('now') - ?2 / 86400)`

	forgetPostgres = `DELETE FROM river_client WHERE updated_at < now() - interval '1 day'`
	forgetSQLite   = `DELETE FROM river_client WHERE julianday(updated_at) < julianday('now') - 1`
)

// exec takes one of PostgreSQL's connections that a silent server keeps for
// seconds only: a look must not hang for as long as a statement of an import
// may take.
func (w *Webhooks) exec(ctx context.Context, postgres, sqlite string, args ...any) error {
	client := w.Store.Write
	if w.Store.Dialect() == dialect.Postgres {
		client = w.Store.Current()
	}
	_, err := client.ExecContext(ctx, w.statement(postgres, sqlite), args...)
	return err
}

func (w *Webhooks) statement(postgres, sqlite string) string {
	if w.Store.Dialect() == dialect.Postgres {
		return postgres
	}
	return sqlite
}

// forgetDead ends the rows of servers that are long gone.
func (w *Webhooks) forgetDead(ctx context.Context) error {
	return w.exec(ctx, forgetPostgres, forgetSQLite)
}
