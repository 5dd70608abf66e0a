// Package feed reads and checks feeds, and writes them. The rules are those of package
// record; a snapshot retains a few bytes for each record (snapshot.go).
package feed

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/record"
)

// Source is a catalog that can be read several times: the lines of a feed, or the files of
// a folder.
type Source interface {
	// Read calls each with the header and with the selected records, from the first, until
	// it returns an error. valid is false if the header or the record has errors.
	Read(ctx context.Context, selected Selection, progress func(done, total int64), each func(*Item) (valid bool, err error)) error
	// Locate returns the place of the value at a path of an item. Only a selection of all
	// types needs to be remembered.
	Locate(number int, path string) Position
	// Comments returns the comments beside the fields of an item.
	Comments(number int) []Comment
}

// Comment is a comment in a file.
type Comment struct {
	Line int
	Text string // without #
}

// Selection is what is read of a source. A source may skip other records, and need not.
type Selection struct {
	Types []string
	Slugs map[string]string // by slug; nil for all
	// LocateValid is set to locate values of valid records, too, after all were read.
	LocateValid bool
}

// Item is a record before its fields are read, or a problem in its place.
type Item struct {
	Number  int // from 1, which is the header
	Type    string
	Fields  *jsontext.Decoder // of the object, after its type
	Size    int               // in bytes
	Problem *LineError        // why there is no record; nil if there is one
}

// Lines is a feed in a file.
type Lines struct{ feed io.ReadSeeker }

// NewLines returns a feed in a file, which may be compressed.
func NewLines(feed io.ReadSeeker) Lines { return Lines{feed} }

// Locate returns a line.
func (l Lines) Locate(number int, _ string) Position { return Position{Line: number} }

// Comments returns nothing: lines have no comments.
func (l Lines) Comments(int) []Comment { return nil }

// Read reads all lines.
func (l Lines) Read(ctx context.Context, _ Selection, progress func(done, total int64), each func(*Item) (bool, error)) error {
	total, err := l.feed.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = l.feed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errUnreadable
	}
	var feed io.Reader = l.feed
	if progress != nil {
		feed = io.TeeReader(l.feed, &meter{0, total, progress})
	}
	lines, err := newLineReader(feed)
	if err != nil {
		return readError(1, err, each)
	}
	for {
		if lines.number%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := lines.next()
		item := &Item{Number: lines.number, Size: len(line)}
		problem := ""
		switch {
		case err == io.EOF && lines.number > 1:
			return nil
		case err == io.EOF:
			problem = "the feed is empty"
		case err == errLineTooLong:
			problem = err.Error()
		case err != nil:
			return readError(lines.number, err, each)
		default:
			item.Fields, item.Type, problem = readType(line)
		}
		if problem != "" {
			item.Problem = &LineError{At: l.Locate(item.Number, ""), Problem: problem}
		}
		if valid, err := each(item); err != nil || item.Number == 1 && !valid {
			return err // without a header, it is not a feed: errors in other lines would not help
		}
	}
}

// readError distinguishes a damaged archive, which is an error in the feed, from
// a disk that cannot be read.
func readError(line int, err error, each func(*Item) (bool, error)) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		_, err := each(&Item{Number: line, Problem: &LineError{At: Position{Line: line}, Problem: "the compressed feed is damaged or truncated"}})
		return err
	}
	return errUnreadable
}

// meter reports how many bytes of the feed have been read.
type meter struct {
	done, total int64
	report      func(done, total int64)
}

func (m *meter) Write(p []byte) (int, error) {
	m.done += int64(len(p))
	m.report(m.done, m.total)
	return len(p), nil
}

// MaxLine is the maximum length of a line of a feed, without its line break.
const MaxLine = 1 << 20

var errLineTooLong = errors.New("the line is longer than 1 MiB")

// lineReader splits a feed into lines, holding one of them at a time.
type lineReader struct {
	buf    *bufio.Reader
	number int
}

// newLineReader detects gzip by the first bytes, because standard input has no file
// name.
func newLineReader(r io.Reader) (*lineReader, error) {
	raw := bufio.NewReader(r)
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var plain io.Reader = raw
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if plain, err = gzip.NewReader(raw); err != nil {
			return nil, err
		}
	}
	return &lineReader{buf: bufio.NewReaderSize(plain, MaxLine+2)}, nil
}

