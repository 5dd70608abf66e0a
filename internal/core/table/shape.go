package table

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Shape is how a JSON value becomes rows. Lists within lists are flattened: each
// element of the innermost list is a row, in which the values around it are repeated.
type Shape struct {
	Columns []string
	Root    *Level
	Pivot   *Pivot // may be nil
}

// Field describes a column, as in the Table Schema of Frictionless Data.
type Field struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"`
	Format      string            `json:"format,omitzero"`
	Title       string            `json:"title,omitzero"`
	Titles      map[string]string `json:"titles,omitempty"` // by language
	Unit        string            `json:"unit,omitzero"`
	Description string            `json:"description,omitzero"`
	Constraints struct {
		Enum []string `json:"enum,omitempty"`
	} `json:"constraints,omitzero"`
}

// Level describes the elements of a list, or a single value that is not in a list.
type Level struct {
	// Columns are the positions of its fields, by names that have dots between nested
	// objects. An element that is no object has the name "".
	Columns map[string]int
	First   int // position of its first column; those of inner levels follow

	// Lists are the names of the lists within, whose elements have the same level. If
	// there are several, ListColumn is the position of the column with their names.
	Lists      []string
	ListColumn int
	Inner      *Level
}

// Pivot turns rows with names and values into columns: rows that differ only in these
// two become one.
type Pivot struct{ Name, Value int } // positions of columns

// IsNested reports whether there are lists within the items.
func (s *Shape) IsNested() bool { return s.Root.Inner != nil }

// Rows calls a function with the cells of each row, which it must not retain. The cell
// of a missing value is nil.
func (s *Shape) Rows(body jsontext.Value, use func([]jsontext.Value) error) error {
	f := &flattener{cells: make([]jsontext.Value, len(s.Columns)), use: use}
	_, err := f.readList(s.Root, body)
	return err
}

// flattener reads the rows of a value.
type flattener struct {
	cells []jsontext.Value
	use   func([]jsontext.Value) error
	name  []byte // of the current field, with dots
}

type namedList struct {
	name  string
	value jsontext.Value
}

// readList reads the elements of a list, or a single value, and returns the number of
// rows.
func (f *flattener) readList(l *Level, value jsontext.Value) (rows int, err error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true)) // there are none
	if in.PeekKind() != '[' {
		return f.readElement(l, value, in)
	}
	if _, err := in.ReadToken(); err != nil {
		return 0, err
	}
	for in.PeekKind() != ']' {
		n, err := f.readElement(l, value, in)
		if err == nil && n == 0 { // no element is lost because its inner list is empty
			n, err = 1, f.use(f.cells)
		}
		if rows += n; err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// readElement reads the next value of a text.
func (f *flattener) readElement(l *Level, text jsontext.Value, in *jsontext.Decoder) (rows int, err error) {
	clear(f.cells[l.First:])
	var lists []namedList
	f.name = f.name[:0]
	if in.PeekKind() == '{' {
		lists, err = f.readObject(l, text, in, nil)
	} else {
		err = f.readCell(l, text, in)
	}
	switch {
	case err != nil:
		return 0, err
	case l.Inner == nil:
		return 1, f.use(f.cells)
	}
	for _, list := range lists {
		if len(l.Lists) > 1 {
			f.cells[l.ListColumn] = jsontext.Value(strconv.Quote(list.name))
		}
		n, err := f.readList(l.Inner, list.value)
		if rows += n; err != nil {
			return rows, err
		}
	}
	clear(f.cells[l.Inner.First:])
	if len(l.Lists) > 1 {
		f.cells[l.ListColumn] = nil
	}
	return rows, nil
}

// readObject reads the cells of an object and returns the lists within. The prefix of
// the names is in f.name.
func (f *flattener) readObject(
	l *Level, text jsontext.Value, in *jsontext.Decoder, lists []namedList,
) ([]namedList, error) {
	if _, err := in.ReadToken(); err != nil {
		return nil, err
	}
	prefix := len(f.name)
	for in.PeekKind() != '}' {
		name, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		f.name = append(f.name[:prefix], name[1:len(name)-1]...) // names have no escapes
		_, isColumn := l.Columns[string(f.name)]
		switch kind := in.PeekKind(); {
		case kind == '{' && !isColumn:
			f.name = append(f.name, '.')
			lists, err = f.readObject(l, text, in, lists)
		case kind == '[' && slices.Contains(l.Lists, string(f.name)):
			list := namedList{name: string(f.name)}
			list.value, err = readValue(text, in)
			lists = append(lists, list)
		default:
			err = f.readCell(l, text, in)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := in.ReadToken()
	return lists, err
}

func (f *flattener) readCell(l *Level, text jsontext.Value, in *jsontext.Decoder) error {
	value, err := readValue(text, in)
	if i, known := l.Columns[string(f.name)]; known && value.Kind() != 'n' {
		f.cells[i] = value
	}
	return err
}

// readValue returns the next value as a part of the text, which remains valid.
func readValue(text jsontext.Value, in *jsontext.Decoder) (jsontext.Value, error) {
	value, err := in.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(in.InputOffset())
	return text[end-len(value) : end], nil
}

// PivotColumns returns the columns after a pivot with some names.
func (s *Shape) PivotColumns(names []string) (columns []string) {
	for i, column := range s.Columns {
		if i != s.Pivot.Name && i != s.Pivot.Value {
			columns = append(columns, column)
		}
	}
	return append(columns, names...)
}

// PivotRows is like Rows, with the columns of PivotColumns. Rows are in the order in
// which they first appear.
func (s *Shape) PivotRows(body jsontext.Value, names []string, use func([]jsontext.Value) error) error {
	var rows [][]jsontext.Value
	positions, repeated := map[string]int{}, map[string]int{}
	var key []byte
	err := s.Rows(body, func(cells []jsontext.Value) error {
		name, err := jsontext.AppendUnquote(nil, cells[s.Pivot.Name])
		if err != nil {
			return err
		}
		var others []jsontext.Value
		key = key[:0]
		for i, cell := range cells {
			if i != s.Pivot.Name && i != s.Pivot.Value {
				others = append(others, cell)
				key = append(append(key, cell...), 0)
			}
		}
		// A second value of the same name is in a row of its own.
		id := string(key) + string(name)
		key = strconv.AppendInt(key, int64(repeated[id]), 10)
		repeated[id]++
		at, known := positions[string(key)]
		if !known {
			at = len(rows)
			positions[string(key)] = at
			rows = append(rows, append(others, make([]jsontext.Value, len(names))...))
		}
		if column := slices.Index(names, string(name)); column >= 0 {
			rows[at][len(others)+column] = cells[s.Pivot.Value]
		}
		return nil
	})
	for _, row := range rows {
		if err == nil {
			err = use(row)
		}
	}
	return err
}
