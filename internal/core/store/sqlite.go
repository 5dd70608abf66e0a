package store

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"entgo.io/ent/dialect"
	_ "modernc.org/sqlite" // the SQLite driver, pure Go: nothing to install
)

const (
	databaseFile = "palmares.db"
	sqliteKeys   = 2 // connections to look keys up

	// An import touches pages over and over, and should not write and read them
	// each time; a server writes little. It is only taken as it is needed.
	importCacheKB = 64 << 10
	writerCacheKB = 4 << 10
	// walLimit is what the write-ahead log shrinks back to after a large import.
	walLimit = 64 << 20
)

// File is where the embedded database of a folder is.
func File(dataDir string) string { return filepath.Join(dataDir, databaseFile) }

func openSQLite(cfg Config) (*Store, error) {
	path, err := filepath.Abs(File(cfg.DataDir))
	if err != nil {
		return nil, err
	}
	if cfg.MustExist {
		if _, err := os.Stat(path); err != nil {
			return nil, &Fault{Message: fmt.Sprintf("there is no database in %s", cfg.DataDir), Cause: err}
		}
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, &Fault{Message: fmt.Sprintf("cannot create the data directory %s", cfg.DataDir), Cause: err}
	}

	createPrivate(path)

	cacheKB := writerCacheKB
	if cfg.ForImport {
		cacheKB = importCacheKB
	}
	// One writer: SQLite has one write lock, and a queue in the process is
	// fairer than connections that poll for it. Its transactions are
	// immediate, since a read that turns into a write cannot wait for the lock.
	writer, err := sql.Open("sqlite", sqliteDSN(path, cfg.LockWait, url.Values{"_txlock": {"immediate"}},
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		fmt.Sprintf("cache_size(-%d)", cacheKB), fmt.Sprintf("journal_size_limit(%d)", walLimit)))
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)

	reader, err := sqliteReaders(path, cfg.LockWait, max(4, runtime.NumCPU()))
	if err != nil {
		return nil, err
	}
	keys, err := sqliteReaders(path, cfg.LockWait, sqliteKeys)
	if err != nil {
		return nil, err
	}
	return &Store{dialect: dialect.SQLite, path: path, reader: reader, writer: writer, keys: keys, pollEvery: cfg.PollEvery}, nil
}

func sqliteReaders(path string, wait time.Duration, size int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqliteDSN(path, wait, url.Values{}, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// createPrivate makes a new database's file for its owner alone, as the driver
// would not; the files beside it take its mode. Where there is one, it is not
// touched: to close it again would end the locks that this process has on it.
// Why it cannot be made is for the driver to find out.
func createPrivate(path string) {
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = file.Close()
	}
}

func (s *Store) rememberFile() error {
	if s.path == "" {
		return nil
	}
	var err error
	if s.file, err = os.Stat(s.path); err != nil {
		return &Fault{Message: saidFile, Cause: err}
	}
	return nil
}

// sameFile fails when another file took the place of the one we have open:
// what others import would never be seen.
func (s *Store) sameFile() error {
	if s.path == "" {
		return nil
	}
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(now, s.file) {
		return &Fault{Message: saidReplaced, Cause: err}
	}
	return nil
}

// sqliteDSN puts the pragmas into the name, so that every connection of a
// pool has them, not only the first.
func sqliteDSN(path string, wait time.Duration, params url.Values, pragmas ...string) string {
	params["_pragma"] = append([]string{fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds())}, pragmas...)
	return (&url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}).String()
}
