package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
)

const (
	oldestPostgres = 15 // the oldest version that the tests run on
	staleCatalog   = 30 * 24 * time.Hour
	maxReplicaLag  = 16 << 20 // bytes of WAL
	diskWrong      = 64 << 20
	diskWarning    = 1 << 30
)

// checkDatabase checks the database that is written to.
func checkDatabase(ctx context.Context, cfg *Config, r *report) {
	if cfg.DatabaseURL == "" && !checkDataDir(cfg.DataDir, r) {
		return
	}
	start := time.Now()
	db, err := store.Open(ctx, store.Config{DatabaseURL: cfg.DatabaseURL, DataDir: cfg.DataDir, MustExist: true, LockWait: time.Second})
	if err != nil {
		r.databaseError(ctx, "database", err)
		return
	}
	defer db.Close()
	if cfg.DatabaseURL == "" {
		r.ok("database", "The embedded database can be opened.")
	} else if !checkPostgres(ctx, cfg, db, time.Since(start), r) {
		return
	}
	if err := db.CheckMigrated(ctx); err != nil {
		message, cause := explain(ctx, err)
		r.wrong("migrations", sentence(message), "Run palmares migrate up with this version before it serves. If the database is newer, use the newer palmares.", cause)
		return
	}
	r.ok("migrations", "All migrations are applied.")
	checkCatalog(ctx, cfg, db, r)
}

func checkCatalog(ctx context.Context, cfg *Config, db *store.Store, r *report) {
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		message, cause := explain(ctx, err)
		r.wrong("catalog", sentence(message), "Fix the database findings above first.", cause)
		return
	}
	if release == nil {
		r.warn("catalog", "The catalog is empty.", "Import a feed with palmares import FILE.", nil)
		return
	}
	age := cfg.Now().Sub(release.ImportedAt)
	message := fmt.Sprintf("The catalog has release %d, of %s, imported %s.", release.ID, release.FeedDate, formatAge(age))
	if age > staleCatalog {
		r.warn("catalog", message, "Check that the scheduled imports still run.", nil)
		return
	}
	r.ok("catalog", "%s", message)
}

// databaseError reports a database that cannot be used.
func (r *report) databaseError(ctx context.Context, check string, err error) {
	message, cause := explain(ctx, err)
	r.wrong(check, sentence(message), cmp.Or(databaseAdvice[message], "Check that the database runs, that this machine can connect to it, and that its setting is correct."), cause)
}

// databaseAdvice maps messages of store.Fault to what to do about them.
var databaseAdvice = map[string]string{
	"the database refused the user name or password":              "Correct them in the setting or in the database.",
	"the database that DATABASE_URL names does not exist":         "Create it with the encoding UTF8, or correct DATABASE_URL.",
	"the database does not allow this user to do that":            "Make the user the owner of the database, or grant it all privileges.",
	"the database's disk is full":                                 "Free some disk space.",
	"the database cannot be written to":                           "Give palmares' user write access to the file and its folder, and check that the disk is not mounted read-only.",
	"the database file is damaged, or is not a palmares database": "Restore a backup: see deploy/README.md.",
}

// explain separates our message from a library's error.
func explain(ctx context.Context, err error) (message string, cause error) {
	var fault *store.Fault
	switch {
	case errors.As(err, &fault):
		return fault.Message, fault.Cause
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return "the database took too long to respond", err
	}
	return "the database failed unexpectedly", err
}

// checkDataDir checks the folder of the embedded database, and reports whether
// it has a database.
func checkDataDir(dir string, r *report) bool {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.warn("data folder", fmt.Sprintf("The folder %s does not exist.", dir), "Run palmares serve, which creates it, or correct PALMARES_DATA_DIR.", nil)
		return false
	}
	if err := tryWriting(dir); err != nil {
		message, advice := "%s is not writable.", "Check the disk, or correct PALMARES_DATA_DIR."
		switch {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			message, advice = "The disk of %s is full.", "Free some disk space."
		case errors.Is(err, syscall.EROFS):
			message, advice = "The disk of %s is mounted read-only.", "Mount it read-write. If the system remounted it, the disk may be failing."
		case errors.Is(err, fs.ErrPermission):
			message, advice = "palmares has no permission to write to %s.", "Make the user that runs palmares the owner of the folder."
		case errors.Is(err, syscall.ENOTDIR):
			message, advice = "%s is not a folder.", "Correct PALMARES_DATA_DIR."
		}
		r.wrong("data folder", fmt.Sprintf(message, dir), advice, err)
		return false
	}
	r.ok("data folder", "%s is writable.", dir)
	info, err := os.Stat(store.File(dir))
	if err != nil {
		checkDiskSpace(dir, 0, r)
		r.warn("database", "The embedded database does not exist yet.", "Run palmares serve or palmares import, which create it, or correct PALMARES_DATA_DIR.", nil)
		return false
	}
	checkDiskSpace(dir, info.Size(), r)
	return true
}

// tryWriting writes a temporary file: file modes do not show full or read-only
// disks.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 64<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}

// checkDiskSpace checks that there is room for an import or a backup, which may
// each need as much as the database.
func checkDiskSpace(dir string, databaseSize int64, r *report) {
	free, known := freeSpace(dir)
	switch {
	case !known:
	case free < diskWrong:
		r.wrong("disk", fmt.Sprintf("Only %s of disk space are free.", formatBytes(free)), "Free some disk space: the next import may fail.", nil)
	case free < diskWarning || free < databaseSize:
		r.warn("disk", fmt.Sprintf("%s of disk space are free, and the database has %s.", formatBytes(free), formatBytes(databaseSize)), "Free some disk space: an import or a backup may need as much as the database.", nil)
	default:
		r.ok("disk", "%s of disk space are free.", formatBytes(free))
	}
}

