package saved

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/table"
	"palmares/rest"
)

const (
	// MaxDocument is the maximum size of a document, in bytes.
	MaxDocument = 100_000
	// maxValue is the maximum length of a parameter, in characters. Cursors are the
	// longest values.
	maxValue = 2_000
	// hashLength is the number of hexadecimal digits of a hash: too many to guess.
	hashLength = 32
)

// The parameters of every saved query.
const (
	formatName, dialectName = "format", "dialect"

	formatJSON = "json"
)

var common = []params.Param{
	graph.AsOfParam,
	{Name: formatName, Kind: "String", Values: []string{formatJSON, table.CSV, table.NDJSON}},
	{Name: dialectName, Kind: "String", Values: table.Dialects},
}

// hashOf returns the hash of a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// query is a validated text and what is derived from it.
type query struct {
	operation  *graph.Operation
	parameters []params.Param
	// body are the fields from the root of the result down to the response body:
	// none, a single root field, or also the items of its page or connection. With
	// edges, the last one is node.
	body []*ast.Field
	// table is how the body becomes rows; nil if it cannot, because independent are two
	// lists that have nothing to do with each other.
	table       *table.Shape
	rows        *table.Shape           // the table, or one in which lists are columns with JSON
	fields      []*ast.FieldDefinition // of the columns
	independent [2]string
	series      []*ast.Field // whose metrics are columns of the table
	list        *list        // nil if the body is not a part of a list
}

// newQuery validates a text and derives the rest from it.
func newQuery(e *graph.Executor, text string) (*query, error) {
	if len(text) > MaxDocument {
		return nil, problem.New(problem.BadInput, "The document is larger than %d bytes.", MaxDocument)
	}
	operation, err := e.NewQuery(text)
	if err != nil {
		return nil, err
	}
	q := &query{operation: operation}
	for _, v := range operation.Definition().VariableDefinitions {
		p, err := parameterOf(v)
		if err != nil {
			return nil, err
		}
		q.parameters = append(q.parameters, p)
	}
	q.findBody()
	return q, q.findList(e, text)
}

// parameterOf returns the query parameter of a variable.
func parameterOf(v *ast.VariableDefinition) (params.Param, error) {
	p := params.FromVariable(v)
	t := v.Type
	if p.Repeats = t.Elem != nil; p.Repeats {
		t = t.Elem
	}
	if slices.ContainsFunc(common, func(c params.Param) bool { return c.Name == v.Variable }) || v.Variable == auth.TokenParameter {
		return p, problem.New(problem.BadInput, "$%s is reserved: every saved query has a parameter with this name. Rename the variable.", v.Variable)
	}
	if t.Elem != nil || v.Definition.Kind == ast.InputObject || t.NamedType == "JSON" {
		return p, problem.New(problem.BadInput, "$%s has the type %s, which a query parameter cannot express; use scalars, enums and lists of them.", v.Variable, v.Type)
	}
	if p.Kind != "Int" {
		p.Min, p.Max = 0, maxValue
	}
	p.Relative = p.Kind == "Date"
	return p, nil
}

// findBody determines the response body and its columns.
func (q *query) findBody() {
	set, typeName := q.operation.Definition().SelectionSet, "Query"
	for {
		fields := document.Fields(set, graph.Schema().Types[typeName])
		if len(fields) != 1 {
			break
		}
		f := fields[0].Field
		switch depth := len(q.body); {
		case depth == 1 && !(isPage(typeName) && (f.Name == "items" || f.Name == "nodes" || f.Name == "edges")),
			depth == 2 && !(q.body[1].Name == "edges" && f.Name == "node"), depth == 3:
			f = nil
		}
		if f == nil {
			break
		}
		q.body = append(q.body, f)
		set, typeName = f.SelectionSet, f.Definition.Type.Name()
		if len(set) == 0 || len(q.body) == 1 && f.Definition.Type.Elem != nil {
			break
		}
	}
	if len(q.body) == 2 && q.body[1].Name == "edges" { // with more than its nodes
		q.body = q.body[:1]
		set, typeName = q.body[0].SelectionSet, q.body[0].Definition.Type.Name()
	}
	q.findTable(set, typeName)
}

func isPage(typeName string) bool {
	return strings.HasSuffix(typeName, "Page") || strings.HasSuffix(typeName, "Connection")
}

// checkTable returns an error if the result does not fit a table.
func (q *query) checkTable() error {
	if q.table != nil {
		return nil
	}
	return problem.New(problem.BadInput,
		"This query has no table form, because %s and %s are independent lists. Use JSON, or select only one of them.", q.independent[0], q.independent[1])
}

// samples returns values for the variables without a default, to try a query with.
func (q *query) samples() map[string]any {
	values := map[string]any{}
	for _, p := range q.parameters {
		var value any = "a"
		switch {
		case !p.Required:
			continue
		case p.Values != nil:
			value = p.Values[0]
		case p.Kind == "Int":
			value = int64(1)
		case p.Kind == "Float":
			value = 1.0
		case p.Kind == "Boolean":
			value = true
		case p.Kind == "Date":
			value = time.Now().UTC().Format(time.DateOnly)
		}
		if p.Repeats {
			value = []any{value}
		}
		values[p.Name] = value
	}
	return values
}

