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

// InputError means that reading the feed failed, for example because of a disk error.
// Like OutputError, it does not unwrap, so that its cause is not mistaken for a
// database error.
type InputError struct{ Cause error }

func (e *InputError) Error() string { return "the feed cannot be read" }

// OutputError means that writing the feed failed.
type OutputError struct{ Cause error }

func (e *OutputError) Error() string { return "the feed cannot be written" }

// Refusal means that a valid feed was not imported because it is probably a mistake.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// maxFaults is how many faults an import reports.
const maxFaults = 100

// Fault is a problem with a feed.
type Fault struct {
	Line int
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Text) }

// Faults lists the problems with a feed.
type Faults struct {
	List []Fault
	More bool // there are more that are not listed
}

func (f *Faults) Error() string {
	var text strings.Builder
	for i, fault := range f.List {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(fault.String())
	}
	if f.More {
		fmt.Fprintf(&text, "\nonly the first %d faults are shown", len(f.List))
	}
	return text.String()
}

func (f *Faults) add(line int, format string, args ...any) {
	if len(f.List) == maxFaults {
		f.More = true
		return
	}
	f.List = append(f.List, Fault{Line: line, Text: fmt.Sprintf(format, args...)})
}

// err returns the faults in the order of their lines, or nil if there are none.
func (f *Faults) err() error {
	if len(f.List) == 0 {
		return nil
	}
	slices.SortStableFunc(f.List, func(a, b Fault) int { return a.Line - b.Line })
	return f
}

// label names a record in a fault, such as tool "plume".
func label(recordType, slug string) string {
	if slug == "" {
		return recordType
	}
	return recordType + " " + record.Quote(slug)
}
