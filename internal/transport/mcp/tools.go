package mcp

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// rows are the tools that run one of the server's operations, which has the same
// name. The operation's description is that of the tool, its variables are the
// arguments, and its selection is the result.
var rows = []row{
	{name: "search", title: "Search", currentOnly: true, handle: (*Server).search, shape: searchShape},
	{name: "fetch", title: "Fetch a search result", currentOnly: true, handle: (*Server).fetch, shape: fetchShape, page: "/comparisons/{id}", slugs: map[string][]string{"id": {"comparison"}}},
	{name: "search_tools", title: "Search tools", page: "/tools", sizeArgument: "limit", explain: explainEmpty},
	{name: "get_tool", title: "Get a tool", withKey: "get_tool_with_review", page: "/tools/{slug}", slugs: map[string][]string{"slug": {"tool", "retired"}}},
	{name: "compare_tools", title: "Compare tools", page: "/tools/{a} /tools/{b}", slugs: map[string][]string{"a": {"a", "retired_a"}, "b": {"b", "retired_b"}, "c": {"c", "retired_c"}}, arrange: arrangeComparison},
	{name: "list_categories", title: "List categories", page: "/categories"},
	{name: "price_changes", title: "Price changes", page: "/tools /feeds/prices.atom", sizeArgument: "limit", explain: explainNoChanges},
	{name: "whats_new", title: "What is new", page: "/changes", sizeArgument: "limit", arrange: arrangeNews, explain: explainNoChanges},
	{name: "retired_tools", title: "Retired tools", page: "/graveyard", sizeArgument: "limit", explain: explainNoRetired},
	{name: "catalog_stats", title: "Catalog statistics", page: "/"},
}

// row is one tool.
type row struct {
	name, title  string
	withKey      string              // the operation for callers who may read reviews
	page         string              // paths of the pages about the result, with arguments in braces
	sizeArgument string              // the argument that makes a result smaller
	slugs        map[string][]string // arguments that are slugs of tools, and the fields that are null if no tool has the slug
	// explain returns what to try if no item matches the arguments; nil for tools whose
	// result is never empty.
	explain func(r *release.Release, given map[string]any) string
	arrange func(json.RawMessage) (json.RawMessage, error) // changes the result; nil if nothing does
	// handle replaces Server.call, and shape is the JSON Schema of its result. Both are
	// nil for tools whose result is that of the operation.
	handle      func(*Server, context.Context, *tool, json.RawMessage) (*result, error)
	shape       map[string]any
	currentOnly bool // it has no argument as_of
}

//go:embed queries/*.graphql
var queries embed.FS

// tool is a row joined with its operation.
type tool struct {
	row
	operation     *graph.Operation
	keyed         *graph.Operation // for callers who may read reviews
	arguments     []argument       // in order, the last is as_of
	input, output map[string]any   // JSON Schemas
}

// argument is a variable of an operation.
type argument struct {
	params.Param
	schema map[string]any
}

var asOfArgument = argument{
	Param:  graph.AsOfParam,
	schema: map[string]any{"type": "string", "description": "Release number or YYYY-MM-DD."},
}

