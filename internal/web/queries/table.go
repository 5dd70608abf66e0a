package queries

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	rows "palmares/internal/core/table"
)

// table shows a result as rows. An item with one list has a row for each element
// of it, and so does an item that consists of lists; other lists are shown as JSON.
type table struct {
	Columns  []string
	Headings []string        // words for Columns
	Rows     [][]cell        // as long as Columns
	Total    int             // rows in the result; more than Rows if there are many
	omitted  map[string]bool // columns of the result for which there is no room
	IsMore   bool            // the result has more rows than Total
	Undrawn  bool            // it is too large for a chart
}

// Omitted returns how many columns of the result the table does not have.
func (t *table) Omitted() int { return len(t.omitted) }

// Numeric reports whether a column has numbers.
func (t *table) Numeric(column int) bool { return t.kindOf(column) == numbers }

// numbers returns the numbers of a column.
func (t *table) numbers(column int) (all []float64) {
	for _, r := range t.Rows {
		if r[column].IsNumber {
			all = append(all, r[column].Number)
		}
	}
	return all
}

const (
	empty = iota
	numbers
	dates
	texts
)

var period = regexp.MustCompile(`^[0-9]{4}(-([0-9]{2}(-[0-9]{2}(T.*)?)?|Q[1-4]|W[0-9]{2}))?$`)

// kindOf returns what all cells of a column have in common.
func (t *table) kindOf(column int) int {
	kind := empty
	for _, r := range t.Rows {
		c, found := r[column], texts
		switch {
		case c.Text == "":
			continue
		case c.IsNumber:
			found = numbers
		case period.MatchString(c.Text):
			found = dates
		}
		if kind == empty {
			kind = found
		} else if kind != found {
			return texts
		}
	}
	return kind
}

// cell is a value of a row.
type cell struct {
	Text     string // what readers see; empty for null
	Number   float64
	IsNumber bool
}

// number returns the number of a cell, or nil.
func (c cell) number() *float64 {
	if !c.IsNumber {
		return nil
	}
	return &c.Number
}

// IsPeriod reports whether a cell is a day, a month or another period.
func (c cell) IsPeriod() bool { return !c.IsNumber && period.MatchString(c.Text) }

// What a page shows of a result, so that it costs the server the same whatever a query
// returns. The data has all of it.
const (
	maxRows    = 500
	maxColumns = 100
	maxCells   = 10_000
	maxCell    = 1_000 // bytes of a text

	maxCounted = 10_000 // rows
)

// cutText returns the start of a text that is too long for a cell.
func cutText(text string) string {
	if len(text) <= maxCell {
		return text
	}
	end := maxCell
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// newTable returns the table of a response body.
func newTable(ctx context.Context, body []byte) (*table, error) {
	t := &table{omitted: map[string]bool{}}
	_, err := rows.EachItem(jsontext.NewDecoder(bytes.NewReader(body)), func(item jsontext.Value) error {
		if t.IsMore = t.Total >= maxCounted; t.IsMore {
			return errEnough
		}
		return cmp.Or(ctx.Err(), t.unnest(item))
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return t, err
}

// errEnough ends the reading of a result.
var errEnough = errors.New("all rows that are counted have been read")

// isFull reports whether there is no room for another row.
func (t *table) isFull() bool {
	return len(t.Rows) == maxRows || (len(t.Rows)+1)*len(t.Columns) > maxCells
}

// add adds a row, and a column for each name that is new.
func (t *table) add(r row) {
	if t.Total++; t.isFull() {
		return
	}
	cells := make([]cell, len(t.Columns), len(t.Columns)+len(r.names))
	for i, name := range r.names {
		at := slices.Index(t.Columns, name)
		switch {
		case at < 0 && (len(t.Columns) == maxColumns || (len(t.Rows)+1)*(len(t.Columns)+1) > maxCells):
			t.omitted[name] = true
			continue
		case at < 0:
			at = len(t.Columns)
			t.Columns = append(t.Columns, name)
			for j := range t.Rows {
				t.Rows[j] = append(t.Rows[j], cell{})
			}
			cells = append(cells, cell{})
		}
		cells[at] = r.cells[i]
	}
	t.Rows = append(t.Rows, cells)
}

// row has the values of an item, in their order, with dots between the names of
// nested objects.
type row struct {
	names []string
	cells []cell
	lists []list
}

type list struct {
	name  string
	value jsontext.Value
}

func (r *row) set(name string, c cell) {
	r.names, r.cells = append(r.names, name), append(r.cells, c)
}

// unnest adds the rows of an item.
func (t *table) unnest(item jsontext.Value) error {
	var whole row
	if err := whole.flatten("", item); err != nil {
		return err
	}
	several := len(whole.lists) > 1 && len(whole.names) == 0 // such as two aliases of one field
	if len(whole.lists) != 1 && !several {
		whole.showLists()
		t.add(whole)
		return nil
	}
	before := t.Total
	for _, l := range whole.lists {
		var elements []jsontext.Value
		if err := json.Unmarshal(l.value, &elements); err != nil {
			return err
		}
		for i, element := range elements {
			if t.isFull() {
				t.Total += len(elements) - i
				break
			}
			r := row{names: slices.Clone(whole.names), cells: slices.Clone(whole.cells)}
			name := l.name
			if several {
				r.set("list", cell{Text: l.name})
				name = ""
			}
			if err := r.flatten(name, element); err != nil {
				return err
			}
			r.showLists()
			t.add(r)
		}
	}
	if t.Total == before && !several {
		whole.showLists()
		t.add(whole)
	}
	return nil
}

// showLists turns lists into cells with JSON.
func (r *row) showLists() {
	for _, l := range r.lists {
		r.set(l.name, cell{Text: cutText(string(l.value))})
	}
	r.lists = nil
}

// flatten adds the values of an object, or a single value.
func (r *row) flatten(name string, value jsontext.Value) error {
	switch value.Kind() {
	case '[':
		r.lists = append(r.lists, list{name, value})
		return nil
	case '{':
	default:
		if name == "" {
			name = "value"
		}
		r.set(name, cellOf(value))
		return nil
	}
	in := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for in.PeekKind() != '}' {
		key, err := in.ReadToken()
		if err != nil {
			return err
		}
		path := key.String()
		if name != "" {
			path = name + "." + path
		}
		member, err := in.ReadValue()
		if err != nil {
			return err
		}
		if err := r.flatten(path, slices.Clone(member)); err != nil {
			return err
		}
	}
	return nil
}

func cellOf(value jsontext.Value) (c cell) {
	defer func() { c.Text = cutText(c.Text) }()
	switch value.Kind() {
	case 'n':
	case '0':
		c.Text = string(value)
		number, err := strconv.ParseFloat(c.Text, 64)
		c.Number, c.IsNumber = number, err == nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if c.Text = string(text); err != nil {
			c.Text = string(value)
		}
	default:
		c.Text = string(value)
	}
	return c
}
