package saved

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/internal/core/problem"
	"palmares/internal/core/table"
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
	Name  string
	field *ast.FieldDefinition
}

// columnTypes are the types of Table Schema for those of GraphQL; others are texts.
var columnTypes = map[string]string{"Int": "integer", "Float": "number", "Boolean": "boolean", "Date": "date", "DateTime": "datetime"}

// IsNumber reports whether the column has numbers.
func (c Column) IsNumber() bool { name := c.field.Type.Name(); return name == "Int" || name == "Float" }

// Field describes the column.
func (c Column) Field() table.Field {
	definition := graph.Schema().Types[c.field.Type.Name()]
	f := table.Field{Name: c.Name, Type: cmp.Or(columnTypes[definition.Name], "string"), Description: c.field.Description}
	if definition.Name == "URL" {
		f.Format = "uri"
	}
	for _, value := range definition.EnumValues {
		f.Constraints.Enum = append(f.Constraints.Enum, value.Name)
	}
	return f
}

// LastName returns the field that a column is: the part of its name after the last dot.
func LastName(column string) string { return column[strings.LastIndexByte(column, '.')+1:] }

// columns returns the columns of the table for some variables; none without a table.
func (q *query) columns(variables map[string]any) (all []Column) {
	if q.table == nil {
		return nil
	}
	pivot := q.table.Pivot
	for i, name := range q.table.Columns {
		if pivot == nil || i != pivot.Name && i != pivot.Value {
			all = append(all, Column{name, q.fields[i]})
		}
	}
	if pivot != nil {
		for _, metric := range q.metrics(variables) {
			field := &ast.FieldDefinition{Type: ast.NamedType("Float", nil)}
			if value := graph.Schema().Types["SeriesMetric"].EnumValues.ForName(metric); value != nil {
				field.Description = value.Description
			}
			all = append(all, Column{metric, field})
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
		return problem.New(problem.BadInput, "The chart must be line, bar, tiles or table (got %q).", c.Kind).For("chart")
	case !c.hasAxes():
		return nil
	case len(columns) == 0:
		return problem.New(problem.BadInput, "A result that is not a table cannot be drawn as lines or bars. Choose another chart, or select only one list.").For("chart")
	case c.X == "" || c.Y == "":
		return problem.New(problem.BadInput, "Choose a column for each axis of the chart.").For(map[bool]string{true: "x", false: "y"}[c.X == ""])
	}
	for i, name := range []string{c.X, c.Y, c.Series} {
		if name != "" && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
			return problem.New(problem.BadInput, "The result has no column %q for the chart. It has these: %s.", name, namesOf(columns)).For([]string{"x", "y", "series"}[i])
		}
	}
	switch {
	case !slices.ContainsFunc(numbers, func(n Column) bool { return n.Name == c.Y }) && len(numbers) > 0:
		return problem.New(problem.BadInput, "The vertical axis needs a column with numbers (got %q). These have numbers: %s.", c.Y, namesOf(numbers)).For("y")
	case len(numbers) == 0:
		return problem.New(problem.BadInput, "The result has no numbers to draw. Choose a table.").For("chart")
	case c.X == c.Y || c.Series == c.X || c.Series == c.Y:
		return problem.New(problem.BadInput, "The axes and the series of the chart must be different columns.").For("x")
	}
	return nil
}

// Plan is a chart of certain columns of a table.
type Plan struct {
	Kind              string // "" if there is nothing to draw
	Number, X, Series int    // columns, or NoColumn: a number by a key or over time, for each of a series
}

// NoColumn is no position of a column.
const NoColumn = -1

// What a chart is planned from. A result with more is a table only.
const (
	maxAxes  = 30  // columns
	maxPlans = 100 // pairs of columns that are tried
)

// planner finds the chart that suits columns.
type planner struct {
	columns  []string
	kindOf   func(column int) int
	isSingle bool // there is only one row
	// identifies reports whether no two rows have the same values in a column and a second
	// one, which may be NoColumn.
	identifies func(a, b int) bool
}