// next returns the next line, which is valid until the following call. It skips a
// line that is too long and returns errLineTooLong. At the end it returns io.EOF.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.buf.ReadSlice('\n')
	l.number++
	tooLong := err == bufio.ErrBufferFull
	for err == bufio.ErrBufferFull {
		_, err = l.buf.ReadSlice('\n')
	}
	if err != nil && (err != io.EOF || len(line) == 0) { // the last line may lack its break
		return nil, err
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if tooLong || len(line) > MaxLine {
		return nil, errLineTooLong
	}
	return line, nil
}

// scanner reads a source from its first item to its last and collects its errors.
type scanner struct {
	selected Selection
	// visit receives each selected record that has a slug, and whether it is valid.
	visit func(number int, rec record.Record, valid bool) error
	errs  *ValidationError

	header record.Header
	size   int // of the record being visited
	// incomplete means that some record could not be identified, so that a
	// reference to an unknown record may be valid.
	incomplete bool
}

var errTooMany = errors.New("the maximum number of errors was found")

// scan reads until the end, until the maximum number of errors in the feed, or
// until reading fails.
func (s *scanner) scan(ctx context.Context, source Source, progress func(done, total int64)) error {
	err := source.Read(ctx, s.selected, progress, func(item *Item) (valid bool, err error) {
		if valid, err = s.read(item); err == nil && s.errs.More {
			err = errTooMany
		}
		return valid, err
	})
	if err == errTooMany {
		return nil
	}
	return err
}

func (s *scanner) read(item *Item) (valid bool, err error) {
	switch {
	case item.Problem != nil:
		s.incomplete = true
		s.errs.addError(*item.Problem)
	case item.Number == 1 && item.Type != record.TypeFeed:
		s.errs.add(1, "", "", `the first line must be the header, {"type":"feed",…} (got type `+record.Quote(item.Type)+")")
	case item.Number == 1:
		return s.readFields(item, &s.header, func() string { return record.TypeFeed }), nil
	case item.Type == record.TypeFeed:
		s.errs.add(item.Number, record.TypeFeed, "", "only the first line may have this type")
	case !slices.Contains(record.Types, item.Type):
		s.incomplete = true
		s.errs.add(item.Number, "", "type", fmt.Sprintf("must be one of %s (got %s)", strings.Join(record.Types, ", "), record.Quote(item.Type)))
	case slices.Contains(s.selected.Types, item.Type):
		s.size = item.Size
		rec := record.New(item.Type)
		valid = s.readFields(item, rec, func() string { return label(item.Type, rec.RecordSlug()) })
		if rec.RecordSlug() == "" {
			s.incomplete = true
			return valid, nil
		}
		return valid, s.visit(item.Number, rec, valid)
	}
	return false, nil
}

// readType starts reading a line's object and returns its type, which comes first.
func readType(line []byte) (dec *jsontext.Decoder, recordType, problem string) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return nil, "", "the line is blank; remove it"
	case bytes.HasPrefix(line, []byte("\uFEFF")):
		return nil, "", "the line starts with a byte order mark; save the feed as UTF-8 without one"
	case !utf8.Valid(line):
		return nil, "", "the line is not valid UTF-8"
	}
	dec = record.NewDecoder(line)
	if dec.PeekKind() != '{' {
		return nil, "", "the line is not a JSON object"
	}
	_, _ = dec.ReadToken()
	if dec.PeekKind() == '"' {
		if name, err := dec.ReadToken(); err == nil && name.String() == "type" && dec.PeekKind() == '"' {
			if value, err := dec.ReadToken(); err == nil {
				return dec, value.String(), ""
			}
		}
	}
	if _, err := record.NewDecoder(line).ReadValue(); err != nil {
		return nil, "", invalidJSON(err)
	}
	return nil, "", `the line must begin with its type, such as {"type":"tool",…}`
}

// readFields collects problems before it reports them, because name needs the
// slug, which may come late in the line.
func (s *scanner) readFields(item *Item, into any, name func() string) (valid bool) {
	var found [][2]string // path and problem
	err := record.Read(item.Fields, into, func(path, problem string) { found = append(found, [2]string{path, problem}) })
	if err != nil {
		s.incomplete = true
		found = [][2]string{{"", invalidJSON(err)}}
	}
	for _, f := range found {
		s.errs.add(item.Number, name(), f[0], f[1])
	}
	return len(found) == 0
}

// invalidJSON describes where a line is not valid JSON.
func invalidJSON(err error) string {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, record.ErrTrailing):
		return "the line continues after the object; put each record on its own line"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the line ends before its object does; is the feed truncated?"
	case errors.As(err, &syntax):
		return fmt.Sprintf("the line is not valid JSON at byte %d", syntax.ByteOffset+1)
	}
	return "the line is not valid JSON"
}
