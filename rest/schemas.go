package rest

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"
	"go.yaml.in/yaml/v3"

	"palmares/graph"
	"palmares/graph/document"
)

// schemas derives JSON schemas from the selections of operations. Every
// fragment and every enum becomes a component of the same name, and the response
// of a list becomes a component named after its items.
type schemas struct {
	components object
	model      *ast.Schema
	inline     bool // fragments are not components
}

// descriptions replaces those of the GraphQL schema for components and their
// properties that mean something else in the REST API.
var descriptions = map[string]string{
	"CategoryList":          "All categories.",
	"CategoryList.data":     "The categories, sorted by slug.",
	"Icp":                   "The audience that a tool is made for.",
	"Price":                 "The price of a tool and its history.",
	"Price.current_price":   "The current price as a string, `<amount> €/<period>`, such as `20 €/mois`.",
	"Price.price_history":   "All changes to the price or pricing model, newest first; empty if there are none.",
	"PriceChange.price":     "The price after the change as a string, `<amount> €/<period>`, such as `20 €/mois`.",
	"PriceItem":             "The current price of a tool.",
	"PriceList":             "A page of prices.",
	"PriceList.data":        "The prices of this page; empty after the last page.",
	"Pricing":               "The pricing model of a tool.",
	"RetirementReason":      "The reason for retiring a tool.",
	"ToolItem":              "An active tool. Retired tools are listed at `/api/v1/cimetiere`.",
	"ChunkMetadata.section": "The identifier of the section, the same as the `id` of the chunk.",
	"ComparedTool":          "A tool in a comparison, which may be retired.",
}

// add adds a component once and returns a reference to it.
func (s *schemas) add(name string, schema func() object) object {
	if !s.components.has(name) {
		i := len(s.components)
		s.components.add(name, nil) // reserves its place before nested components
		s.components[i].value = describedAs(name, schema())
	}
	return object{{"$ref", "#/components/schemas/" + name}}
}

// describedAs replaces the descriptions of a component and its properties.
func describedAs(name string, schema object) object {
	if name == "EmbeddingsDeletion.deleted" { // clients tell deletions from documents by this value
		schema.add("enum", []bool{true})
	}
	for i, m := range schema {
		if text, ok := descriptions[name]; ok && m.name == "description" {
			schema[i].value = text
		}
		if properties, ok := m.value.(object); ok && m.name == "properties" && !strings.Contains(name, ".") {
			for i, property := range properties {
				properties[i].value = describedAs(name+"."+property.name, property.value.(object))
			}
		}
	}
	return schema
}

// body returns the schema of an operation's response.
func (s *schemas) body(operation *graph.Operation) object {
	root, typeName := operation.Definition().SelectionSet, "Query"
	if first := root[0].(*ast.Field); first.Alias == "body" {
		root, typeName = first.SelectionSet, first.Definition.Type.Name()
	}
	for _, selection := range root {
		if f, ok := selection.(*ast.Field); ok && f.Alias == "data" {
			item := strings.TrimSuffix(typeName, "Connection")
			if len(f.SelectionSet) > 0 {
				item = strings.TrimSuffix(f.SelectionSet[0].(*ast.FragmentSpread).Name, "Item")
			}
			return s.add(item+"List", func() object { return s.object(typeName, root) })
		}
	}
	return s.object(typeName, root)
}

// bodyAt returns the schema of a part of an operation's result.
func (s *schemas) bodyAt(operation *graph.Operation, path []*ast.Field) object {
	if len(path) == 0 {
		return s.object("Query", operation.Definition().SelectionSet)
	}
	schema := s.value(path[len(path)-1].Definition.Type, path[len(path)-1])
	for _, f := range path[:len(path)-1] {
		if f.Definition.Type.Elem != nil {
			schema = object{{"type", "array"}, {"items", schema}}
		}
	}
	if !path[0].Definition.Type.NonNull {
		schema.add("nullable", true)
	}
	return schema
}