// plan returns a chart of the last column with numbers, since queries usually select the
// value they are about last: by a key that identifies the rows, over time, or by two
// columns. A single row of numbers becomes tiles. It also reports whether it tried
// everything.
func (p planner) plan() (found Plan, complete bool) {
	var values, keys, days []int
	for i := range p.columns {
		switch p.kindOf(i) {
		case Numbers:
			values = append(values, i)
		case Dates:
			days = append(days, i)
		case Texts:
			keys = append(keys, i)
		}
	}
	if len(values) == 0 {
		return Plan{"", NoColumn, NoColumn, NoColumn}, true
	}
	number := values[len(values)-1]
	if p.isSingle && len(values) > 1 {
		return Plan{Tiles, number, NoColumn, NoColumn}, true
	}
	var plans []Plan // the first one whose columns identify the rows is taken
	slices.SortStableFunc(keys, p.byReadability)
	for _, key := range keys {
		plans = append(plans, Plan{Bar, p.numberFor(key, values), key, NoColumn})
	}
	for _, date := range days {
		plans = append(plans, Plan{Line, number, date, NoColumn})
		for _, key := range keys {
			plans = append(plans, Plan{Line, number, date, key})
		}
	}
	for _, seconds := range [][]int{keys, values[:len(values)-1]} {
		for _, first := range keys {
			for _, second := range seconds {
				plans = append(plans, Plan{Bar, number, first, second})
			}
		}
	}
	tried := plans[:min(len(plans), maxPlans)]
	if i := slices.IndexFunc(tried, func(plan Plan) bool { return p.identifies(plan.X, plan.Series) }); i >= 0 {
		return plans[i], true
	}
	return Plan{"", number, NoColumn, NoColumn}, len(tried) == len(plans)
}

// numberFor returns the last number of the key's object, or of one around or inside it. The
// score of another tool says nothing about the one that the key names.
func (p planner) numberFor(key int, values []int) int {
	parent := func(column int) string { return p.columns[column][:strings.LastIndexByte(p.columns[column], '.')+1] }
	for _, number := range slices.Backward(values) {
		if a, b := parent(key), parent(number); strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
			return number
		}
	}
	return values[len(values)-1]
}

// byReadability orders names before other keys, and slugs and ids after them.
func (p planner) byReadability(a, b int) int {
	rank := map[string]int{"name": -1, "title": -1, "slug": 1, "id": 1}
	return rank[LastName(p.columns[a])] - rank[LastName(p.columns[b])]
}

// Plan returns what a chart shows: what was chosen and, for the rest, what suits the rows.
// It marks a result that is too large for a chart.
func (t *Grid) Plan(chosen Chart) Plan {
	nothing := Plan{"", NoColumn, NoColumn, NoColumn}
	if chosen.Kind == Table {
		return nothing
	}
	if t.Undrawn = len(t.Columns) > maxAxes; t.Undrawn {
		return nothing
	}
	found, complete := planner{t.Columns, t.KindOf, len(t.Rows) == 1, t.identifies}.plan()
	t.Undrawn = !complete
	position := func(name string) int { return slices.Index(t.Columns, name) }
	for column, name := range map[*int]string{&found.X: chosen.X, &found.Number: chosen.Y, &found.Series: chosen.Series} {
		if at := position(name); at != NoColumn {
			*column = at
		}
	}
	if chosen.X != "" && position(chosen.Y) != NoColumn && chosen.Series == "" {
		found.Series = NoColumn
	}
	found.Kind = cmp.Or(chosen.Kind, found.Kind)
	return found
}

// identifies reports whether the values of two columns, of which the second may be
// NoColumn, differ in all rows.
func (t *Grid) identifies(a, b int) bool {
	seen := make(map[[2]string]bool, len(t.Rows))
	for _, r := range t.Rows {
		key := [2]string{r[a].Text}
		if b != NoColumn {
			key[1] = r[b].Text
		}
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// suggestChart returns the chart that suits a query whose result is not known: names and
// times identify its rows. If it is not clear which, the page decides when it knows the
// result.
func (q *query) suggestChart() Chart {
	var names []string
	var kinds []int
	times, keys, numbers := false, false, 0
	for _, c := range q.columns(q.samples()) {
		kind := Empty
		switch last := LastName(c.Name); {
		case c.IsNumber():
			kind, numbers = Numbers, numbers+1
		case slices.Contains([]string{"start", "period", "month", "date"}, last):
			kind, times = Dates, true
		case slices.Contains([]string{"name", "title", "label", "key"}, last):
			kind, keys = Texts, true
		}
		names, kinds = append(names, c.Name), append(kinds, kind)
	}
	isList := slices.ContainsFunc(q.body, func(f *ast.Field) bool { return f.Definition.Type.Elem != nil })
	switch {
	case q.table == nil || numbers > 1 && q.table.Pivot != nil: // several metrics
		return Chart{}
	case numbers == 0:
		return Chart{Kind: Table}
	case !isList && !q.table.IsNested() && !times:
		return Chart{Kind: Tiles}
	}
	found, _ := planner{names, func(i int) int { return kinds[i] }, false, func(a, b int) bool {
		return times == (kinds[a] == Dates) && keys == (kinds[a] == Texts || b != NoColumn && kinds[b] == Texts)
	}}.plan()
	if found.Kind == "" {
		return Chart{}
	}
	suggested := Chart{Kind: found.Kind, X: names[found.X], Y: names[found.Number]}
	if found.Series != NoColumn {
		suggested.Series = names[found.Series]
	}
	return suggested
}
