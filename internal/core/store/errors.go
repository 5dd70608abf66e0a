package store

import (
	"cmp"
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

// Error is a database error with a message for users. The driver's own error is
// its cause, which is for the log only.
type Error struct {
	Code          Code // or "" for what only Message says
	Message       string
	Cause         error
	CommitUnknown bool // the transaction may or may not have been committed

	newer bool // the database is newer than this program
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

func newError(code Code, cause error) *Error {
	return &Error{Code: code, Message: string(code), Cause: cause}
}

// LogValue implements slog.LogValuer.
func (e *Error) LogValue() slog.Value {
	if e.Cause == nil {
		return slog.StringValue(e.Message)
	}
	return slog.StringValue(e.Message + ": " + e.Cause.Error())
}

// Code says what is wrong with a database. Its text is the message for users.
type Code string

// The codes.
const (
	Busy          Code = "another import or migration is still running: try again when it has finished"
	Full          Code = "the database's disk is full"
	Lost          Code = "the database cannot be reached"
	Refused       Code = "the database rejected the user name or password"
	Missing       Code = "the database in DATABASE_URL does not exist"
	ReadOnly      Code = "the database cannot be written to"
	Denied        Code = "the database user lacks a required privilege"
	Slow          Code = "the database took too long to respond"
	NoTLS         Code = "the database does not offer TLS, which DATABASE_URL requires"
	WrongURL      Code = "DATABASE_URL is not a valid URL"
	WrongEncoding Code = "the database does not store text as UTF-8: create it with ENCODING 'UTF8'"
	CommitLost    Code = "the connection to the database was lost during the commit"
	Replaced      Code = "the database file was moved or replaced: restart the server"
	Unreadable    Code = "the database file cannot be opened or read"
	Broken        Code = "the database file is damaged, or is not a palmares database"
	Failed        Code = "the database failed unexpectedly"
)

// IsBusy reports whether an import or a migration locks the database.
func IsBusy(err error) bool {
	var databaseErr *Error
	return errors.As(err, &databaseErr) && databaseErr.Code == Busy || codeOf(err) == Busy
}

// explain turns a driver's error into an *Error, and returns other errors unchanged.
func explain(err error) error {
	var databaseErr *Error
	if err == nil || errors.As(err, &databaseErr) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if code := codeOf(err); code != "" {
		return newError(code, err)
	}
	return err
}

// codeOf returns the code of a driver's error, or "" for any other error.
func codeOf(err error) Code {
	var fromPostgres *pq.Error
	if errors.As(err, &fromPostgres) {
		class := pqerror.Code(fromPostgres.Code.Class())
		return cmp.Or(postgresCodes[fromPostgres.Code], postgresCodes[class], Failed)
	}
	var fromSQLite *sqlite.Error
	if errors.As(err, &fromSQLite) {
		return cmp.Or(sqliteCodes[fromSQLite.Code()&0xff], Failed)
	}
	var fromNetwork *net.OpError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return Full
	case errors.Is(err, pq.ErrSSLNotSupported):
		return NoTLS
	case errors.As(err, &fromNetwork), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		return Lost
	}
	return ""
}

// postgresCodes maps each SQLSTATE, or its class (the first two characters), to
// a code.
var postgresCodes = map[pqerror.Code]Code{
	"55P03": Busy,
	"53100": Full,
	"3D000": Missing,
	"25006": ReadOnly,
	"42501": Denied,
	"57014": Slow,
	"22P05": WrongEncoding,
	"22021": WrongEncoding,
	"08":    Lost,
	"57":    Lost,
	"53":    Lost,
	"28":    Refused,
}

// sqliteCodes maps primary result codes to ours.
var sqliteCodes = map[int]Code{
	sqlite3.SQLITE_BUSY:     Busy,
	sqlite3.SQLITE_LOCKED:   Busy,
	sqlite3.SQLITE_FULL:     Full,
	sqlite3.SQLITE_CANTOPEN: Unreadable,
	sqlite3.SQLITE_IOERR:    Unreadable,
	sqlite3.SQLITE_READONLY: ReadOnly,
	sqlite3.SQLITE_PERM:     ReadOnly,
	sqlite3.SQLITE_CORRUPT:  Broken,
	sqlite3.SQLITE_NOTADB:   Broken,
}
