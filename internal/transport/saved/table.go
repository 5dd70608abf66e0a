package saved

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/table"
)

// listColumn is the column with the name of the list that a row comes from, if there
// are several.
const listColumn = "list"

var listField = &ast.FieldDefinition{Description: "The list that the row comes from.", Type: ast.NonNullNamedType("String", nil)}

// findTable determines how a body with a selection becomes rows.
func (q *query) findTable(set ast.SelectionSet, typeName string) {
	q.rows = &table.Shape{}
	if len(set) == 0 { // a scalar or a list of them
		q.rows.Columns, q.fields = []string{q.body[0].Alias}, []*ast.FieldDefinition{q.body[0].Definition}
		q.rows.Root = &table.Level{Columns: map[string]int{"": 0}}
		q.table = q.rows
		return
	}
	q.rows.Root = q.addLevel(set, typeName, "", q.body, false)
	if q.table = q.rows; q.rows.Root == nil {
		q.table, q.rows, q.fields = nil, &table.Shape{}, nil
		q.rows.Root = q.addLevel(set, typeName, "", q.body, true)
	}
}

// selectedList is a list of objects in a selection. Its path has dots between nested
// objects.
type selectedList struct {
	path  string
	field *ast.Field
}

// addLevel adds the columns of objects and of the lists within. It returns nil if there
// are independent lists. Columns that others have the name of get a prefix. The fields
// are those that return the objects. Unless lists are to have columns with JSON, they
// become rows.
func (q *query) addLevel(set ast.SelectionSet, typeName, prefix string, from []*ast.Field, asJSON bool) *table.Level {
	level := &table.Level{Columns: map[string]int{}, First: len(q.rows.Columns)}
	add := func(name string, field *ast.FieldDefinition) int {
		for prefix != "" && slices.Contains(q.rows.Columns, name) {
			name = prefix + "." + name
		}
		q.rows.Columns, q.fields = append(q.rows.Columns, name), append(q.fields, field)
		return len(q.rows.Columns) - 1
	}
	var lists []selectedList
	var collect func(set ast.SelectionSet, typeName, path string)
	collect = func(set ast.SelectionSet, typeName, path string) {
		for _, f := range document.Fields(set, graph.Schema().Types[typeName]) {
			switch t := f.Definition.Type; {
			case len(f.SelectionSet) == 0 || asJSON && t.Elem != nil:
				level.Columns[path+f.Alias] = add(path+f.Alias, f.Definition)
			case t.Elem != nil:
				lists = append(lists, selectedList{path + f.Alias, f.Field})
			default:
				collect(f.SelectionSet, t.NamedType, path+f.Alias+".")
			}
		}
	}
	collect(set, typeName, "")
	if len(lists) == 0 {
		return level
	}
	first := lists[0]
	prefix = first.path
	var fields []*ast.Field
	for _, list := range lists {
		if describeList(list.field) != describeList(first.field) {
			q.independent = [2]string{first.path, list.path}
			return nil
		}
		level.Lists, fields = append(level.Lists, list.path), append(fields, list.field)
	}
	if len(lists) > 1 {
		prefix = listColumn
		level.ListColumn = add(listColumn, listField)
	}
	level.Inner = q.addLevel(first.field.SelectionSet, first.field.Definition.Type.Name(), prefix, fields, false)
	if level.Inner == nil {
		return nil
	}
	if typeName == "Series" && first.field.Name == "points" {
		q.addPivot(set, level, first.field, from)
	}
	return level
}

// describeList returns the type of a list and what it selects, to compare lists.
func describeList(f *ast.Field) string {
	var fields []string
	typeName := f.Definition.Type.Name()
	for _, inner := range document.Fields(f.SelectionSet, graph.Schema().Types[typeName]) {
		fields = append(fields, inner.Alias+": "+inner.Name+" "+describeList(inner.Field))
	}
	slices.Sort(fields)
	return typeName + " {" + strings.Join(fields, ", ") + "}"
}

// List returns the enum value in the arguments of the root field that rows of a list come
// from, and the name of its argument. Both are "" unless there is exactly one.
func (v *View) List(name string) (argument, code string) {
	alias, _, _ := strings.Cut(name, ".")
	count := 0
	var find func(argument string, value *ast.Value)
	find = func(name string, value *ast.Value) {
		if value.Kind == ast.EnumValue {
			argument, code, count = name, value.Raw, count+1
		}
		for _, child := range value.Children {
			find(cmp.Or(child.Name, name), child.Value)
		}
	}
	for _, f := range document.Fields(v.query.operation.Definition().SelectionSet, graph.Schema().Types["Query"]) {
		for _, a := range f.Arguments {
			if f.Alias == alias {
				find(a.Name, a.Value)
			}
		}
	}
	if count != 1 {
		return "", ""
	}
	return argument, code
}

// addPivot makes a column of each metric, if series select both the metric and the
// value, and no other column has the name of a metric.
func (q *query) addPivot(set ast.SelectionSet, level *table.Level, points *ast.Field, from []*ast.Field) {
	column := func(level *table.Level, set ast.SelectionSet, typeName, field string) int {
		for _, f := range document.Fields(set, graph.Schema().Types[typeName]) {
			if f.Name == field && !f.Optional {
				return level.Columns[f.Alias]
			}
		}
		return -1
	}
	metric := column(level, set, "Series", "metric")
	value := column(level.Inner, points.SelectionSet, "SeriesPoint", "value")
	isMetric := func(name string) bool {
		return graph.Schema().Types["SeriesMetric"].EnumValues.ForName(name) != nil
	}
	if metric >= 0 && value >= 0 && !slices.ContainsFunc(q.rows.Columns, isMetric) {
		q.rows.Pivot, q.series = &table.Pivot{Name: metric, Value: value}, from
	}
}

// metrics returns the metrics that the series of a request have.
func (q *query) metrics(variables map[string]any) (names []string) {
	add := func(value any) {
		if name, ok := value.(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, f := range q.series {
		value, _ := f.Arguments.ForName("metrics").Value.Value(variables) // checked with the document
		if list, ok := value.([]any); ok {
			for _, item := range list {
				add(item)
			}
		} else {
			add(value) // GraphQL accepts a single value as a list
		}
	}
	return names
}
