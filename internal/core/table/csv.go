// Package table writes JSON objects as the rows of a table.
package table

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes JSON objects as the rows of a CSV file, as RFC 4180 describes.
// It does not use encoding/csv, which changes line breaks within texts.
type Writer struct {
	to           io.Writer
	columns      []string
	places       map[string]int // of the columns
	delimiter    byte
	decimalComma bool
	start        string
	cells        [][]byte // of the current row, ready to write
	row          []byte
}

// byteOrderMark makes Excel read a file as UTF-8.
const byteOrderMark = "\uFEFF"

// NewWriter returns a writer. Columns are the names of fields, with dots between
// those of nested objects. With excelFR, the file is for spreadsheets in French.
func NewWriter(to io.Writer, columns []string, excelFR bool) *Writer {
	c := &Writer{to: to, columns: columns, places: map[string]int{}, delimiter: ',', cells: make([][]byte, len(columns))}
	if excelFR {
		c.delimiter, c.decimalComma, c.start = ';', true, byteOrderMark
	}
	for i, name := range columns {
		c.places[name] = i
	}
	return c
}

// WriteHeader writes the names of the columns.
func (c *Writer) WriteHeader() error {
	_, err := io.WriteString(c.to, c.start+strings.Join(c.columns, string(c.delimiter))+"\r\n")
	return err
}

// WriteRow writes an object. Fields that it does not have are empty.
func (c *Writer) WriteRow(item jsontext.Value) error {
	for i := range c.cells {
		c.cells[i] = c.cells[i][:0]
	}
	if err := c.readObject(jsontext.NewDecoder(bytes.NewReader(item)), ""); err != nil {
		return err
	}
	c.row = append(bytes.Join(c.cells, []byte{c.delimiter}), "\r\n"...)
	_, err := c.to.Write(c.row)
	return err
}

// readObject fills the cells with an object whose fields have a prefix.
func (c *Writer) readObject(in *jsontext.Decoder, prefix string) error {
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return err
		}
		name := prefix + token.String()
		if in.PeekKind() == '{' {
			if err := c.readObject(in, name+"."); err != nil {
				return err
			}
			continue
		}
		value, err := in.ReadValue()
		if err != nil {
			return err
		}
		if i, known := c.places[name]; known {
			c.cells[i] = c.appendCell(c.cells[i], value)
		}
	}
	_, err := in.ReadToken()
	return err
}

// appendCell appends a value as it stands in the table.
func (c *Writer) appendCell(cell []byte, value jsontext.Value) []byte {
	switch value.Kind() {
	case 'n': // null
		return cell
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value) // the decoder has checked it
		return c.appendText(cell, text)
	case '0':
		if c.decimalComma {
			value = bytes.Replace(value, []byte("."), []byte(","), 1)
		}
		return append(cell, value...)
	default:
		return c.appendText(cell, value)
	}
}

// appendText appends a text. A spreadsheet would execute one that starts like a
// formula, so an apostrophe is put before it. An empty text is quoted, because a
// cell without quotes is null.
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