// buildTools joins the table with the operations. A mistake in either is an
// error at start-up.
func buildTools(rows []row, operations map[string]*graph.Operation) (tools []*tool, err error) {
	for _, r := range rows {
		t := &tool{row: r, operation: operations[r.name], keyed: operations[r.name]}
		if r.withKey != "" {
			t.keyed = operations[r.withKey]
		}
		if t.operation == nil || t.keyed == nil {
			return nil, fmt.Errorf("tool %s: an operation is missing in queries/", r.name)
		}
		definition := t.operation.Definition()
		if definition.Description == "" {
			return nil, fmt.Errorf("tool %s: its operation has no description", r.name)
		}
		properties, required := map[string]any{}, []string{}
		for _, variable := range definition.VariableDefinitions {
			a, err := newArgument(variable, definition.SelectionSet)
			if err != nil {
				return nil, fmt.Errorf("tool %s: %w", r.name, err)
			}
			if a.Required {
				required = append(required, a.Name)
			}
			t.arguments = append(t.arguments, a)
		}
		if !r.currentOnly {
			t.arguments = append(t.arguments, asOfArgument)
		}
		for _, a := range t.arguments {
			properties[a.Name] = a.schema
		}
		if r.sizeArgument != "" && properties[r.sizeArgument] == nil {
			return nil, fmt.Errorf("tool %s: there is no argument %s to reduce", r.name, r.sizeArgument)
		}
		t.input = map[string]any{"type": "object", "properties": properties}
		if len(required) > 0 {
			t.input["required"] = required
		}
		t.output = r.shape
		if t.output == nil {
			t.output = outputSchema(t.keyed.Definition().SelectionSet)
			maps.DeleteFunc(t.output["properties"].(map[string]any), func(name string, _ any) bool { return strings.HasPrefix(name, retiredPrefix) })
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// description returns the description of the tool on one line.
func (t *tool) description() string {
	return strings.Join(strings.Fields(t.operation.Definition().Description), " ")
}

// newArgument derives an argument from a variable and from the argument or input
// field of the GraphQL schema that the variable is used for.
func newArgument(variable *ast.VariableDefinition, set ast.SelectionSet) (argument, error) {
	a := argument{Param: params.FromVariable(variable)}
	documented := usage(variable.Variable, set)
	description := variable.Description
	if description == "" {
		description = documented
	}
	if description == "" {
		return a, fmt.Errorf("the variable $%s has no description", variable.Variable)
	}
	a.List = variable.Type.NamedType == ""
	value := map[string]any{"type": "string"}
	switch {
	case a.Values != nil:
		value["enum"] = a.Values
	case a.Kind == "Int" || a.Kind == "Float":
		value["type"] = map[string]string{"Int": "integer", "Float": "number"}[a.Kind]
		a.Min, a.Max = bounds(documented)
		if a.Min > math.MinInt32 {
			value["minimum"], value["maximum"] = a.Min, a.Max
		}
	case a.Kind == "Date":
		value["format"] = "date"
	case a.Kind != "String":
		return a, fmt.Errorf("the variable $%s has the type %s, which arguments cannot have", a.Name, a.Kind)
	}
	if a.schema = value; a.List {
		a.schema = map[string]any{"type": "array", "items": value}
	}
	if a.Default != nil && a.Default != "" && !a.List { // a list would need too much of every conversation
		a.schema["default"] = a.Default
	}
	if variable.Description != "" || a.Min == math.MinInt32 && a.Values == nil {
		a.schema["description"] = description // otherwise, the bounds or values are enough
	}
	return a, nil
}

var boundsPattern = regexp.MustCompile(`from (-?[0-9,]+) to ([0-9,]+)`)

// bounds reads the range from a description, because GraphQL schemas cannot express
// it otherwise.
func bounds(description string) (least, most int) {
	number := func(s string) int { n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", "")); return n }
	if found := boundsPattern.FindStringSubmatch(description); found != nil {
		return number(found[1]), number(found[2])
	}
	return math.MinInt32, math.MaxInt32
}

// usage returns the description of the argument or input field that a variable is
// used for.
func usage(variable string, set ast.SelectionSet) (description string) {
	for _, selection := range set {
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		for _, given := range field.Arguments {
			if defined := field.Definition.Arguments.ForName(given.Name); given.Value.Kind == ast.Variable && given.Value.Raw == variable {
				return defined.Description
			}
			for _, member := range given.Value.Children {
				if member.Value.Kind == ast.Variable && member.Value.Raw == variable {
					return given.Value.Definition.Fields.ForName(member.Name).Description
				}
			}
		}
		if description = usage(variable, field.SelectionSet); description != "" {
			return description
		}
	}
	return ""
}

// outputSchema derives the JSON Schema of a result. It has no descriptions, and
// describes neither objects within items nor the same object twice: the list of tools
// is in the context of every conversation.
func outputSchema(set ast.SelectionSet) map[string]any {
	whole := objectSchema("Query", set, 3)
	if body, ok := whole["properties"].(map[string]any)["body"]; ok {
		return body.(map[string]any)
	}
	return objectSchema("Query", set, 2)
}

// objectSchema describes an object down to a number of levels.
func objectSchema(typeName string, set ast.SelectionSet, levels int) map[string]any {
	if levels == 0 {
		return map[string]any{"type": "object"}
	}
	properties, described := map[string]any{}, []any{}
	for _, f := range document.Fields(set, graph.Schema().Types[typeName]) {
		field := fieldSchema(f.Definition.Type, f.SelectionSet, levels-1)
		if inner := field["properties"]; inner != nil {
			if slices.ContainsFunc(described, func(other any) bool { return reflect.DeepEqual(inner, other) }) {
				delete(field, "properties")
			}
			described = append(described, inner)
		}
		properties[f.Alias] = field
	}
	return map[string]any{"type": "object", "properties": properties}
}

func fieldSchema(t *ast.Type, set ast.SelectionSet, levels int) map[string]any {
	schema := map[string]any{"type": "string"}
	switch {
	case t.Elem != nil && levels == 0:
		schema = map[string]any{"type": "array"}
	case t.Elem != nil:
		schema = map[string]any{"type": "array", "items": fieldSchema(t.Elem, set, levels)}
	case len(set) > 0:
		schema = objectSchema(t.NamedType, set, levels)
	case t.NamedType == "JSON":
		return map[string]any{} // anything
	case t.NamedType == "Int", t.NamedType == "Float", t.NamedType == "Boolean":
		schema["type"] = map[string]string{"Int": "integer", "Float": "number", "Boolean": "boolean"}[t.NamedType]
	}
	if !t.NonNull {
		schema["type"] = []any{schema["type"], "null"}
	}
	return schema
}

// read converts the arguments of a call to the operation's variables.
func (t *tool) read(arguments json.RawMessage) (variables map[string]any, asOf graph.AsOf, err error) {
	given, err := object(arguments)
	if err != nil {
		return nil, asOf, err
	}
	variables = map[string]any{}
	for _, a := range t.arguments {
		raw, isGiven := given[a.Name]
		delete(given, a.Name)
		switch {
		case isGiven && string(raw) != "null":
			if variables[a.Name], err = a.parse(raw); err != nil {
				return nil, asOf, err
			}
		case a.Required:
			return nil, asOf, problem.New(problem.BadInput, "%s is required.", a.Name)
		}
	}
	for name := range given {
		return nil, asOf, t.unknownArgument(name)
	}
	asOf, err = graph.ReadAsOf(variables)
	delete(variables, graph.AsOfName)
	return variables, asOf, err
}

// object reads the arguments of a call, which may be absent.
func object(arguments json.RawMessage) (given map[string]json.RawMessage, err error) {
	if len(arguments) > 0 && json.Unmarshal(arguments, &given) != nil {
		return nil, problem.New(problem.BadInput, "arguments must be a JSON object.")
	}
	return given, nil
}

func (t *tool) unknownArgument(name string) error {
	var names []string
	for _, a := range t.arguments {
		names = append(names, a.Name)
	}
	return problem.New(problem.BadInput, "%s has no argument %q.%s Its arguments are: %s.",
		t.name, params.Truncate(name), didYouMean(text.Similar(name, names, 1)), strings.Join(names, ", "))
}

// parse returns the value of an argument. Numbers may be strings, and one value
// may stand for a list, because models send both.
func (a argument) parse(raw json.RawMessage) (any, error) {
	if !a.List {
		return a.parseOne(raw)
	}
	items := []json.RawMessage{raw}
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, problem.New(problem.BadInput, "%s must be a list.", a.Name)
		}
	}
	values := []any{}
	for _, item := range items {
		value, err := a.parseOne(item)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values, nil
}

func (a argument) parseOne(raw json.RawMessage) (any, error) {
	literal := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &literal); err != nil || !params.IsText(literal) {
			return nil, problem.New(problem.BadInput, "%s contains a NUL character or invalid UTF-8.", a.Name)
		}
	} else if raw[0] == '{' || raw[0] == '[' {
		return nil, problem.New(problem.BadInput, "%s must be a %s (got %q).", a.Name, a.valueType(), params.Truncate(literal))
	}
	value, err := a.Parse(literal)
	if n, ok := value.(float64); ok && err == nil && (n < float64(a.Min) || n > float64(a.Max)) {
		return nil, problem.New(problem.BadInput, "%s must be a number from %d to %d (got %s).", a.Name, a.Min, a.Max, params.Format(n))
	}
	return value, err
}

func (a argument) valueType() string {
	if a.Kind == "Int" || a.Kind == "Float" {
		return "number"
	}
	return "string"
}
