package rest

import (
	"cmp"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
)

//go:embed examples
var embeddedExamples embed.FS

// componentsFile holds the components that do not depend on the route table. The
// errors in it are real messages. If-None-Match has no example, because API
// consoles would send it.
//
//go:embed components.json
var componentsFile string

// examples holds an example response for each operation.
var examples fs.FS = embeddedExamples

// Describe returns the OpenAPI document with examples from the demo catalog.
func Describe(cfg Config) ([]byte, error) {
	endpoints, _, err := buildEndpoints()
	if err != nil {
		return nil, err
	}
	return describe(endpoints, cfg, demoSlugs)
}

func describe(endpoints []*endpoint, cfg Config, slugs exampleSlugs) ([]byte, error) {
	fill := strings.NewReplacer("{{cacheControl}}", graph.CacheControl, "{{vary}}", vary, "{{keyRequired}}", keyRequired(cfg))
	var components map[string]jsontext.Value
	if err := json.Unmarshal([]byte(fill.Replace(componentsFile)), &components); err != nil {
		return nil, err
	}
	schemas := &schemas{model: graph.Schema()}
	var paths object
	var tags []object
	described := map[string]bool{}
	for _, e := range endpoints {
		paths.add(e.path, object{{"get", e.describe(schemas, cfg.PublicURL, slugs)}})
		if tag := e.tag(); !described[tag] {
			described[tag] = true
			tags = append(tags, object{{"name", tag}, {"description", e.summary + "."}})
		}
	}
	document := object{
		{"openapi", "3.0.3"},
		{"info", object{
			{"title", cfg.ServiceName},
			{"version", "1.0.0"},
			{"description", introduction(cfg)},
			{"contact", object{{"name", cfg.ServiceName}, {"url", cfg.ServiceURL}}},
			{"license", object{{"name", "Free to reuse with the credit line"}, {"url", cfg.ServiceURL}}},
		}},
		{"servers", []object{{{"url", cfg.PublicURL}, {"description", "This server."}}}},
		{"tags", tags},
		{"security", []object{{}, apiKey}},
		{"paths", paths},
		{"components", object{
			{"schemas", append(schemas.components, member{"Error", components["Error"]})},
			{"parameters", components["parameters"]},
			{"headers", components["headers"]},
			{"responses", components["responses"]},
			{"securitySchemes", components["securitySchemes"]},
		}},
		{"x-credit", cfg.Credit},
	}
	return json.Marshal(document, jsontext.WithIndent("  "))
}

func introduction(cfg Config) string {
	return strings.Join([]string{
		"A read-only catalog of tested AI tools: scores, head-to-head comparisons, prices in euros with their history, retired tools, categories, statistics, and review texts ready for retrieval.",
		"The data is free to reuse, provided that you show the credit line `" + cfg.Credit + "`.",
		"Every path supports GET and HEAD, and CORS is open to all origins. Without an API key, each IP address may send 100 requests per day. A Developer key allows 1,000 requests per day; a Pro key is unlimited.",
		"Every response comes from a single release of the catalog. It carries a strong `ETag`; send it back in `If-None-Match` to get a 304, which does not count against your quota.",
		"`x-graphql` contains the GraphQL operation behind a path. Post it to `/graphql`, with more or fewer fields, to get exactly the data you need.",
	}, "\n\n")
}

var apiKey = object{{"apiKey", []string{}}}

// tag groups paths by resource.
func (e *endpoint) tag() string {
	if e.segments[2] == "v1" {
		return e.segments[3]
	}
	return e.segments[2]
}

func (e *endpoint) describe(s *schemas, publicURL string, slugs exampleSlugs) object {
	operation := object{
		{"operationId", e.query},
		{"summary", e.summary},
		{"description", e.details + "\n\n[Open in the GraphQL explorer](" + publicURL + ExplorerPath(e.examplePath(slugs)) + ")"},
		{"tags", []string{e.tag()}},
	}
	if e.requiresKey {
		operation.add("security", []object{apiKey})
	}
	parameters, variables := []object{}, object{}
	for _, p := range e.parameters {
		parameters = append(parameters, p.describe(slugs[e.example]))
		switch {
		case p.inPath:
			variables.add(p.name, slugs[e.example])
		case p.name == "limit":
			variables.add(p.name, 2) // keeps example responses short
		case p.Default != nil:
			variables.add(p.name, p.Default)
		}
	}
	operation.add("parameters", append(parameters, object{{"$ref", "#/components/parameters/If-None-Match"}}))
	operation.add("responses", e.describeResponses(s.body(e.operation)))
	operation.add("x-graphql", object{{"query", e.operation.Text}, {"variables", variables}})
	return operation
}

func (e *endpoint) describeResponses(body object) object {
	headers := []string{"X-Service-Release", "X-Service-Updated-At", "Cache-Control", "ETag", "Vary", "Access-Control-Allow-Origin", "X-Request-Id",
		"X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	if e.paginated {
		headers = append([]string{"X-Total-Count"}, headers...)
	}
	headers = append(headers, "Link", "Memento-Datetime", "Content-Location")
	content := object{{"schema", body}}
	if example, err := fs.ReadFile(examples, "examples/"+e.query+".json"); err == nil { // tests fail if it is missing
		content.add("example", jsontext.Value(example))
	}
	responses := object{
		{"200", object{
			{"description", e.summary + "."},
			{"headers", headerRefs(headers)},
			{"content", object{{"application/json", content}}},
		}},
		{"304", object{
			{"description", "The response named in `If-None-Match` is still current."},
			{"headers", headerRefs(headers)},
		}},
	}
	for _, r := range errorResponses {
		responses.add(r.status, object{{"$ref", "#/components/responses/" + r.name}})
	}
	return responses
}

func (p parameter) describe(exampleSlug string) object {
	described := object{{"name", p.name}, {"in", "query"}, {"description", p.description}}
	if p.inPath {
		described = object{{"name", p.name}, {"in", "path"}, {"description", p.description}, {"required", true}, {"example", exampleSlug}}
	}
	var schema object
	switch {
	case p.list:
		schema = object{{"type", "array"}, {"items", object{{"type", "string"}, {"enum", p.Values}}}, {"minItems", 1}}
		described.add("explode", false)
	case p.Values != nil:
		schema = object{{"type", "string"}, {"enum", p.Values}}
	case p.Kind == "Int":
		schema = object{{"type", "integer"}, {"minimum", p.Min}, {"maximum", p.Max}}
	case p.Kind == "Float":
		schema = object{{"type", "number"}}
	case p.Kind == "Date":
		schema = object{{"type", "string"}, {"format", "date"}}
	case p.pattern != "":
		schema = object{{"type", "string"}, {"pattern", p.pattern}}
	default:
		schema = object{{"type", "string"}, {"minLength", 1}}
		if p.max > 0 {
			schema.add("maxLength", p.max)
		}
	}
	if p.Default != nil {
		schema.add("default", p.Default)
	}
	described.add("schema", schema)
	return described
}

// errorResponses lists the errors of every path; a release may not be found on
// any of them.
var errorResponses = []struct{ status, name string }{
	{"400", "BadRequest"}, {"401", "Unauthorized"}, {"404", "NotFound"}, {"406", "NotAcceptable"},
	{"429", "TooManyRequests"}, {"500", "InternalError"}, {"503", "Unavailable"},
}

func headerRefs(names []string) object {
	var refs object
	for _, name := range names {
		refs.add(name, object{{"$ref", "#/components/headers/" + name}})
	}
	return refs
}

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
	case "JSON": // our paths have objects only
		return object{{"type", "object"}, {"additionalProperties", true}}
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
