package feed

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxFaults is how many an import names.
	maxFaults = 100
	// maxQuoted is how many characters of a wrong value a fault repeats.
	maxQuoted = 64
)

// Fault is one thing wrong with a feed, at a line.
type Fault struct {
	Line int
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Text) }

// Faults is why a feed was not imported.
type Faults struct {
	List []Fault
	More bool // there were others after the last
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

// full tells that reading on would name nothing more.
func (f *Faults) full() bool { return f.More }

func (f *Faults) add(line int, format string, args ...any) {
	if len(f.List) == maxFaults {
		f.More = true
		return
	}
	f.List = append(f.List, Fault{Line: line, Text: fmt.Sprintf(format, args...)})
}

// err is nil when nothing is wrong; faults come in the order of their lines.
func (f *Faults) err() error {
	if len(f.List) == 0 {
		return nil
	}
	slices.SortStableFunc(f.List, func(a, b Fault) int { return a.Line - b.Line })
	return f
}

// label names a record in a fault, as in `tool "plume"`.
func label(recordType, slug string) string {
	if slug == "" {
		return recordType
	}
	return recordType + " " + quote(slug)
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// keyText repeats a key of the feed's own making.
func keyText(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return quote(name)
}

// quote repeats what was given, cut to a readable length.
func quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuoted {
		s = string([]rune(s)[:maxQuoted]) + "…"
	}
	return `"` + strings.Map(printable, s) + `"`
}

// printable keeps a feed from steering the terminal that shows its faults.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
		return '\uFFFD'
	}
	return r
}
