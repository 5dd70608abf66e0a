package rest

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	fill := strings.NewReplacer("{{cacheControl}}", cacheControl, "{{vary}}", vary, "{{keyRequired}}", keyRequired(cfg))
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
	headers := []string{"X-Service-Updated-At", "Cache-Control", "ETag", "Vary", "Access-Control-Allow-Origin", "X-Request-Id",
		"X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	if e.paginated {
		headers = append([]string{"X-Total-Count", "Link"}, headers...)
	}
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
		if r.status != "404" || e.notFound != nil {
			responses.add(r.status, object{{"$ref", "#/components/responses/" + r.name}})
		}
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
	case p.Values != nil:
		schema = object{{"type", "string"}, {"enum", p.Values}}
	case p.Kind == "Int":
		schema = object{{"type", "integer"}, {"minimum", p.Min}, {"maximum", p.Max}}
	case p.Kind == "Float":
		schema = object{{"type", "number"}}
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

// errorResponses lists the errors of every path; 404 is only for paths with a
// slug.
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