// field returns the schema of a field, with a description unless it is a
// reference: OpenAPI 3.0 allows nothing beside a $ref.
func (s *schemas) field(f *ast.Field) object {
	schema := s.value(f.Definition.Type, f)
	if s.inline && schema.has("$ref") && !f.Definition.Type.NonNull {
		return object{{"type", "string"}, {"allOf", []object{schema}}, {"nullable", true}} // an enum
	}
	if schema.has("$ref") {
		return schema
	}
	if !f.Definition.Type.NonNull && (f.SelectionSet == nil || s.inline) {
		schema.add("nullable", true)
	}
	if !schema.has("description") {
		schema.add("description", f.Definition.Description)
	}
	if document.DeprecationOf(f.Definition) != nil {
		schema.add("deprecated", true)
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
	if f.ObjectDefinition.Name == "ChangeConnection" && f.Name == "events" {
		return s.events()
	}
	if spelled := f.Definition.Directives.ForName("spelled"); spelled != nil {
		var values []string
		for _, value := range spelled.ArgumentMap(nil)["as"].([]any) {
			values = append(values, value.(string))
		}
		// The field beside it, such as icp beside icpCode, has the enum.
		name, _ := strings.CutSuffix(f.Name, "Code")
		return s.enum(f.ObjectDefinition.Fields.ForName(name).Type.Name(), values, nil)
	}
	if definition := s.model.Types[t.NamedType]; definition.Kind == ast.Enum {
		var values []string
		for _, value := range definition.EnumValues {
			values = append(values, value.Name)
		}
		return s.enum(t.NamedType, values, nil)
	}
	return scalar(t.NamedType)
}

// scalar returns the schema of a scalar type.
func scalar(name string) object {
	switch name {
	case "Int":
		return object{{"type", "integer"}}
	case "Float":
		return object{{"type", "number"}, {"format", "double"}}
	case "Boolean":
		return object{{"type", "boolean"}}
	case "Date":
		return object{{"type", "string"}, {"format", "date"}}
	case "URL":
		return object{{"type", "string"}, {"format", "uri"}}
	case "JSON": // in our paths, always an object
		return object{{"type", "object"}, {"additionalProperties", true}}
	}
	return object{{"type", "string"}}
}

// enum returns a reference to an enum of the model, with the values and spelling of
// the REST API.
func (s *schemas) enum(name string, values []string, preset any) object {
	return s.add(name, func() object {
		definition := s.model.Types[name]
		var meanings object
		for _, value := range values {
			if known := definition.EnumValues.ForName(strings.ReplaceAll(value, "-", "_")); known != nil {
				meanings.add(value, known.Description)
			}
		}
		schema := object{{"type", "string"}, {"description", definition.Description}, {"enum", values},
			{"x-enum-descriptions", meanings}}
		if preset != nil {
			schema.add("default", preset)
		}
		return schema
	})
}

// object returns the schema of a selection, or a reference if it is a single
// fragment.
func (s *schemas) object(typeName string, set ast.SelectionSet) object {
	if spread, ok := set[0].(*ast.FragmentSpread); ok && len(set) == 1 && !s.inline {
		fragment := spread.Definition
		return s.add(fragment.Name, func() object { return s.object(fragment.TypeCondition, fragment.SelectionSet) })
	}
	if s.model.Types[typeName].Kind == ast.Union && !s.inline {
		var types []object
		for _, selection := range set {
			types = append(types, s.object(typeName, ast.SelectionSet{selection}))
		}
		return object{{"oneOf", types}}
	}
	var required []string
	var properties object
	for _, f := range document.Fields(set, s.model.Types[typeName]) {
		if !f.Optional {
			required = append(required, f.Alias)
		}
		properties.add(f.Alias, s.field(f.Field))
	}
	schema := object{{"type", "object"}, {"description", s.model.Types[typeName].Description}, {"properties", properties}}
	if len(required) == 0 {
		return schema
	}
	at := len(schema)
	if !s.inline {
		at--
	}
	return slices.Insert(schema, at, member{"required", required})
}

// object is a JSON object whose members keep their order, so that the document lists
// fields in the order of the API.
type object []member

type member struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// member returns the value of a member, or nil.
func (o object) member(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns the value of a string member, or "".
func (o object) text(name string) string {
	text, _ := o.member(name).(string)
	return text
}

func (o object) has(name string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.name == name })
}

// membersOf returns the members of a valid JSON object.
func membersOf(value jsontext.Value) (o object) {
	in := jsontext.NewDecoder(bytes.NewReader(value))
	_, _ = in.ReadToken()
	for in.PeekKind() == '"' {
		name, _ := in.ReadToken()
		text := name.String()
		member, _ := in.ReadValue()
		o.add(text, member.Clone())
	}
	return o
}

// MarshalJSONTo implements json.MarshalerTo.
func (o object) MarshalJSONTo(out *jsontext.Encoder) error {
	err := out.WriteToken(jsontext.BeginObject)
	for _, m := range o {
		err = cmp.Or(err, out.WriteToken(jsontext.String(m.name)), json.MarshalEncode(out, m.value))
	}
	return cmp.Or(err, out.WriteToken(jsontext.EndObject))
}

// toYAML writes a JSON document as YAML, with the members in the same order.
func toYAML(document []byte) ([]byte, error) {
	var root yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	useBlockStyle(&root)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(&root)
	return out.Bytes(), err
}

// useBlockStyle drops the braces, brackets and quotes of JSON.
func useBlockStyle(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		useBlockStyle(child)
	}
}
