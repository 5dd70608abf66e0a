package rest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"palmares/graph"
)

// Operation describes a REST path and the GraphQL operation that it runs.
type Operation struct {
	Path        string      `json:"path"` // may contain {slug}
	Tag         string      `json:"-"`    // its resource
	Summary     string      `json:"-"`
	Details     string      `json:"-"`
	Example     string      `json:"-"`     // a path with data of the demo catalog
	Query       string      `json:"query"` // "" for a download
	Parameters  []Parameter `json:"parameters"`
	RequiresKey bool        `json:"keyed"`                // requires an API key
	Deprecated  string      `json:"deprecated,omitempty"` // a sentence with its dates, or ""
	Response    string      `json:"-"`                    // the type of the body, in words
}

// Object is an object or an enum of responses.
type Object struct {
	Name, Description string
	Fields            []Field // or values
}

// Field is a field of an object, a value of an enum or a status.
type Field struct{ Name, Type, Description string }

// Samples are examples from a release.
type Samples struct {
	Paths      map[string]string // by path template
	Categories []string          // slugs
	Release    int               // 0 before the first import
}

// Operations returns all paths, in the order of the route table.
func (h *Handler) Operations() []Operation {
	schemas := &schemas{model: graph.Schema()}
	var operations []Operation
	for _, e := range h.paths {
		o := Operation{
			Path: e.path, Tag: e.tag(), Summary: e.summary, Details: e.details, Example: e.examplePath(demoSlugs),
			Query:      e.operation.Text,
			Parameters: append([]Parameter{}, e.documented()...), RequiresKey: e.requiresKey,
			Deprecated: e.ownDeprecation.String(),
			Response:   typeOf(schemas.body(e.operation)),
		}
		if e.format != "" {
			o.Query, o.Response = "", strings.ToUpper(e.format)
		}
		operations = append(operations, o)
	}
	return operations
}

// MarshalJSON writes what the explorer needs.
func (p Parameter) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string `json:"name"`
		InPath bool   `json:"inPath"`
		Preset any    `json:"preset"` // nil if there is none
	}{p.Name, p.InPath, p.Default})
}

// Allowed describes the values that a parameter accepts, in words.
func (p Parameter) Allowed() string {
	switch {
	case p.List && p.Values == nil:
		return fmt.Sprintf("up to %d values, separated by commas", p.Max)
	case p.List:
		return "one or more of " + quoted(p.Values)
	case p.Values != nil:
		return "one of " + quoted(p.Values)
	case p.Kind == "Int":
		return fmt.Sprintf("integer from %d to %d", p.Min, p.Max)
	case p.Kind == "Float":
		return "number"
	case p.Kind == "Date":
		return "day, YYYY-MM-DD"
	case p.Form != "":
		return p.Form
	case p.pattern != "":
		return "string that matches `" + p.pattern + "`"
	case p.Max > 0:
		return fmt.Sprintf("string of 1 to %d characters", p.Max)
	}
	return "text"
}

// quoted lists values as code.
func quoted(values []string) string { return "`" + strings.Join(values, "`, `") + "`" }

// Objects returns the objects and enums of responses, in the order in which the
// paths use them.
func (h *Handler) Objects() []Object {
	schemas := &schemas{model: graph.Schema()}
	for _, e := range h.paths {
		schemas.body(e.operation)
	}
	var objects []Object
	for _, component := range schemas.components {
		schema := component.value.(object)
		o := Object{Name: component.name, Description: schema.text("description"), Fields: fieldsOf(schema)}
		meanings, _ := schema.member("x-enum-descriptions").(object)
		values, _ := schema.member("enum").([]string)
		for _, value := range values {
			o.Fields = append(o.Fields, Field{Name: value, Description: meanings.text(value)})
		}
		objects = append(objects, o)
	}
	return objects
}

// fieldsOf lists the properties of an object and of those within it.
func fieldsOf(schema object) (fields []Field) {
	properties, _ := schema.member("properties").(object)
	for _, property := range properties {
		value := property.value.(object)
		fields = append(fields, Field{Name: property.name, Type: typeOf(value), Description: value.text("description")})
		if items, isList := value.member("items").(object); isList {
			value = items
		}
		for _, inner := range fieldsOf(value) {
			inner.Name = property.name + "." + inner.Name
			fields = append(fields, inner)
		}
	}
	return fields
}

// typeOf describes the type of a schema in words.
func typeOf(schema object) string {
	name := schema.text("type")
	switch ref, format := schema.text("$ref"), schema.text("format"); {
	case ref != "":
		name = "`" + ref[strings.LastIndexByte(ref, '/')+1:] + "`"
	case schema.has("oneOf"):
		var types []string
		for _, one := range schema.member("oneOf").([]object) {
			types = append(types, typeOf(one))
		}
		name = strings.Join(types, " or ")
	case name == "array":
		name = "list of " + typeOf(schema.member("items").(object))
	case format == "date":
		name = "date"
	case format == "uri":
		name = "URL"
	}
	if schema.has("nullable") {
		name += " or null"
	}
	return name
}

// Errors returns the statuses of errors with their meanings.
func Errors() []Field {
	var components struct {
		Responses map[string]struct {
			Description string `json:"description"`
		} `json:"responses"`
	}
	if err := json.Unmarshal([]byte(componentsFile), &components); err != nil {
		panic(err) // the file is embedded
	}
	var all []Field
	for _, r := range errorResponses {
		all = append(all, Field{Name: r.status, Description: components.Responses[r.name].Description})
	}
	return all
}
