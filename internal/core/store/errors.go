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
	Message       string
	Cause         error
	CommitUnknown bool // the transaction may or may not have been committed

	newer bool // the database is newer than this program
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// LogValue implements slog.LogValuer.
func (e *Error) LogValue() slog.Value {
	if e.Cause == nil {
		return slog.StringValue(e.Message)
	}
	return slog.StringValue(e.Message + ": " + e.Cause.Error())
}

const (
	messageBusy          = "another import or migration is still running: try again when it has finished"
	messageFull          = "the database's disk is full"
	messageLost          = "the database cannot be reached"
	messageRefused       = "the database rejected the user name or password"
	messageMissing       = "the database in DATABASE_URL does not exist"
	messageReadOnly      = "the database cannot be written to"
	messageDenied        = "the database user lacks a required privilege"
	messageSlow          = "the database took too long to respond"
	messageNoTLS         = "the database does not offer TLS, which DATABASE_URL requires"
	messageWrongURL      = "DATABASE_URL is not a valid URL"
	messageEncoding      = "the database does not store text as UTF-8: create it with ENCODING 'UTF8'"
	messageCommitUnknown = "the connection to the database was lost during the commit"
	messageReplaced      = "the database file was moved or replaced: restart the server"
	messageFile          = "the database file cannot be opened or read"
	messageBroken        = "the database file is damaged, or is not a palmares database"
	messageOther         = "the database failed unexpectedly"
)

// IsBusy reports whether an import or a migration locks the database.
func IsBusy(err error) bool {
	var databaseErr *Error
	return errors.As(err, &databaseErr) && databaseErr.Message == messageBusy || messageFor(err) == messageBusy
}

// explain turns a driver's error into an *Error, and returns other errors unchanged.
func explain(err error) error {
	var databaseErr *Error
	if err == nil || errors.As(err, &databaseErr) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if message := messageFor(err); message != "" {
		return &Error{Message: message, Cause: err}
	}
	return err
}

// messageFor returns the message for a driver's error, or "" for any other error.
func messageFor(err error) string {
	var fromPostgres *pq.Error
	if errors.As(err, &fromPostgres) {
		class := pqerror.Code(fromPostgres.Code.Class())
		return cmp.Or(postgresMessages[fromPostgres.Code], postgresMessages[class], messageOther)
	}
	var fromSQLite *sqlite.Error
	if errors.As(err, &fromSQLite) {
		return cmp.Or(sqliteMessages[fromSQLite.Code()&0xff], messageOther)
	}
	var fromNetwork *net.OpError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return messageFull
	case errors.Is(err, pq.ErrSSLNotSupported):
		return messageNoTLS
	case errors.As(err, &fromNetwork), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		return messageLost
	}
	return ""
}

// postgresMessages maps each SQLSTATE, or its class (the first two characters), to
// a message.
var postgresMessages = map[pqerror.Code]string{
	"55P03": messageBusy,
	"53100": messageFull,
	"3D000": messageMissing,
	"25006": messageReadOnly,
	"42501": messageDenied,
	"57014": messageSlow,
	"22P05": messageEncoding,
	"22021": messageEncoding,
	"08":    messageLost,
	"57":    messageLost,
	"53":    messageLost,
	"28":    messageRefused,
}

// sqliteMessages maps primary result codes to messages.
var sqliteMessages = map[int]string{
	sqlite3.SQLITE_BUSY:     messageBusy,
	sqlite3.SQLITE_LOCKED:   messageBusy,
	sqlite3.SQLITE_FULL:     messageFull,
	sqlite3.SQLITE_CANTOPEN: messageFile,
	sqlite3.SQLITE_IOERR:    messageFile,
	sqlite3.SQLITE_READONLY: messageReadOnly,
	sqlite3.SQLITE_PERM:     messageReadOnly,
	sqlite3.SQLITE_CORRUPT:  messageBroken,
	sqlite3.SQLITE_NOTADB:   messageBroken,
}
