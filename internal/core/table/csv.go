// Package table writes the items of a JSON list as the rows of a CSV file, or as NDJSON.
package table

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The formats.
const CSV, NDJSON = "csv", "ndjson"

// The dialects of CSV for spreadsheets: the one in English has commas and decimal
// points, the one in French has semicolons and decimal commas.
const Excel, ExcelFR = "excel", "excel-fr"

// Dialects are all dialects.
var Dialects = []string{Excel, ExcelFR}

// ContentTypes are the content types of the formats.
var ContentTypes = map[string]string{CSV: "text/csv; charset=utf-8; header=present", NDJSON: "application/x-ndjson"}

// Derived are columns of CSV whose values are computed from the text of another column.
type Derived struct {
	From    string
	Columns []string
	Values  func(text string) []jsontext.Value // one for each column; nil if the text has none
}

// NewItemWriter returns a function that writes one item of a list. A CSV file starts
// with the names of the columns, which it writes at once. Derived may be nil; otherwise
// its columns are among the others.
func NewItemWriter(to io.Writer, format, dialect string, columns []string, derived *Derived) (func(jsontext.Value) error, error) {
	if format == CSV {
		rows := NewWriter(to, columns, dialect)
		return newItemReader(columns, derived, rows.WriteCells).read, rows.WriteHeader()
	}
	return func(item jsontext.Value) error {
		if _, err := to.Write(item); err != nil {
			return err
		}
		_, err := to.Write([]byte{'\n'})
		return err
	}, nil
}

// itemReader reads items as rows: missing fields become empty cells, and a single value is
// the first cell.
type itemReader struct {
	level   *Level
	rows    flattener
	in      jsontext.Decoder
	derived *Derived
	text    []byte
}

func newItemReader(columns []string, derived *Derived, use func([]jsontext.Value) error) *itemReader {
	r := &itemReader{level: &Level{Columns: map[string]int{"": 0}}, derived: derived}
	for i, name := range columns {
		r.level.Columns[name] = i
	}
	r.rows = flattener{cells: make([]jsontext.Value, len(columns)), use: func(cells []jsontext.Value) error {
		r.derive(cells)
		return use(cells)
	}}
	return r
}

func (r *itemReader) read(item jsontext.Value) error {
	r.in.Reset(bytes.NewBuffer(item), jsontext.AllowDuplicateNames(true)) // there are none
	_, err := r.rows.readElement(r.level, item, &r.in)
	return err
}

func (r *itemReader) derive(cells []jsontext.Value) {
	if r.derived == nil {
		return
	}
	from := cells[r.level.Columns[r.derived.From]]
	if from.Kind() != '"' {
		return
	}
	r.text, _ = jsontext.AppendUnquote(r.text[:0], from) // the decoder has checked it
	for i, value := range r.derived.Values(string(r.text)) {
		cells[r.level.Columns[r.derived.Columns[i]]] = value
	}
}

// NewRowWriter is like NewItemWriter, but returns a function that writes the cells of
// one row. A line of NDJSON is an object with a field for each column.
func NewRowWriter(to io.Writer, format, dialect string, columns []string) (func([]jsontext.Value) error, error) {
	if format == CSV {
		rows := NewWriter(to, columns, dialect)
		return rows.WriteCells, rows.WriteHeader()
	}
	var line []byte
	return func(cells []jsontext.Value) error {
		line = line[:0]
		for i, cell := range cells {
			line = append(line, "{,"[min(i, 1)], '"')
			line = append(append(line, columns[i]...), `":`...)
			if cell == nil {
				cell = jsontext.Value("null")
			}
			line = append(line, cell...)
		}
		_, err := to.Write(append(line, "}\n"...))
		return err
	}, nil
}

// EachItem calls a function with each item of the next list, or with the next value if
// it is not a list, and returns their number.
func EachItem(in *jsontext.Decoder, use func(jsontext.Value) error) (n int, err error) {
	isList := in.PeekKind() == '['
	if isList {
		_, err = in.ReadToken()
	}
	for err == nil && in.PeekKind() != ']' && (isList || n == 0) {
		var item jsontext.Value
		if item, err = in.ReadValue(); err == nil {
			n, err = n+1, use(item)
		}
	}
	return n, err
}

// Writer writes the rows of a CSV file (RFC 4180). It does not use
// encoding/csv, which changes line breaks within strings.
type Writer struct {
	to           io.Writer
	columns      []string
	delimiter    byte
	decimalComma bool
	start        string
	text, row    []byte // of the current cell, unquoted, and of the current row
}

// byteOrderMark makes Excel open a file as UTF-8.
const byteOrderMark = "\uFEFF"

// NewWriter returns a writer. Columns are field names, such as category.slug for a
// field of a nested object. The dialect may be "".
func NewWriter(to io.Writer, columns []string, dialect string) *Writer {
	c := &Writer{to: to, columns: columns, delimiter: ','}
	switch dialect {
	case Excel:
		c.start = byteOrderMark
	case ExcelFR:
		c.delimiter, c.decimalComma, c.start = ';', true, byteOrderMark
	}
	return c
}

// WriteHeader writes the column names.
func (c *Writer) WriteHeader() error {
	_, err := io.WriteString(c.to, c.start+strings.Join(c.columns, string(c.delimiter))+"\r\n")
	return err
}

// WriteCells writes a row with a value, or nil, for each column.
func (c *Writer) WriteCells(values []jsontext.Value) error {
	c.row = c.row[:0]
	for i, value := range values {
		if i > 0 {
			c.row = append(c.row, c.delimiter)
		}
		c.row = c.appendCell(c.row, value)
	}
	c.row = append(c.row, "\r\n"...)
	_, err := c.to.Write(c.row)
	return err
}

// appendCell appends a value to a cell.
func (c *Writer) appendCell(cell []byte, value jsontext.Value) []byte {
	switch value.Kind() {
	case 'n', jsontext.KindInvalid: // null, or no value
		return cell
	case '"':
		c.text, _ = jsontext.AppendUnquote(c.text[:0], value) // the decoder has checked it
		return c.appendText(cell, c.text)
	case '0':
		if c.decimalComma {
			value = bytes.Replace(value, []byte("."), []byte(","), 1)
		}
		return append(cell, value...)
	default:
		return c.appendText(cell, value)
	}
}

// appendText appends a string to a cell. A spreadsheet would execute a string that
// looks like a formula, so it is prefixed with an apostrophe. An empty string is
// quoted, because an empty cell means null.
func (c *Writer) appendText(cell, text []byte) []byte {
	if len(text) > 0 && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		text = append([]byte("'"), text...)
	}
	if len(text) > 0 && !bytes.ContainsAny(text, "\"\r\n"+string(c.delimiter)) && len(bytes.TrimSpace(text)) == len(text) {
		return append(cell, text...)
	}
	cell = append(cell, '"')
	cell = append(cell, bytes.ReplaceAll(text, []byte(`"`), []byte(`""`))...)
	return append(cell, '"')
}
