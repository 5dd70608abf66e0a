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

	"palmares/internal/core/store"
)

const (
	oldestPostgres = 15 // the oldest version that the tests run on
	staleCatalog   = 30 * 24 * time.Hour
	diskWrong      = 64 << 20
	diskWarning    = 1 << 30
)

// checkDatabase checks the primary database.
func checkDatabase(ctx context.Context, cfg *Config, r report) {
	if cfg.DatabaseURL == "" && !checkDataDir(cfg.DataDir, r) {
		return
	}
	start := time.Now()
	db, err := store.Open(ctx, store.Config{DatabaseURL: cfg.DatabaseURL, DataDir: cfg.DataDir, MustExist: true, LockWait: time.Second})
	if err != nil {
		r.databaseError(ctx, "database", Wrong, err, connectionAdvice)
		return
	}
	defer db.Close()
	if cfg.DatabaseURL == "" {
		r.ok("database", "The embedded database can be opened.")
	} else if !checkPostgres(ctx, cfg, db, time.Since(start), r) {
		return
	}
	if err := db.CheckMigrated(ctx); err != nil {
		r.databaseError(ctx, "migrations", Wrong, err, "Run palmares migrate up. If the database is newer than palmares, upgrade palmares.")
		return
	}
	r.ok("migrations", "All migrations are applied.")
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		r.databaseError(ctx, "catalog", Wrong, err, "Fix the database findings above first.")
		return
	}
	if release == nil {
		r.add("catalog", Warning, "The catalog is empty.", "Import a feed with palmares import FILE.", nil)
		return
	}
	age := cfg.Now().Sub(release.ImportedAt)
	message := fmt.Sprintf("The catalog is at release %d (feed date %s), imported %s.", release.ID, release.FeedDate, formatAge(age))
	r.addFirst("catalog", nil, []outcome{
		{age > staleCatalog, Warning, message, "Check that scheduled imports are still running."},
		{true, OK, message, ""},
	})
}

const connectionAdvice = "Check that the database is running, that this machine can connect to it, and that the setting is correct."

// databaseError reports a failed query. The advice is for errors that are not in
// databaseAdvice.
func (r report) databaseError(ctx context.Context, check string, state State, err error, advice string) {
	code, message, cause := explain(ctx, err)
	r.add(check, state, sentence(message), cmp.Or(databaseAdvice[code], advice), cause)
}

// databaseAdvice says what to do about an error.
var databaseAdvice = map[store.Code]string{
	store.Refused:  "Correct them in DATABASE_URL or in the database.",
	store.Missing:  "Create it with the encoding UTF8, or correct DATABASE_URL.",
	store.Denied:   "Make the user the owner of the database, or grant it all privileges.",
	store.Full:     "Free some disk space.",
	store.ReadOnly: "Give the user that runs palmares write access to the file and its folder, and check that the disk is not mounted read-only.",
	store.Broken:   "Restore a backup: see deploy/README.md.",
}

// explain returns the code and the message of an error, and the library's error that
// caused it.
func explain(ctx context.Context, err error) (code store.Code, message string, cause error) {
	var databaseErr *store.Error
	switch {
	case errors.As(err, &databaseErr):
		return databaseErr.Code, databaseErr.Message, databaseErr.Cause
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return store.Slow, string(store.Slow), err
	}
	return store.Failed, string(store.Failed), err
}

// checkDataDir checks the folder of the embedded database and reports whether it
// contains one.
func checkDataDir(dir string, r report) bool {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.add("data folder", Warning, fmt.Sprintf("The folder %s does not exist.", dir), "Run palmares serve, which creates it, or correct PALMARES_DATA_DIR.", nil)
		return false
	}
	err := tryWriting(dir)
	state := r.addFirst("data folder", err, []outcome{
		{err == nil, OK, dir + " is writable.", ""},
		{errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT), Wrong, fmt.Sprintf("The disk of %s is full.", dir), "Free some disk space."},
		{errors.Is(err, syscall.EROFS), Wrong, fmt.Sprintf("The disk of %s is mounted read-only.", dir), "Mount it read-write. If the system remounted it, the disk may be failing."},
		{errors.Is(err, fs.ErrPermission), Wrong, "Palmares has no permission to write to " + dir + ".", "Make the user that runs palmares the owner of the folder."},
		{errors.Is(err, syscall.ENOTDIR), Wrong, dir + " is not a folder.", "Correct PALMARES_DATA_DIR."},
		{true, Wrong, dir + " is not writable.", "Check the disk, or correct PALMARES_DATA_DIR."},
	})
	if state != OK {
		return false
	}
	var size int64
	info, err := os.Stat(store.File(dir))
	if err == nil {
		size = info.Size()
	}
	checkDiskSpace(dir, size, r)
	if err != nil {
		r.add("database", Warning, "The embedded database does not exist yet.", "Run palmares serve or palmares import, which create it, or correct PALMARES_DATA_DIR.", nil)
	}
	return err == nil
}

