package rest

import (
	"bytes"
	"embed"
	"encoding/json"
	"strconv"
	"strings"

	"palmares/graph"
)

// The document is derived from the table of routes and the operations, so it
// cannot say anything else than what is served.

//go:embed examples
var examples embed.FS

// Describe is the OpenAPI document of every path, whose examples are of the
// demo catalog.
func Describe(cfg Config) ([]byte, error) {
	endpoints, _, err := buildEndpoints()
	if err != nil {
		return nil, err
	}
	return describe(endpoints, cfg, demoSamples)
}

func describe(endpoints []*endpoint, cfg Config, try samples) ([]byte, error) {
	schemas := &schemas{model: graph.Schema()}
	var paths, tags object
	for _, e := range endpoints {
		paths.add(e.path, object{{"get", e.describe(schemas, cfg.PublicURL, try)}})
		if !tags.has(e.tag()) {
			tags.add(e.tag(), e.summary+".")
		}
	}
	document := object{
		{"openapi", "3.0.3"},
		{"info", object{
			{"title", cfg.ServiceName},
			{"version", "1.0.0"},
			{"description", description(cfg)},
			{"contact", object{{"name", cfg.ServiceName}, {"url", cfg.ServiceURL}}},
			{"license", object{{"name", "Free of rights; reuse must show the credit line"}, {"url", cfg.ServiceURL}}},
		}},
		{"servers", []object{{{"url", cfg.PublicURL}, {"description", "This server."}}}},
		{"tags", tagList(tags)},
		{"security", openSecurity},
		{"paths", paths},
		{"components", object{
			{"schemas", append(schemas.components, member{"Error", errorSchema})},
			{"parameters", object{{"If-None-Match", object{
				{"name", "If-None-Match"}, {"in", "header"}, {"schema", text}, // without an example, which who tries a path would send
				{"description", "The `ETag` of an answer that you have: if nothing changed, 304 comes back."},
			}}}},
			{"headers", headerComponents},
			{"responses", errorResponses()},
			{"securitySchemes", object{{"apiKey", object{
				{"type", "http"}, {"scheme", "bearer"}, {"description", "An API key, as `Authorization: Bearer <API_KEY>`."},
			}}}},
		}},
		{"x-credit", cfg.Credit},
	}
	compact, err := encode(document)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, compact, "", "  ")
	return out.Bytes(), err
}

func description(cfg Config) string {
	return strings.Join([]string{
		"A catalog of tested AI tools, read-only: scores, head-to-head comparisons, prices in euros with their history, retired tools, categories, statistics and review texts ready for retrieval.",
		"The data is free of rights. The condition of its use is the credit line `" + cfg.Credit + "`.",
		"Every path answers GET and HEAD, and other origins may read it. Without a key, 100 requests a day are answered for each IP address; a Developer key has 1,000 a day, a Pro key no bound.",
		"Every answer is of one release of the catalog. It bears a strong `ETag`, which `If-None-Match` turns into a 304 that costs nothing of the quota.",
		"`x-graphql` holds the GraphQL operation that a path stands for: post it to `/graphql` to ask for more or less.",
	}, "\n\n")
}

func tagList(tags object) []object {
	var list []object
	for _, tag := range tags {
		list = append(list, object{{"name", tag.name}, {"description", tag.value}})
	}
	return list
}

// tag groups paths by their noun.
func (e *endpoint) tag() string {
	if e.segments[2] == "v1" {
		return e.segments[3]
	}
	return e.segments[2]
}

var (
	anyone        = object{}
	keyHolder     = object{{"apiKey", []string{}}}
	openSecurity  = []object{anyone, keyHolder}
	keyedSecurity = []object{keyHolder}
)

func (e *endpoint) describe(s *schemas, publicURL string, try samples) object {
	operation := object{
		{"operationId", e.query},
		{"summary", e.summary},
		{"description", e.details + "\n\n[Open it in the GraphQL explorer](" + publicURL + ExplorerPath(e.tryPath(try)) + ")"},
		{"tags", []string{e.tag()}},
	}
	if e.keyed {
		operation.add("security", keyedSecurity)
	}
	var parameters []object
	for _, a := range e.arguments {
		parameters = append(parameters, a.describe(try[e.sample]))
	}
	operation.add("parameters", append(parameters, object{{"$ref", "#/components/parameters/If-None-Match"}}))
	operation.add("responses", e.responses(s.body(e.operation)))
	operation.add("x-graphql", object{{"query", e.operation.Text}, {"variables", e.exampleVariables(try)}})
	return operation
}

func (e *endpoint) responses(body object) object {
	headers := []string{"X-Service-Updated-At", "Cache-Control", "ETag", "Vary", "Access-Control-Allow-Origin", "X-Request-Id",
		"X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	if e.counted {
		headers = append([]string{"X-Total-Count", "Link"}, headers...)
	}
	content := object{{"schema", body}}
	if example, err := examples.ReadFile("examples/" + e.query + ".json"); err == nil { // a test fails for who has none
		content.add("example", json.RawMessage(example))
	}
	responses := object{
		{"200", object{
			{"description", e.summary + "."},
			{"headers", headerRefs(headers)},
			{"content", object{{"application/json", content}}},
		}},
		{"304", object{
			{"description", "Nothing changed since the answer that `If-None-Match` names."},
			{"headers", headerRefs(headers)},
		}},
	}
	for _, status := range errorStatuses {
		if status.always || (status.missing && e.missing != nil) {
			responses.add(strconv.Itoa(status.code), object{{"$ref", "#/components/responses/" + status.name}})
		}
	}
	return responses
}

// describe is the parameter with its type and bounds.
func (a argument) describe(slug string) object {
	described := object{{"name", a.name}, {"in", "query"}, {"description", a.description}}
	if a.inPath {
		described = object{{"name", a.name}, {"in", "path"}, {"description", a.description}, {"required", true}, {"example", slug}}
	}
	var schema object
	switch {
	case a.values != nil:
		schema = object{{"type", "string"}, {"enum", a.values}}
	case a.kind == "Int":
		schema = object{{"type", "integer"}, {"minimum", a.least}, {"maximum", a.most}}
	case a.kind == "Float":
		schema = object{{"type", "number"}}
	default:
		schema = object{{"type", "string"}, {"minLength", 1}}
	}
	if a.preset != nil {
		schema.add("default", a.preset)
	}
	described.add("schema", schema)
	return described
}

// exampleLimit keeps the examples of lists short.
const exampleLimit = 2

// exampleVariables are what the operation's example is an answer to.
func (e *endpoint) exampleVariables(try samples) object {
	variables := object{}
	for _, a := range e.arguments {
		switch {
		case a.inPath:
			variables.add(a.name, try[e.sample])
		case a.name == "limit":
			variables.add(a.name, exampleLimit)
		case a.preset != nil:
			variables.add(a.name, a.preset)
		}
	}
	return variables
}