// checkPostgres reports whether further checks make sense.
func checkPostgres(ctx context.Context, cfg *Config, db *store.Store, took time.Duration, r *report) bool {
	var version int
	var name, encoding string
	err := queryRow(ctx, db.Write, []any{&version, &name, &encoding},
		`SELECT current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1), current_setting('server_encoding')`)
	if err != nil {
		r.databaseError(ctx, "database", store.Explain(err))
		return false
	}
	if version < oldestPostgres*10000 {
		r.warn("database", fmt.Sprintf("PostgreSQL %s is older than the versions palmares is tested with.", name), fmt.Sprintf("Upgrade to PostgreSQL %d or newer.", oldestPostgres), nil)
	} else {
		r.ok("database", "PostgreSQL %s responded in %s.", name, took.Round(time.Millisecond))
	}
	if encoding != "UTF8" {
		r.wrong("encoding", "The database does not store text as UTF-8.", "Create a new one with ENCODING 'UTF8' and restore the data into it.", nil)
		return false
	}
	r.ok("encoding", "The database stores text as UTF-8.")

	var seconds float64
	before := cfg.Now()
	if err := queryRow(ctx, db.Write, []any{&seconds}, `SELECT extract(epoch FROM clock_timestamp())::float8`); err != nil {
		r.databaseError(ctx, "database clock", store.Explain(err))
	} else {
		r.clock("database clock", "The database's", time.UnixMicro(int64(seconds*1e6)), before.Add(cfg.Now().Sub(before)/2))
	}
	checkConnections(ctx, db, r)
	return true
}

// checkConnections checks that enough connections are free for another server,
// which an upgrade needs. The user and the database may have their own limits.
func checkConnections(ctx context.Context, db *store.Store, r *report) {
	var limit, used int
	err := queryRow(ctx, db.Write, []any{&limit, &used}, `
SELECT least(
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
	(SELECT CASE WHEN rolconnlimit < 0 THEN 1000000 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user),
	(SELECT CASE WHEN datconnlimit < 0 THEN 1000000 ELSE datconnlimit END FROM pg_database WHERE datname = current_database())),
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())::int`)
	if err != nil {
		message, cause := explain(ctx, store.Explain(err))
		r.warn("connections", sentence(message), fmt.Sprintf("Check how many connections are free: a server uses up to %d.", store.MostConnections), cause)
		return
	}
	free := max(limit-used, 0)
	message := fmt.Sprintf("%d of %d connections are free; a server uses up to %d.", free, limit, store.MostConnections)
	if free < store.MostConnections {
		r.warn("connections", message, "Raise max_connections, or the limit of the user or database.", nil)
		return
	}
	r.ok("connections", "%s", message)
}

// checkReplica checks the database that the catalog is read from, if it is a
// different one.
func checkReplica(ctx context.Context, cfg *Config, r *report) {
	if cfg.ReadURL == "" {
		return
	}
	const fallback = " Servers read from DATABASE_URL meanwhile."
	var isReplica, paused bool
	read, err := store.Open(ctx, store.Config{DatabaseURL: cfg.ReadURL})
	if err == nil {
		defer read.Close()
		err = store.Explain(queryRow(ctx, read.Write, []any{&isReplica, &paused}, `SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END`))
	}
	if err != nil {
		message, cause := explain(ctx, err)
		r.wrong("replica", "DATABASE_READ_URL: "+message+"."+fallback, "Check that the replica runs and that the setting is correct.", cause)
		return
	}
	if !isReplica {
		r.warn("replica", "The database of DATABASE_READ_URL is not a replica.", "Set it to a replica of DATABASE_URL, or remove it.", nil)
		return
	}
	if paused {
		r.warn("replica", "Replication is paused, so the replica has an older catalog."+fallback, "Resume it with SELECT pg_wal_replay_resume().", nil)
		return
	}
	lag, err := replicaLag(ctx, cfg, read)
	switch {
	case err != nil:
		r.warn("replica", "The replica responds, but its lag cannot be measured.", "Fix the findings about the database first.", err)
	case lag > maxReplicaLag:
		r.warn("replica", fmt.Sprintf("The replica is %s of changes behind.", formatBytes(lag)), "Check that its machine and the network keep up.", nil)
	default:
		r.ok("replica", "The replica is up to date (%s behind).", formatBytes(max(lag, 0)))
	}
}

// replicaLag returns how many bytes of changes the replica lacks. The primary's
// position is read first, so that changes made meanwhile do not count.
func replicaLag(ctx context.Context, cfg *Config, read *store.Store) (lag int64, err error) {
	primary, err := store.Open(ctx, store.Config{DatabaseURL: cfg.DatabaseURL})
	if err != nil {
		return 0, err
	}
	defer primary.Close()
	var position string
	if err := queryRow(ctx, primary.Write, []any{&position}, `SELECT pg_current_wal_lsn()::text`); err != nil {
		return 0, err
	}
	err = queryRow(ctx, read.Write, []any{&lag}, `SELECT greatest(pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint`, position)
	return lag, err
}

// queryRow reads the only row of a statement.
func queryRow(ctx context.Context, client *ent.Client, into []any, statement string, args ...any) error {
	rows, err := client.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	return cmp.Or(rows.Scan(into...), rows.Close())
}
