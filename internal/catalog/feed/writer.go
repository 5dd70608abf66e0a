package feed

import (
	"bufio"
	"io"
)

// Writer writes a feed, line by line. Errors wait for Flush.
type Writer struct{ buf *bufio.Writer }

// NewWriter starts a feed with its first line.
func NewWriter(w io.Writer, updatedAt string) *Writer {
	out := &Writer{bufio.NewWriterSize(w, 64<<10)}
	out.Line(encode(struct {
		Type string `json:"type"`
		Header
	}{typeFeed, Header{formatVersion, updatedAt}}))
	return out
}

// Write adds a record: *Category, *Tool, *Comparison or *Retired.
func (w *Writer) Write(rec record) { w.Line(Line(rec)) }

// Line adds a record that is already encoded.
func (w *Writer) Line(line []byte) {
	_, _ = w.buf.Write(line)
	_ = w.buf.WriteByte('\n')
}

// Flush writes what is left and returns the first error there was.
func (w *Writer) Flush() error {
	if err := w.buf.Flush(); err != nil {
		return &OutputError{err}
	}
	return nil
}

// OutputError is a feed that cannot be written where it should go. It hides
// its cause from whoever looks for a database's errors.
type OutputError struct{ Cause error }

func (e *OutputError) Error() string { return "the feed cannot be written" }

// Line encodes a record, its type first and what is at its default left out:
// no way of writing a record is shorter, so what was read from one line fits
// into one again.
func Line(rec record) []byte {
	switch rec := rec.(type) {
	case *Category:
		return encode(typed[*Category]{typeCategory, rec})
	case *Tool:
		return encode(typed[*Tool]{typeTool, rec})
	case *Comparison:
		return encode(typed[*Comparison]{typeComparison, rec})
	default:
		return encode(typed[*Retired]{typeRetired, rec.(*Retired)})
	}
}

type typed[R any] struct {
	Type   string `json:"type"`
	Record R      `json:",inline"`
}