// tryWriting writes a temporary file, because file modes do not reveal full or
// read-only disks.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 64<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}

// checkDiskSpace checks that there is room for an import or a backup, each of which
// may need as much space as the database.
func checkDiskSpace(dir string, databaseSize int64, r report) {
	free, known := freeSpace(dir)
	if !known {
		return
	}
	available, used := formatBytes(free), formatBytes(databaseSize)
	r.addFirst("disk", nil, []outcome{
		{free < diskWrong, Wrong, fmt.Sprintf("Only %s of disk space is free.", available), "Free some disk space, or the next import may fail."},
		{free < diskWarning || free < databaseSize, Warning, fmt.Sprintf("%s of disk space is free, and the database takes up %s.", available, used), "Free some disk space: an import or a backup may need as much space as the database."},
		{true, OK, available + " of disk space is free.", ""},
	})
}

// checkPostgres checks the server and reports whether further checks make sense.
func checkPostgres(ctx context.Context, cfg *Config, db *store.Store, took time.Duration, r report) bool {
	var version int
	var name, encoding string
	err := queryRow(ctx, db, []any{&version, &name, &encoding},
		`SELECT current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1), current_setting('server_encoding')`)
	if err != nil {
		r.databaseError(ctx, "database", Wrong, err, connectionAdvice)
		return false
	}
	r.addFirst("database", nil, []outcome{
		{version < oldestPostgres*10000, Warning, fmt.Sprintf("PostgreSQL %s is older than the versions palmares is tested with.", name), fmt.Sprintf("Upgrade to PostgreSQL %d or newer.", oldestPostgres)},
		{true, OK, fmt.Sprintf("PostgreSQL %s responded in %s.", name, took.Round(time.Millisecond)), ""},
	})
	if encoding != "UTF8" {
		r.add("encoding", Wrong, "The database does not store text as UTF-8.", "Create a new one with ENCODING 'UTF8' and restore the data into it.", nil)
		return false
	}
	r.ok("encoding", "The database stores text as UTF-8.")

	before := cfg.Now()
	if ahead, err := db.ClockOffset(ctx, before); err != nil {
		r.databaseError(ctx, "database clock", Wrong, err, connectionAdvice)
	} else {
		r.clock("database clock", "The database's", before.Add(ahead), before.Add(cfg.Now().Sub(before)/2))
	}
	checkConnections(ctx, db, r)
	return true
}

// checkConnections checks that enough connections are free for another server,
// which an upgrade needs. The user and the database may have their own limits.
func checkConnections(ctx context.Context, db *store.Store, r report) {
	var limit, used int
	err := queryRow(ctx, db, []any{&limit, &used}, `
SELECT least(
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
	(SELECT CASE WHEN rolconnlimit < 0 THEN 1000000 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user),
	(SELECT CASE WHEN datconnlimit < 0 THEN 1000000 ELSE datconnlimit END FROM pg_database WHERE datname = current_database())),
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())::int`)
	if err != nil {
		r.databaseError(ctx, "connections", Warning, err, fmt.Sprintf("Check how many connections are free: a server uses up to %d.", store.MaxConnections))
		return
	}
	free := max(limit-used, 0)
	message := fmt.Sprintf("%d of %d connections are free; a server uses up to %d.", free, limit, store.MaxConnections)
	r.addFirst("connections", nil, []outcome{
		{free < store.MaxConnections, Warning, message, "Raise max_connections, or the limit of the user or database."},
		{true, OK, message, ""},
	})
}

// queryRow reads the only row of a statement.
func queryRow(ctx context.Context, db *store.Store, into []any, statement string, args ...any) error {
	return store.ScanRows(ctx, db.Pools()["writer"], func(rows *sql.Rows) error { return rows.Scan(into...) }, statement, args...)
}
