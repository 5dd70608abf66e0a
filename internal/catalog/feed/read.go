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

// source is a feed that an import reads several times.
type source struct {
	feed     io.ReadSeeker
	origin   Origin // nil if it has none
	progress func(stage string, done, total int64)
}

func newSource(feed io.ReadSeeker, progress func(stage string, done, total int64)) *source {
	origin, _ := feed.(Origin)
	return &source{feed, origin, progress}
}

// open starts reading the feed from its beginning.
func (s *source) open(stage string) (io.Reader, error) {
	total, err := s.feed.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = s.feed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errUnreadable
	}
	if s.progress == nil {
		return s.feed, nil
	}
	return io.TeeReader(s.feed, &meter{stage, 0, total, s.progress}), nil
}

// meter reports how many bytes of the feed have been read.
type meter struct {
	stage       string
	done, total int64
	report      func(stage string, done, total int64)
}

func (m *meter) Write(p []byte) (int, error) {
	m.done += int64(len(p))
	m.report(m.stage, m.done, m.total)
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

// scanner reads a feed from its first line to its last and collects its errors.
type scanner struct {
	// types lists the record types to read; other lines are skipped.
	types []string
	// visit receives each record that has a slug, and whether it is valid.
	visit func(line int, rec record.Record, valid bool) error
	errs  *ValidationError

	header   record.Header
	lineSize int // of the record being visited
	// incomplete means that some record could not be identified, so that a
	// reference to an unknown record may be valid.
	incomplete bool
}

// scan reads until the end, until the maximum number of errors in the feed, or
// until reading fails.
func (s *scanner) scan(ctx context.Context, r io.Reader) error {
	lines, err := newLineReader(r)
	if err != nil {
		return s.readError(1, err)
	}
	for !s.errs.More {
		if lines.number%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := lines.next()
		switch {
		case err == io.EOF:
			if lines.number == 1 {
				s.errs.add(1, "", "", "the feed is empty")
			}
			return nil
		case err == errLineTooLong:
			s.incomplete = true
			s.errs.add(lines.number, "", "", err.Error())
		case err != nil:
			return s.readError(lines.number, err)
		case lines.number > 1:
			if err := s.readRecord(lines.number, line); err != nil {
				return err
			}
		}
		if lines.number == 1 && (err != nil || !s.readHeader(line)) && s.errs.origin == nil {
			return nil // not a feed: errors in other lines would not help
		}
	}
	return nil
}

// readError distinguishes a damaged archive, which is an error in the feed, from
// a disk that cannot be read.
func (s *scanner) readError(line int, err error) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		s.incomplete = true
		s.errs.add(line, "", "", "the compressed feed is damaged or truncated")
		return nil
	}
	return errUnreadable
}

func (s *scanner) readHeader(line []byte) (valid bool) {
	dec, recordType, problem := readType(line)
	switch {
	case problem != "":
		s.errs.add(1, "", "", problem)
	case recordType != record.TypeFeed:
		s.errs.add(1, "", "", `the first line must be the header, {"type":"feed",…} (got type `+record.Quote(recordType)+")")
	default:
		return s.readFields(1, dec, &s.header, func() string { return record.TypeFeed })
	}
	return false
}

func (s *scanner) readRecord(number int, line []byte) error {
	dec, recordType, problem := readType(line)
	switch {
	case problem != "":
		s.incomplete = true
		s.errs.add(number, "", "", problem)
	case recordType == record.TypeFeed:
		s.errs.add(number, record.TypeFeed, "", "only the first line may have this type")
	case !slices.Contains(record.Types, recordType):
		s.incomplete = true
		s.errs.add(number, "", "type", fmt.Sprintf("must be one of %s (got %s)", strings.Join(record.Types, ", "), record.Quote(recordType)))
	case slices.Contains(s.types, recordType):
		s.lineSize = len(line)
		rec := record.New(recordType)
		valid := s.readFields(number, dec, rec, func() string { return label(recordType, rec.RecordSlug()) })
		if rec.RecordSlug() == "" {
			s.incomplete = true
			return nil
		}
		return s.visit(number, rec, valid)
	}
	return nil
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
func (s *scanner) readFields(number int, dec *jsontext.Decoder, into any, name func() string) (valid bool) {
	var found [][2]string // path and problem
	err := record.Read(dec, into, func(path, problem string) { found = append(found, [2]string{path, problem}) })
	if err != nil {
		s.incomplete = true
		found = [][2]string{{"", invalidJSON(err)}}
	}
	for _, f := range found {
		s.errs.add(number, name(), f[0], f[1])
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
