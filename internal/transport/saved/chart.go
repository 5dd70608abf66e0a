package saved

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// Chart is how the page of a query draws its result. X, Y and Series are columns, named as
// in the CSV; only lines and bars have them. Without a kind, the page decides.
type Chart struct {
	Kind   string `json:"kind,omitempty"`
	X      string `json:"x,omitempty"`
	Y      string `json:"y,omitempty"`
	Series string `json:"series,omitempty"`
}

// The kinds of charts.
const Line, Bar, Tiles, Table = "line", "bar", "tiles", "table"

// hasAxes reports whether a chart shows certain columns.
func (c Chart) hasAxes() bool { return c.Kind == Line || c.Kind == Bar }

// Column is a column of a query's table.
type Column struct {
	Name string
	typ  string // in GraphQL
}

// IsNumber reports whether the column has numbers.
func (c Column) IsNumber() bool { return c.typ == "Int" || c.typ == "Float" }

// last returns the part of the name after the last dot.
func (c Column) last() string { return c.Name[strings.LastIndexByte(c.Name, '.')+1:] }

// columns returns the columns of the table for some variables; none without a table.
func (q *query) columns(variables map[string]any) (all []Column) {
	if q.table == nil {
		return nil
	}
	pivot := q.table.Pivot
	for i, name := range q.table.Columns {
		if pivot == nil || i != pivot.Name && i != pivot.Value {
			all = append(all, Column{name, q.types[i]})
		}
	}
	if pivot != nil {
		for _, metric := range q.metrics(variables) {
			all = append(all, Column{metric, "Float"})
		}
	}
	return all
}

func namesOf(columns []Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// isLost reports whether a table with some columns lacks one that the chart shows.
func (c Chart) isLost(columns []Column) bool {
	return c.hasAxes() && slices.ContainsFunc([]string{c.X, c.Y, c.Series}, func(name string) bool {
		return name != "" && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name })
	})
}

// check returns an error if a table with some columns cannot be drawn like this.
func (c Chart) check(columns []Column) error {
	isNumber := func(c Column) bool { return c.IsNumber() }
	numbers := slices.DeleteFunc(slices.Clone(columns), func(c Column) bool { return !isNumber(c) })
	switch {
	case !slices.Contains([]string{"", Line, Bar, Tiles, Table}, c.Kind):
		return problem.New(problem.BadInput, "The chart must be line, bar, tiles or table (got %q).", c.Kind)
	case !c.hasAxes():
		return nil
	case len(columns) == 0:
		return problem.New(problem.BadInput, "A result that is not a table cannot be drawn as lines or bars. Choose another chart, or select only one list.")
	case c.X == "" || c.Y == "":
		return problem.New(problem.BadInput, "Choose a column for each axis of the chart.")
	}
	for _, name := range []string{c.X, c.Y, c.Series} {
		if name != "" && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
			return problem.New(problem.BadInput, "The result has no column %q for the chart. It has these: %s.", name, namesOf(columns))
		}
	}
	switch {
	case !slices.ContainsFunc(numbers, func(n Column) bool { return n.Name == c.Y }) && len(numbers) > 0:
		return problem.New(problem.BadInput, "The vertical axis needs a column with numbers (got %q). These have numbers: %s.", c.Y, namesOf(numbers))
	case len(numbers) == 0:
		return problem.New(problem.BadInput, "The result has no numbers to draw. Choose a table.")
	case c.X == c.Y || c.Series == c.X || c.Series == c.Y:
		return problem.New(problem.BadInput, "The axes and the series of the chart must be different columns.")
	}
	return nil
}

// suggestChart returns the chart that suits the columns of a query: numbers over time as
// lines, numbers of named things as bars, and the numbers of a single row as tiles. If it
// is not clear which, the page decides when it knows the result.
func (q *query) suggestChart() Chart {
	var number, time, name string
	for _, c := range q.columns(q.samples()) {
		switch last := c.last(); {
		case c.IsNumber():
			if number != "" && q.table.Pivot != nil {
				return Chart{} // several metrics
			}
			number = c.Name // queries usually select the value they are about last
		case slices.Contains([]string{"start", "period", "month", "date"}, last):
			if time == "" || last == "start" { // a date has a place on an axis
				time = c.Name
			}
		case slices.Contains([]string{"name", "title", "label", "key"}, last) && name == "":
			name = c.Name
		}
	}
	switch {
	case q.table == nil:
		return Chart{}
	case number == "":
		return Chart{Kind: Table}
	case time != "":
		return Chart{Kind: Line, X: time, Y: number, Series: name}
	case !q.returnsList() && !q.table.IsNested():
		return Chart{Kind: Tiles}
	case name != "":
		return Chart{Kind: Bar, X: name, Y: number}
	}
	return Chart{}
}

// returnsList reports whether the body is a list.
func (q *query) returnsList() bool {
	return slices.ContainsFunc(q.body, func(f *ast.Field) bool { return f.Definition.Type.Elem != nil })
}
