package doctor

import (
	"context"
	"fmt"

	"palmares/internal/core/store"
)

// behind is how much of its log a replica may be short of and still count as
// following.
const behind = 16 << 20

// replica looks at the database that the catalog is read from, where it is
// another one.
func replica(ctx context.Context, cfg *Config, r *report) {
	if cfg.ReadURL == "" {
		return
	}
	const goesOn = "The other database is read meanwhile."
	read, err := store.Open(ctx, store.Config{DatabaseURL: cfg.ReadURL})
	if err != nil {
		message, cause := said(ctx, err)
		r.wrong("replica", "Of DATABASE_READ_URL: "+message+". "+goesOn, "See whether it runs, and whether the setting is right.", cause)
		return
	}
	defer read.Close()
	var follows, paused bool
	if err := row(ctx, read.Write, `SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END`, &follows, &paused); err != nil {
		message, cause := said(ctx, store.Explain(err))
		r.wrong("replica", "Of DATABASE_READ_URL: "+message+". "+goesOn, "See whether it hangs.", cause)
		return
	}
	if !follows {
		r.warn("replica", "What DATABASE_READ_URL names follows no other database.", "Name a replica of the one in DATABASE_URL, or leave it out.", nil)
		return
	}
	if paused {
		r.warn("replica", "It is told to wait, and shows an older catalog than there is. "+goesOn, "Let it go on: SELECT pg_wal_replay_resume().", nil)
		return
	}
	short, err := lag(ctx, cfg, read)
	switch {
	case err != nil:
		r.warn("replica", "It answers, but how far it is behind cannot be told.", "See the lines about the database that it follows.", err)
	case short > behind:
		r.warn("replica", fmt.Sprintf("It is %s of changes behind.", bytes(short)), "See whether its machine and the network keep up.", nil)
	default:
		r.ok("replica", "It follows, %s of changes behind.", bytes(max(short, 0)))
	}
}

// lag is how many bytes of changes the replica lacks. The database that it
// follows is asked first: asked last, what is written meanwhile would count.
func lag(ctx context.Context, cfg *Config, read *store.Store) (short int64, err error) {
	followed, err := store.Open(ctx, store.Config{DatabaseURL: cfg.DatabaseURL})
	if err != nil {
		return 0, err
	}
	defer followed.Close()
	var at string
	if err := row(ctx, followed.Write, `SELECT pg_current_wal_lsn()::text`, &at); err != nil {
		return 0, err
	}
	rows, err := read.Write.QueryContext(ctx, `SELECT greatest(pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint`, at)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&short); err != nil {
			return 0, err
		}
	}
	return short, rows.Err()
}
