package doctor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"palmares/internal/core/store"
)

// database looks at the one that is written to.
func database(ctx context.Context, cfg *Config, r *report) {
	if cfg.DatabaseURL == "" && !folder(cfg.DataDir, r) {
		return
	}
	asked := time.Now()
	db, err := store.Open(ctx, store.Config{DatabaseURL: cfg.DatabaseURL, DataDir: cfg.DataDir, MustExist: true, LockWait: time.Second})
	if err != nil {
		broken(r, "database", err)
		return
	}
	defer db.Close()
	if cfg.DatabaseURL == "" {
		r.ok("database", "The embedded database opens.")
	} else if !postgres(ctx, cfg, db, time.Since(asked), r) {
		return
	}
	if migrations(ctx, db, r) {
		catalog(ctx, cfg, db, r)
	}
}

func migrations(ctx context.Context, db *store.Store, r *report) bool {
	err := db.CheckMigrated(ctx)
	if err == nil {
		r.ok("migrations", "Every migration is in.")
		return true
	}
	message, cause := said(ctx, err)
	r.wrong("migrations", sentence(message), "Run this palmares' migrate up before it serves; if the database is the newer one, use the newer palmares.", cause)
	return false
}

// broken reports a database that cannot be worked with.
func broken(r *report, check string, err error) {
	message, cause := said(context.Background(), err)
	r.wrong(check, sentence(message), cmp.Or(advice[message], "See whether it runs, whether the way to it is open, and whether its setting is right."), cause)
}

// advice is what to do about the faults that say little of it by themselves.
var advice = map[string]string{
	"the database refused the user name or password":              "Correct them in the setting, or at the database.",
	"the database that DATABASE_URL names does not exist":         "Make it, with the encoding UTF8, or correct DATABASE_URL.",
	"the database does not allow this user to do that":            "Let the user own the database, or grant it all of it.",
	"the database's disk is full":                                 "Make room on it.",
	"the database cannot be written to":                           "Give palmares' user the file and its folder; see that the disk is not mounted for reading only.",
	"the database file is damaged, or is not a palmares database": "Restore a backup: see deploy/README.md.",
}

// said parts our words from a library's.
func said(ctx context.Context, err error) (message string, cause error) {
	var fault *store.Fault
	switch {
	case errors.As(err, &fault):
		return fault.Message, fault.Cause
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return "the database took too long", err
	}
	return "the database failed unexpectedly", err
}
