package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"entgo.io/ent/dialect"
	_ "modernc.org/sqlite" // a driver in pure Go: nothing to install
)

const (
	databaseFile = "palmares.db"
	sqliteKeys   = 2 // connections to look up API keys

	// An import changes the same pages repeatedly and should not write them to disk
	// each time; a server writes little. The memory is allocated only when needed.
	importCacheKB = 64 << 10
	writerCacheKB = 4 << 10
	// walLimit is the size to which the write-ahead log is truncated after a large
	// import.
	walLimit = 64 << 20
)

// File returns the path of the embedded database in a folder.
func File(dataDir string) string { return filepath.Join(dataDir, databaseFile) }

func openSQLite(cfg Config) (*Store, error) {
	path, err := filepath.Abs(File(cfg.DataDir))
	if err != nil {
		return nil, err
	}
	if cfg.MustExist {
		if _, err := os.Stat(path); err != nil {
			return nil, &Error{Message: fmt.Sprintf("there is no database in %s", cfg.DataDir), Cause: err}
		}
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, &Error{Message: fmt.Sprintf("cannot create the data directory %s", cfg.DataDir), Cause: err}
	}
	createPrivate(path)

	cacheKB := writerCacheKB
	if cfg.ForImport {
		cacheKB = importCacheKB
	}
	pool := func(name string, size int, params url.Values, pragmas ...string) *sql.DB {
		// In the DSN, pragmas apply to every connection of a pool.
		params["_pragma"] = append([]string{fmt.Sprintf("busy_timeout(%d)", cfg.LockWait.Milliseconds())}, pragmas...)
		dsn := &url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}
		return openPool(sqliteConnector(dsn.String()), name, cfg.OnStatement, size)
	}
	readers := max(4, runtime.NumCPU())
	return &Store{
		dialect: dialect.SQLite, path: path, pollEvery: cfg.PollEvery,
		// SQLite has one write lock, and one connection is a fairer queue than
		// several that poll for it. Its transactions are immediate, because a read
		// that turns into a write cannot wait for the lock.
		writer: pool(poolWriter, 1, url.Values{"_txlock": {"immediate"}},
			"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
			fmt.Sprintf("cache_size(-%d)", cacheKB), fmt.Sprintf("journal_size_limit(%d)", walLimit)),
		reader: pool(poolReader, readers, url.Values{}, "query_only(1)"),
		keys:   pool(poolKeys, sqliteKeys, url.Values{}, "query_only(1)"),
	}, nil
}

// sqliteConnector connects to a DSN.
type sqliteConnector string

func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(string(c))
}

func (c sqliteConnector) Driver() driver.Driver { return sqliteDriver }

// sqliteDriver is the registered driver; opening it does not connect.
var sqliteDriver = func() driver.Driver {
	db, err := sql.Open("sqlite", "")
	if err != nil {
		panic(err) // the import above is missing
	}
	return db.Driver()
}()

// createPrivate creates a database file that only its owner can read. The driver
// would not do so; its other files inherit the mode. An existing file is not
// opened, because closing it would release this process's locks on it. Errors are
// left to the driver, which fails to open the file.
func createPrivate(path string) {
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = file.Close()
	}
}

// firstStatement returns a statement that fails if the database cannot be used. On
// SQLite, it reads the file, so that the write-ahead log exists afterwards.
func (s *Store) firstStatement() string {
	if s.path == "" {
		return "SELECT 1"
	}
	return "SELECT count(*) FROM sqlite_master"
}

func (s *Store) recordFile() error {
	if s.path == "" {
		return nil
	}
	s.files = map[string]os.FileInfo{}
	for _, path := range []string{s.path, s.path + "-wal"} {
		file, err := os.Stat(path)
		if err != nil {
			return newError(Unreadable, err)
		}
		s.files[path] = file
	}
	return nil
}

// checkSameFile returns an error if another file has replaced an open one, because
// later imports would not be visible. A backup that is copied over the database does
// not replace its file, but its write-ahead log, which exists while a process uses it.
func (s *Store) checkSameFile() error {
	for path, opened := range s.files {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, opened) {
			return newError(Replaced, err)
		}
	}
	return nil
}