// read returns the values in a query string: those of variables and those of other
// parameters.
func (q *query) read(rawQuery string) (variables, others map[string]any, err error) {
	values, err := params.Read(rawQuery, slices.Concat(q.parameters, common))
	if err != nil {
		return nil, nil, err
	}
	for _, p := range q.parameters {
		if p.Required && values[p.Name] == nil {
			return nil, nil, problem.New(problem.BadInput, "%s is required.", p.Name).For(p.Name)
		}
	}
	others = map[string]any{}
	for _, p := range common {
		others[p.Name] = values[p.Name]
		delete(values, p.Name)
	}
	return values, others, nil
}

// unknown returns the header for the parameters in a query string that the query does not
// have.
func (q *query) unknown(rawQuery string) []string {
	known := slices.Concat(q.parameters, common)
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	return rest.UnknownParameters(rawQuery, append(known, params.Param{Name: auth.TokenParameter}), names)
}

// bodyOf returns the part of a result that is the response body. It is null if a
// condition excludes the field.
func (q *query) bodyOf(data json.RawMessage) (json.RawMessage, error) {
	for i, f := range q.body {
		if i == 2 { // the nodes of edges
			return unwrapEach(data, f.Alias)
		}
		value, ok := graph.OnlyField(data, f.Alias)
		if !ok {
			return json.RawMessage("null"), nil
		}
		data = value
	}
	return data, nil
}

// unwrapEach replaces each object in a list with its only field.
func unwrapEach(list json.RawMessage, name string) (json.RawMessage, error) {
	out := append(make([]byte, 0, len(list)), '[')
	_, err := table.EachItem(jsontext.NewDecoder(bytes.NewReader(list)), func(item jsontext.Value) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		value, ok := graph.OnlyField(json.RawMessage(item), name)
		if !ok {
			value = json.RawMessage("null")
		}
		out = append(out, value...)
		return nil
	})
	return append(out, ']'), err
}

// write writes a body in a format.
func (q *query) write(body []byte, format, dialect string, variables map[string]any, limit int64) ([]byte, error) {
	if format == formatJSON {
		return body, nil
	}
	var out bytes.Buffer
	write, err := q.newWriter(&out, format, dialect, variables, limit)
	if err == nil {
		err = write(body)
	}
	return out.Bytes(), err
}

// counted counts the bytes that are written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// newWriter returns a function that writes one body after another as rows. NDJSON has the
// items as they are, unless they contain lists that can become rows.
func (q *query) newWriter(to io.Writer, format, dialect string, variables map[string]any, limit int64) (func(body []byte) error, error) {
	if format == table.NDJSON && (q.table == nil || !q.table.IsNested()) {
		write, err := table.NewItemWriter(to, format, dialect, nil, nil)
		return func(body []byte) error {
			_, err := table.EachItem(jsontext.NewDecoder(bytes.NewReader(body)), write)
			return err
		}, err
	}
	columns, metrics := q.table.Columns, []string(nil)
	if q.table.Pivot != nil {
		metrics = q.metrics(variables)
		columns = q.table.PivotColumns(metrics)
	}
	out := &counted{Writer: to}
	write, err := table.NewRowWriter(out, format, dialect, columns)
	if err != nil {
		return nil, err
	}
	writeRow := func(cells []jsontext.Value) error {
		if q.table.IsNested() && out.n > limit { // a long value may be repeated in many rows
			return problem.New(problem.ResponseTooLarge,
				"The table is larger than %d bytes, because the values around an inner list are repeated in each row. Select fewer fields or items.", limit)
		}
		return write(cells)
	}
	return func(body []byte) error {
		out.n = 0
		if q.table.Pivot != nil {
			return q.table.PivotRows(body, metrics, writeRow)
		}
		return q.table.Rows(body, writeRow)
	}, nil
}

// describe returns the query for an OpenAPI document.
func (q *query) describe() rest.Query {
	described := rest.Query{Operation: q.operation, Body: q.body}
	for _, c := range q.columns(q.samples()) {
		described.Columns = append(described.Columns, c.Field())
	}
	for _, p := range q.parameters {
		description := "Sets `$" + p.Name + "`."
		if p.Relative {
			description += " A date, or one relative to the release that is read: `-30d`, `-6m`, `-1y`, `latest`, or `previous` for the date of the release before it."
		}
		described.Parameters = append(described.Parameters, rest.Parameter{Param: p, Description: description})
	}
	for _, p := range common[1:] { // rest adds as_of
		description := "The format, if the URL has no extension."
		if p.Name == dialectName {
			description = "Only with CSV. " + rest.DialectsText
		}
		described.Parameters = append(described.Parameters, rest.Parameter{Param: p, Description: description})
	}
	return described
}
