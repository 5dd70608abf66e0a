package feed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"palmares/internal/catalog/record"
	"palmares/internal/core/disk"
)

// errUnreadable means that reading the feed failed, for example because of a disk
// error. Like OutputError, it does not wrap its cause, which would be mistaken for a
// database error.
var errUnreadable = errors.New("the feed cannot be read")

// OutputError means that writing the feed failed.
type OutputError struct{ Cause error }

func (e *OutputError) Error() string { return "the feed cannot be written" }

// maxLineErrors is how many errors of a feed an import reports.
const maxLineErrors = 100

// Position is a place in a feed: a line, or a file with a line and a column in a folder.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	p.File = disk.Printable(p.File)
	switch {
	case p.File == "":
		return fmt.Sprintf("line %d", p.Line)
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// LineError is an error in a feed.
type LineError struct {
	At      Position
	Record  string // such as tool "plume"; empty if it is unknown
	Path    string // of the value in the record; empty for the whole record
	Problem string
}

func (e LineError) Error() string {
	text := e.At.String() + ": "
	if e.Record != "" && e.At.File == "" {
		text += e.Record + ": "
	}
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Problem
}

// ValidationError means that a feed is not valid, and lists what is wrong with it.
type ValidationError struct {
	List []LineError
	More bool // there are more that are not listed

	source Source
}

func (e *ValidationError) Error() string {
	var text strings.Builder
	for i, lineErr := range e.List {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(lineErr.Error())
	}
	if e.More {
		fmt.Fprintf(&text, "\nonly the first %d faults are shown", len(e.List))
	}
	return text.String()
}

// NewError returns the error of a value in a record that is valid on its own.
func NewError(source Source, number int, rec record.Record, path, problem string) *ValidationError {
	errs := &ValidationError{source: source}
	errs.add(number, label(rec.RecordType(), rec.RecordSlug()), path, problem)
	return errs
}

func (e *ValidationError) add(number int, rec, path, problem string) {
	e.addError(LineError{e.source.Locate(number, path), rec, path, problem})
}

func (e *ValidationError) addError(found LineError) {
	if len(e.List) == maxLineErrors {
		e.More = true
		return
	}
	e.List = append(e.List, found)
}

// err returns the errors in the order of their places, or nil if there are none.
func (e *ValidationError) err() error {
	if len(e.List) == 0 {
		return nil
	}
	slices.SortStableFunc(e.List, func(a, b LineError) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), a.At.Line-b.At.Line)
	})
	return e
}

// label names a record in an error, such as tool "plume".
func label(recordType, slug string) string {
	if slug == "" {
		return recordType
	}
	return recordType + " " + record.Quote(slug)
}
