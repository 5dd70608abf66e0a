package document

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"palmares/internal/core/problem"
)

const (
	// DefaultPageSize is the length of a connection without first or last.
	DefaultPageSize = 50
	// MaxPageSize is the maximum number of items of a page or connection.
	MaxPageSize  = 200
	maxListItems = 200 // values of a list, literal or variable
)

// WholeNumber converts an integer of any decoded type.
func WholeNumber(value any) (int, bool) {
	n, ok := number(value)
	return int(min(max(n, math.MinInt32), math.MaxInt32)), ok && n == math.Trunc(n)
}

// number converts a number of any decoded type.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// Variables converts variables to the types that an operation declares, and also
// returns them with defaults. gqlparser's own conversion accepts "1" for 1 and echoes
// invalid values.
func Variables(
	schema *ast.Schema, op *ast.OperationDefinition, given map[string]any,
) (read, withDefaults map[string]any, p *problem.Problem) {
	if len(op.VariableDefinitions) > 0 {
		read = make(map[string]any, len(given))
	}
	for _, definition := range op.VariableDefinitions {
		name := definition.Variable
		value, exists := given[name]
		switch {
		case exists && hasLongList(value):
			return nil, nil, problem.New(problem.BadInput, "$%s must not contain a list of more than %d values.",
				name, maxListItems)
		case exists:
			converted, ok := convert(schema, definition.Type, value)
			if !ok {
				message := fmt.Sprintf("$%s must be of type %s.", name, definition.Type.String())
				if of := schema.Types[definition.Type.Name()]; of != nil && of.Kind == ast.Enum {
					message += " " + allowedValues(of)
				}
				return nil, nil, problem.New(problem.BadInput, "%s", message)
			}
			read[name] = converted
		case definition.Type.NonNull && definition.DefaultValue == nil:
			return nil, nil, problem.New(problem.BadInput, "$%s is required.", name)
		}
	}
	withDefaults, err := validator.VariableValues(schema, op, read)
	if err != nil {
		return nil, nil, &problem.Problem{
			Code: problem.BadInput, Message: "The variables do not match the operation.", Cause: err,
		}
	}
	return read, withDefaults, nil
}

// hasLongList reports whether a value contains a list that is longer than any
// argument allows.
func hasLongList(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) > maxListItems || slices.ContainsFunc(v, hasLongList)
	case map[string]any:
		for _, member := range v {
			if hasLongList(member) {
				return true
			}
		}
	}
	return false
}

// convert returns a value in its type's canonical form.
func convert(schema *ast.Schema, t *ast.Type, value any) (any, bool) {
	if value == nil {
		return nil, !t.NonNull
	}
	if t.Elem != nil {
		return convertList(schema, t, value)
	}
	definition := schema.Types[t.NamedType]
	switch {
	case definition == nil:
		return nil, false
	case definition.Kind == ast.InputObject:
		return convertObject(schema, definition, value)
	case definition.Kind == ast.Enum:
		name, ok := value.(string)
		return name, ok && definition.EnumValues.ForName(name) != nil
	case t.NamedType == "Int":
		n, ok := number(value)
		return int64(n), ok && n == math.Trunc(n) && n >= math.MinInt32 && n <= math.MaxInt32
	case t.NamedType == "Float":
		return number(value)
	case t.NamedType == "Boolean":
		_, ok := value.(bool)
		return value, ok
	default: // strings and dates
		_, ok := value.(string)
		return value, ok
	}
}

func convertList(schema *ast.Schema, t *ast.Type, value any) (any, bool) {
	items, ok := value.([]any)
	if !ok {
		items = []any{value} // a single value stands for a list of one
	}
	converted := make([]any, len(items))
	for i, item := range items {
		if converted[i], ok = convert(schema, t.Elem, item); !ok {
			return nil, false
		}
	}
	return converted, true
}

func convertObject(schema *ast.Schema, definition *ast.Definition, value any) (any, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	converted := make(map[string]any, len(object))
	for name, member := range object {
		field := definition.Fields.ForName(name)
		if field == nil {
			return nil, false
		}
		if converted[name], ok = convert(schema, field.Type, member); !ok {
			return nil, false
		}
	}
	for _, field := range definition.Fields {
		if _, exists := object[field.Name]; !exists && field.Type.NonNull && field.DefaultValue == nil {
			return nil, false
		}
	}
	return converted, true
}
