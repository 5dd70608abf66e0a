package graph

import (
	"encoding/json"
	"math"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/problem"
)

// checkVariables refuses values of another kind than their type. The library
// is more lenient than the specification: it would take "1" for 1.
func checkVariables(schema *ast.Schema, op *ast.OperationDefinition, variables map[string]any) *problem.Problem {
	for _, definition := range op.VariableDefinitions {
		value, given := variables[definition.Variable]
		if given && !fits(schema, definition.Type, value) {
			return problem.New(problem.BadInput, "$%s: is not %s.", definition.Variable, definition.Type.String())
		}
	}
	return nil
}

func fits(schema *ast.Schema, t *ast.Type, value any) bool {
	if value == nil {
		return !t.NonNull
	}
	if t.Elem != nil {
		items, isList := value.([]any)
		if !isList {
			return fits(schema, t.Elem, value) // a single value stands for a list of one
		}
		for _, item := range items {
			if !fits(schema, t.Elem, item) {
				return false
			}
		}
		return true
	}
	definition := schema.Types[t.NamedType]
	if definition == nil {
		return false
	}
	switch {
	case definition.Kind == ast.InputObject:
		return fitsObject(schema, definition, value)
	case t.NamedType == "Int":
		n, isNumber := numeric(value)
		return isNumber && n == math.Trunc(n) && n >= math.MinInt32 && n <= math.MaxInt32
	case t.NamedType == "Float":
		_, isNumber := numeric(value)
		return isNumber
	case t.NamedType == "Boolean":
		_, isFlag := value.(bool)
		return isFlag
	default: // texts, dates and enums
		_, isText := value.(string)
		return isText
	}
}

func fitsObject(schema *ast.Schema, definition *ast.Definition, value any) bool {
	object, isObject := value.(map[string]any)
	if !isObject {
		return false
	}
	for name, member := range object {
		field := definition.Fields.ForName(name)
		if field == nil || !fits(schema, field.Type, member) {
			return false
		}
	}
	return true
}

func numeric(value any) (float64, bool) {
	switch v := value.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}
