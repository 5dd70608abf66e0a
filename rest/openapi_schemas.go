package rest

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
)

// schemas derives JSON schemas from the selections of operations. Every
// fragment becomes a component of the same name.
type schemas struct {
	components object
	model      *ast.Schema
}

// body returns the schema of an operation's response.
func (s *schemas) body(operation *graph.Operation) object {
	root := operation.Definition().SelectionSet
	if first := root[0].(*ast.Field); first.Alias == "body" {
		return s.field(first)
	}
	return s.object("Query", root)
}

// field returns the schema of a field, with a description unless it is a
// reference: OpenAPI 3.0 allows nothing beside a $ref.
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
		var descriptions object
		for _, value := range definition.EnumValues {
			values = append(values, value.Name)
			descriptions.add(value.Name, value.Description)
		}
		schema.add("enum", values)
		schema.add("x-enum-descriptions", descriptions)
	}
	return schema
}

// object returns the schema of a selection, or a reference if it is a single
// fragment.
func (s *schemas) object(typeName string, set ast.SelectionSet) object {
	if spread, ok := set[0].(*ast.FragmentSpread); ok && len(set) == 1 {
		if fragment := spread.Definition; !s.components.has(fragment.Name) {
			i := len(s.components)
			s.components.add(fragment.Name, nil) // reserves its place before the fragments in it
			s.components[i].value = s.object(fragment.TypeCondition, fragment.SelectionSet)
		}
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

// object is a JSON object that keeps its members in order, so that readers
// find fields in the order of the API.
type object []member

type member struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

func (o object) has(name string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.name == name })
}

// MarshalJSONTo implements json.MarshalerTo.
func (o object) MarshalJSONTo(out *jsontext.Encoder) error {
	err := out.WriteToken(jsontext.BeginObject)
	for _, m := range o {
		err = cmp.Or(err, out.WriteToken(jsontext.String(m.name)), json.MarshalEncode(out, m.value))
	}
	return cmp.Or(err, out.WriteToken(jsontext.EndObject))
}
