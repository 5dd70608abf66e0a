package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"palmares/internal/catalog/record"
)

// ErrEmptyCatalog is returned by an export before the first import.
var ErrEmptyCatalog = errors.New("the catalog is empty: nothing has been imported yet")

// errFeedChanged means that the feed was modified between two passes.
var errFeedChanged = errors.New("the feed changed while it was being read")

// errUnreadable means that reading the feed failed, for example because of a disk
// error. Like OutputError, it does not wrap its cause, which would be mistaken for a
// database error.
var errUnreadable = errors.New("the feed cannot be read")

// OutputError means that writing the feed failed.
type OutputError struct{ Cause error }

func (e *OutputError) Error() string { return "the feed cannot be written" }

// ImplausibleError means that a valid feed was not imported because it is probably
// a mistake.
type ImplausibleError struct{ Reason string }

func (e *ImplausibleError) Error() string { return e.Reason }

// maxLineErrors is how many errors of a feed an import reports.
const maxLineErrors = 100

// LineError is an error in a line of a feed.
type LineError struct {
	Line int
	Text string
}

func (e LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// ValidationError means that a feed is not valid, and lists what is wrong with it.
type ValidationError struct {
	List []LineError
	More bool // there are more that are not listed
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

func (e *ValidationError) add(line int, format string, args ...any) {
	if len(e.List) == maxLineErrors {
		e.More = true
		return
	}
	e.List = append(e.List, LineError{Line: line, Text: fmt.Sprintf(format, args...)})
}

// err returns the errors in the order of their lines, or nil if there are none.
func (e *ValidationError) err() error {
	if len(e.List) == 0 {
		return nil
	}
	slices.SortStableFunc(e.List, func(a, b LineError) int { return a.Line - b.Line })
	return e
}

// label names a record in an error, such as tool "plume".
func label(recordType, slug string) string {
	if slug == "" {
		return recordType
	}
	return recordType + " " + record.Quote(slug)
}
