package rest

import (
	"maps"
	"slices"
	"strings"

	"palmares/graph"
)

// jsonSchema is a JSON Schema.
type jsonSchema = map[string]any

// events returns the schema of an event, which its type selects. The schemas of the types
// are those at /schemas/events/, in the dialect of OpenAPI 3.0.
func (s *schemas) events() object {
	events, documents := graph.EventSchemas()
	var types []object
	var mapping object
	for _, event := range events {
		noun, verb, _ := strings.Cut(event, ".")
		document := documents[event]
		definitions, _ := document["$defs"].(jsonSchema)
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			s.add(definitionName(name), func() object { return s.toOpenAPI(definitions[name].(jsonSchema)) })
		}
		reference := s.add(titled(noun)+titled(verb)+"Event", func() object { return s.toOpenAPI(document) })
		types = append(types, reference)
		mapping.add(event, reference.text("$ref"))
	}
	return object{{"type", "object"}, {"oneOf", types}, {"discriminator", object{{"propertyName", "type"}, {"mapping", mapping}}}}
}

func titled(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func definitionName(name string) string { return "Event" + titled(name) }

// toOpenAPI converts a JSON Schema, for the keywords that those of events have. OpenAPI 3.0
// has neither null nor const, and other schemas of ours allow properties that are added
// later.
func (s *schemas) toOpenAPI(given jsonSchema) object {
	if reference, ok := given["$ref"].(string); ok {
		return object{{"$ref", "#/components/schemas/" + definitionName(strings.TrimPrefix(reference, "#/$defs/"))}}
	}
	if values, ok := given["enum"].([]string); ok {
		for _, c := range s.components { // such as the reasons of retirement
			if known, ok := c.value.(object); ok && slices.Equal(known.values(), values) {
				return object{{"$ref", "#/components/schemas/" + c.name}}
			}
		}
	}
	var schema object
	switch kind := given["type"]; {
	case kind == "null":
		return object{{"type", "object"}, {"nullable", true}, {"enum", []any{nil}}}
	case kind == "number":
		schema = scalar("Float")
	case kind != nil:
		schema.add("type", kind)
	case given["const"] != nil || given["enum"] != nil:
		schema.add("type", "string")
	}
	if value := given["const"]; value != nil {
		schema.add("enum", []any{value})
	}
	for _, name := range []string{"description", "required", "enum", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "uniqueItems"} {
		value := given[name]
		if names, ok := value.([]string); value != nil && (!ok || len(names) > 0) { // OpenAPI 3.0 allows no empty list
			schema.add(name, value)
		}
	}
	if properties, ok := given["properties"].(jsonSchema); ok {
		var converted object
		for _, name := range namesOf(properties, given["required"]) {
			converted.add(name, s.toOpenAPI(properties[name].(jsonSchema)))
		}
		schema.add("properties", converted)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := given[name].(jsonSchema); ok {
			schema.add(name, s.toOpenAPI(inner))
		}
	}
	choices, _ := given["anyOf"].([]jsonSchema)
	var converted []object
	for _, choice := range choices {
		if choice["type"] != "null" {
			converted = append(converted, s.toOpenAPI(choice))
		}
	}
	switch nullable := len(converted) < len(choices); {
	case len(converted) == 1 && !converted[0].has("$ref"):
		return append(append(converted[0], schema...), member{"nullable", true})
	case nullable:
		schema = append(schema, member{"type", "object"}, member{"nullable", true}, member{"allOf", converted})
	case len(converted) > 0:
		schema.add("oneOf", converted)
	}
	return schema
}

// values returns those of an enum.
func (o object) values() []string {
	values, _ := o.member("enum").([]string)
	return values
}

// namesOf returns the names of properties in their order, which that of the required ones
// is.
func namesOf(properties jsonSchema, required any) []string {
	names, _ := required.([]string)
	names = slices.Clone(names)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
