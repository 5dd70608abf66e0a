package saved

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Grid shows the start of a result.
type Grid struct {
	Columns []string
	Rows    [][]Cell // as long as Columns
	Total   int      // rows in the result; more than Rows if there are many
	Omitted int      // columns of the result for which there is no room
	IsMore  bool     // the result has more rows than Total
	Undrawn bool     // it is too large for a chart
}

// Numeric reports whether a column has numbers.
func (t *Grid) Numeric(column int) bool { return t.KindOf(column) == Numbers }

// Numbers returns the numbers of a column.
func (t *Grid) Numbers(column int) (all []float64) {
	for _, r := range t.Rows {
		if r[column].IsNumber {
			all = append(all, r[column].Number)
		}
	}
	return all
}

// What the cells of a column have in common.
const (
	Empty = iota
	Numbers
	Dates
	Texts
)

var period = regexp.MustCompile(`^[0-9]{4}(-([0-9]{2}(-[0-9]{2}(T.*)?)?|Q[1-4]|W[0-9]{2}))?$`)

// KindOf returns what all cells of a column have in common.
func (t *Grid) KindOf(column int) int {
	kind := Empty
	for _, r := range t.Rows {
		c, found := r[column], Texts
		switch {
		case c.Text == "":
			continue
		case c.IsNumber:
			found = Numbers
		case period.MatchString(c.Text):
			found = Dates
		}
		if kind == Empty {
			kind = found
		} else if kind != found {
			return Texts
		}
	}
	return kind
}

// Cell is a value of a row.
type Cell struct {
	Text     string // what readers see; empty for null
	Number   float64
	IsNumber bool
	Time     string // a day, a month or another period, if the text says it in words
	Address  string // of the page about it, or ""
}

// Value returns the number of a cell, or nil.
func (c Cell) Value() *float64 {
	if !c.IsNumber {
		return nil
	}
	return &c.Number
}

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

// NewGrid returns the start of some rows, which a function reads.
func NewGrid(ctx context.Context, columns []string, eachRow func(func([]jsontext.Value) error) error) (*Grid, error) {
	t := &Grid{Columns: columns[:min(len(columns), maxColumns)]}
	t.Omitted = len(columns) - len(t.Columns)
	room := min(maxRows, maxCells/max(1, len(t.Columns)))
	err := eachRow(func(values []jsontext.Value) error {
		if t.IsMore = t.Total >= maxCounted; t.IsMore {
			return errEnough
		}
		if t.Total++; t.Total <= room {
			cells := make([]Cell, len(t.Columns))
			for i := range cells {
				cells[i] = cellOf(values[i])
			}
			t.Rows = append(t.Rows, cells)
		}
		return ctx.Err()
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return t, err
}

// errEnough ends the reading of a result.
var errEnough = errors.New("all rows that are counted have been read")

func cellOf(value jsontext.Value) (c Cell) {
	defer func() { c.Text = cutText(c.Text) }()
	switch value.Kind() {
	case 'n', jsontext.KindInvalid:
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
		if c.Text = string(value); c.Text == "[]" { // nothing to read
			c.Text = ""
		}
	}
	return c
}
