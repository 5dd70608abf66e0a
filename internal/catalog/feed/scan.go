package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// formatVersion is the one format of feeds there is.
const formatVersion = 1

// scanner reads a feed from its first line to its last.
type scanner struct {
	// types to read; lines of other types are passed over unread.
	types []string
	// visit gets each record, also one with faults, which is then not sound.
	visit  func(line int, rec record, sound bool) error
	faults *Faults

	header Header
	size   int // of the line that is being visited
	// unreadable tells that some line did not even give its slug, so that
	// nothing can be said of what is missing.
	unreadable bool
}

var everyType = []string{typeCategory, typeTool, typeComparison, typeRetired}

// scan reads until the end, the last fault that is shown, or an error.
func (s *scanner) scan(ctx context.Context, r io.Reader) error {
	lines, err := newLineReader(r)
	if err != nil {
		return s.readError(1, err)
	}
	for !s.faults.full() {
		if lines.number%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := lines.next()
		switch {
		case err == io.EOF:
			if lines.number == 1 {
				s.faults.add(1, "the feed is empty")
			}
			return nil
		case err == errLineTooLong:
			s.unreadable = true
			s.faults.add(lines.number, "is longer than 1 MiB")
		case err != nil:
			return s.readError(lines.number, err)
		case lines.number > 1:
			if err := s.line(lines.number, line); err != nil {
				return err
			}
		}
		if lines.number == 1 && (err != nil || !s.first(line)) {
			return nil // whatever this is, it is no feed: its other lines would only repeat that
		}
	}
	return nil
}

func (s *scanner) readError(line int, err error) error {
	if isDamaged(err) {
		s.unreadable = true
		s.faults.add(line, "the compressed feed is damaged or cut short")
		return nil
	}
	return &InputError{err}
}

// first reads the line that makes it a feed.
func (s *scanner) first(line []byte) bool {
	before := len(s.faults.List)
	dec, recordType, problem := open(line)
	switch {
	case problem != "":
		s.faults.add(1, "%s", problem)
	case recordType != typeFeed:
		s.faults.add(1, `the first line must be the feed's own, {"type":"feed",…}, not a %s`, quote(recordType))
	default:
		s.read(1, typeFeed, dec, &s.header)
	}
	return len(s.faults.List) == before
}

func (s *scanner) line(number int, line []byte) error {
	dec, recordType, problem := open(line)
	switch {
	case problem != "":
		s.unreadable = true
		s.faults.add(number, "%s", problem)
	case recordType == typeFeed:
		s.faults.add(number, "feed: only the first line may be one")
	case !slices.Contains(everyType, recordType):
		s.unreadable = true
		s.faults.add(number, "type: %s is none of %s", quote(recordType), strings.Join(everyType, ", "))
	case slices.Contains(s.types, recordType):
		s.size = len(line)
		rec := newRecord(recordType)
		sound := s.read(number, recordType, dec, rec)
		if rec.recordSlug() == "" {
			s.unreadable = true
			return nil
		}
		return s.visit(number, rec, sound)
	}
	return nil
}

// newRecord is a record with the format's defaults.
func newRecord(recordType string) record {
	switch recordType {
	case typeCategory:
		return &Category{}
	case typeTool:
		return &Tool{Tier: defaultTier}
	case typeComparison:
		return &Comparison{Published: true}
	default:
		return &Retired{}
	}
}

// open enters a line's object and reads its type, which comes first.
func open(line []byte) (dec *jsontext.Decoder, recordType, problem string) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return nil, "", "the line is blank"
	case bytes.HasPrefix(line, []byte("\uFEFF")):
		return nil, "", "starts with a byte order mark: save it as UTF-8 without one"
	case !utf8.Valid(line):
		return nil, "", "is not valid UTF-8"
	}
	dec = newDecoder(line)
	if dec.PeekKind() != '{' {
		return nil, "", "is not a JSON object"
	}
	_, _ = dec.ReadToken()
	if dec.PeekKind() == '"' {
		if name, err := dec.ReadToken(); err == nil && name.String() == "type" && dec.PeekKind() == '"' {
			if value, err := dec.ReadToken(); err == nil {
				return dec, value.String(), ""
			}
		}
	}
	if _, err := newDecoder(line).ReadValue(); err != nil {
		return nil, "", notJSON(err)
	}
	return nil, "", `must begin with its type, as in {"type":"tool",…}`
}

// read reads the fields of one record, and what they must be together.
func (s *scanner) read(number int, recordType string, dec *jsontext.Decoder, into any) (sound bool) {
	type fault struct{ path, problem string }
	var found []fault
	report := func(path, problem string) { found = append(found, fault{path, problem}) }

	var err error
	var slug string
	switch rec := into.(type) {
	case *Header:
		err = headerFields.read(dec, rec, report)
	case *Category:
		err = categoryFields.read(dec, rec, report)
		slug = rec.Slug
	case *Tool:
		err = toolFields.read(dec, rec, report)
		slug = rec.Slug
		checkSections(rec.Sections, report)
	case *Comparison:
		err = comparisonFields.read(dec, rec, report)
		slug = rec.Slug
		checkWinner(rec, report)
	case *Retired:
		err = retiredFields.read(dec, rec, report)
		slug = rec.Slug
	}
	if err == nil {
		if _, end := dec.ReadToken(); end != io.EOF {
			err = errTrailing
		}
	}
	if err != nil {
		s.unreadable = true
		s.faults.add(number, "%s: %s", label(recordType, slug), notJSON(err))
		return false
	}
	for _, f := range found {
		s.faults.add(number, "%s: %s: %s", label(recordType, slug), f.path, f.problem)
	}
	return len(found) == 0
}

func checkSections(sections []Section, report reporter) {
	seen := make(map[string]bool, len(sections))
	for i, section := range sections {
		if section.Section != "" && seen[section.Section] {
			report(fmt.Sprintf("sections[%d].section", i), quote(section.Section)+" is given twice")
		}
		seen[section.Section] = true
	}
}

func checkWinner(c *Comparison, report reporter) {
	if c.Winner != "" && c.ToolA != "" && c.ToolB != "" && c.Winner != c.ToolA && c.Winner != c.ToolB {
		report("winner", quote(c.Winner)+" is neither of the two tools")
	}
}

var errTrailing = errors.New("text after the object")

// notJSON says where a line stops being JSON, in our own words.
func notJSON(err error) string {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTrailing):
		return "there is more after the object's end"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "ends within its object: is the feed cut short?"
	case errors.As(err, &syntax):
		return fmt.Sprintf("is not valid JSON at byte %d", syntax.ByteOffset+1)
	}
	return "is not valid JSON"
}
