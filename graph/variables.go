package graph

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// readVariables checks values against their types and brings them into one
// form, in our own words: the library is more lenient than the specification
// in places, where it would take "1" for 1, and stricter in others.
func readVariables(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, *problem.Problem) {
	if len(op.VariableDefinitions) == 0 {
		return nil, nil
	}
	read := make(map[string]any, len(given))
	for _, definition := range op.VariableDefinitions {
		value, there := given[definition.Variable]
		switch {
		case there && hasLongList(value):
			return nil, problem.New(problem.BadInput, "$%s: has a list of more than %d values.", definition.Variable, maxListed)
		case there:
			fitting, ok := fit(schema, definition.Type, value)
			if !ok {
				return nil, problem.New(problem.BadInput, "$%s: is not %s.", definition.Variable, definition.Type.String())
			}
			read[definition.Variable] = fitting
		case definition.Type.NonNull && definition.DefaultValue == nil:
			return nil, problem.New(problem.BadInput, "$%s: is missing.", definition.Variable)
		}
	}
	return read, nil
}

// hasLongList reports whether a list in a value is longer than any argument
// allows, before it is converted and cached.
func hasLongList(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) > maxListed || slices.ContainsFunc(v, hasLongList)
	case map[string]any:
		for _, member := range v {
			if hasLongList(member) {
				return true
			}
		}
	}
	return false
}

// fit is a value as its type has it.
func fit(schema *ast.Schema, t *ast.Type, value any) (any, bool) {
	if value == nil {
		return nil, !t.NonNull
	}
	if t.Elem != nil {
		return fitList(schema, t, value)
	}
	definition := schema.Types[t.NamedType]
	switch {
	case definition == nil:
		return nil, false
	case definition.Kind == ast.InputObject:
		return fitObject(schema, definition, value)
	case definition.Kind == ast.Enum:
		name, isText := value.(string)
		return name, isText && definition.EnumValues.ForName(name) != nil
	case t.NamedType == "Int":
		n, isNumber := numeric(value)
		return int64(n), isNumber && n == math.Trunc(n) && n >= math.MinInt32 && n <= math.MaxInt32
	case t.NamedType == "Float":
		n, isNumber := numeric(value)
		return n, isNumber
	case t.NamedType == "Boolean":
		_, isFlag := value.(bool)
		return value, isFlag
	default: // texts and dates
		_, isText := value.(string)
		return value, isText
	}
}

func fitList(schema *ast.Schema, t *ast.Type, value any) (any, bool) {
	items, isList := value.([]any)
	if !isList {
		items = []any{value} // a single value stands for a list of one
	}
	fitting := make([]any, len(items))
	for i, item := range items {
		var ok bool
		if fitting[i], ok = fit(schema, t.Elem, item); !ok {
			return nil, false
		}
	}
	return fitting, true
}

func fitObject(schema *ast.Schema, definition *ast.Definition, value any) (any, bool) {
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, false
	}
	fitting := make(map[string]any, len(object))
	for name, member := range object {
		field := definition.Fields.ForName(name)
		if field == nil {
			return nil, false
		}
		var ok bool
		if fitting[name], ok = fit(schema, field.Type, member); !ok {
			return nil, false
		}
	}
	for _, field := range definition.Fields {
		if _, there := object[field.Name]; !there && field.Type.NonNull && field.DefaultValue == nil {
			return nil, false
		}
	}
	return fitting, true
}

func numeric(value any) (float64, bool) {
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
