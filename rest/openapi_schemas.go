package rest

import (
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
)

// schemas turns what operations select into JSON schemas. A fragment is a
// component, under its own name.
type schemas struct {
	components object
	model      *ast.Schema
}

// body is the schema of what a path answers.
func (s *schemas) body(operation *graph.Operation) object {
	root := operation.Definition().SelectionSet
	if first := root[0].(*ast.Field); first.Alias == "body" {
		return s.field(first)
	}
	return s.object("Query", root)
}

// field is the schema of a field's value, described unless it is a reference,
// beside which nothing may stand.
func (s *schemas) field(f *ast.Field) object {
	schema := s.value(f.Definition.Type, f)
	if schema.has("$ref") {
		return schema
	}
	if !f.Definition.Type.NonNull && f.SelectionSet == nil {
		schema.add("nullable", true)
	}
	if !schema.has("description") {
		schema.add("description", f.Definition.Description)
	}
	return schema
}

func (s *schemas) value(t *ast.Type, f *ast.Field) object {
	if t.Elem != nil {
		return object{{"type", "array"}, {"items", s.value(t.Elem, f)}}
	}
	if f.SelectionSet != nil {
		return s.object(t.NamedType, f.SelectionSet)
	}
	if spelled := f.Definition.Directives.ForName("spelled"); spelled != nil {
		values, _ := spelled.ArgumentMap(nil)["as"].([]any)
		return object{{"type", "string"}, {"enum", values}}
	}
	switch t.NamedType {
	case "Int":
		return object{{"type", "integer"}}
	case "Float":
		return object{{"type", "number"}}
	case "Boolean":
		return object{{"type", "boolean"}}
	case "Date":
		return object{{"type", "string"}, {"format", "date"}}
	case "URL":
		return object{{"type", "string"}, {"format", "uri"}}
	}
	schema := object{{"type", "string"}}
	if definition := s.model.Types[t.NamedType]; definition.Kind == ast.Enum {
		var values []string
		var meanings object
		for _, value := range definition.EnumValues {
			values = append(values, value.Name)
			meanings.add(value.Name, value.Description)
		}
		schema.add("enum", values)
		schema.add("x-enum-descriptions", meanings)
	}
	return schema
}

// object is the schema of a selection: a fragment's, or one of its own.
func (s *schemas) object(typeName string, set ast.SelectionSet) object {
	if spread, ok := set[0].(*ast.FragmentSpread); ok && len(set) == 1 {
		s.component(spread.Definition)
		return object{{"$ref", "#/components/schemas/" + spread.Name}}
	}
	var required []string
	var properties object
	for _, selection := range set {
		f := selection.(*ast.Field) // our operations have no other kinds
		required = append(required, f.Alias)
		properties.add(f.Alias, s.field(f))
	}
	return object{
		{"type", "object"}, {"description", s.model.Types[typeName].Description},
		{"required", required}, {"properties", properties},
	}
}

func (s *schemas) component(fragment *ast.FragmentDefinition) {
	if !s.components.has(fragment.Name) {
		i := len(s.components)
		s.components.add(fragment.Name, nil) // in the order of mention
		s.components[i].value = s.object(fragment.TypeCondition, fragment.SelectionSet)
	}
}
