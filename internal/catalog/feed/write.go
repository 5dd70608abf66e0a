package feed

import (
	"bufio"
	"io"

	"palmares/internal/catalog/record"
)

// Writer writes a feed line by line. Flush returns the first error.
type Writer struct{ buf *bufio.Writer }

// NewWriter writes the first line of a feed.
func NewWriter(w io.Writer, updatedAt string) *Writer {
	out := &Writer{bufio.NewWriterSize(w, 64<<10)}
	out.Line(encodeLine(record.TypeFeed, record.Header{Format: record.FormatVersion, UpdatedAt: updatedAt}))
	return out
}

// Write adds a record.
func (w *Writer) Write(rec record.Record) { w.Line(Line(rec)) }

// Line adds a record that is already encoded.
func (w *Writer) Line(line []byte) {
	_, _ = w.buf.Write(line)
	_ = w.buf.WriteByte('\n')
}

// Flush writes the buffered data and returns the first error.
func (w *Writer) Flush() error {
	if err := w.buf.Flush(); err != nil {
		return &OutputError{err}
	}
	return nil
}

// Line encodes a record with its type first, omitting fields at their default. No
// encoding is shorter, so a record that was read from one line fits into one.
func Line(rec record.Record) []byte { return encodeLine(rec.RecordType(), rec) }

func encodeLine(recordType string, rec any) []byte {
	return append([]byte(`{"type":"`+recordType+`",`), record.Encode(rec)[1:]...)
}
