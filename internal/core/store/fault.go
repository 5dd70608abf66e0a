package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Fault is what went wrong with the database in our own words. Its cause, in
// the database's words, is for the log alone.
type Fault struct {
	Message string
	Cause   error
	Unsure  bool // whether what was being written is in

	newer bool // the database is, than this program
}

func (f *Fault) Error() string { return f.Message }
func (f *Fault) Unwrap() error { return f.Cause }

// LogValue is how a log tells it.
func (f *Fault) LogValue() slog.Value {
	if f.Cause == nil {
		return slog.StringValue(f.Message)
	}
	return slog.StringValue(f.Message + ": " + f.Cause.Error())
}

const (
	saidBusy     = "another import or migration is still running: try again when it has ended"
	saidFull     = "the database's disk is full"
	saidLost     = "the database cannot be reached"
	saidRefused  = "the database refused the user name or password"
	saidMissing  = "the database that DATABASE_URL names does not exist"
	saidReadOnly = "the database cannot be written to"
	saidDenied   = "the database does not allow this user to do that"
	saidSlow     = "the database took too long"
	saidNoTLS    = "the database does not offer TLS, which DATABASE_URL asks for"
	saidWrongURL = "DATABASE_URL has a part that is not understood"
	saidEncoding = "the database does not keep text as UTF-8: make it with ENCODING 'UTF8'"
	saidUnsure   = "the database was lost just as it confirmed"
	saidReplaced = "the database file was moved or replaced: restart the server"
	saidFile     = "the database file cannot be opened or read"
	saidBroken   = "the database file is damaged, or is not a palmares database"
	saidOther    = "the database failed unexpectedly"
)

// Explain is for those who use a client themselves.
func Explain(err error) error { return explain(err) }

// explain turns a driver's error into a Fault; errors that are not a
// database's pass unchanged.
func explain(err error) error {
	var fault *Fault
	if err == nil || errors.As(err, &fault) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if said := meaning(err); said != "" {
		return &Fault{Message: said, Cause: err}
	}
	return err
}

func meaning(err error) string {
	var fromPostgres *pq.Error
	if errors.As(err, &fromPostgres) {
		return postgresMeaning(fromPostgres.Code)
	}
	var fromSQLite *sqlite.Error
	if errors.As(err, &fromSQLite) {
		return sqliteMeaning(fromSQLite.Code())
	}
	var fromNetwork *net.OpError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return saidFull
	case errors.Is(err, pq.ErrSSLNotSupported):
		return saidNoTLS
	case errors.As(err, &fromNetwork), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		return saidLost
	}
	return ""
}

// postgresMeaning reads an SQLSTATE, its class being the first two characters.
func postgresMeaning(code pqerror.Code) string {
	switch code {
	case "55P03":
		return saidBusy
	case "53100":
		return saidFull
	case "3D000":
		return saidMissing
	case "25006":
		return saidReadOnly
	case "42501":
		return saidDenied
	case "57014":
		return saidSlow
	case "22P05", "22021":
		return saidEncoding
	}
	switch code.Class() {
	case "08", "57", "53":
		return saidLost
	case "28":
		return saidRefused
	}
	return saidOther
}

// sqliteMeaning reads a result code, the primary one being the low byte.
func sqliteMeaning(code int) string {
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return saidBusy
	case sqlite3.SQLITE_FULL:
		return saidFull
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR:
		return saidFile
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return saidReadOnly
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return saidBroken
	}
	return saidOther
}
