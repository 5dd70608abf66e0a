package rest

import (
	"embed"
	"io/fs"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/graph"
)

//go:embed examples
var embeddedExamples embed.FS

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
			{"schemas", append(schemas.components, member{"Error", object{
				{"type", "object"}, {"description", "An error."}, {"required", []string{"error"}},
				{"properties", object{{"error", object{{"type", "string"}, {"description", "A sentence that says what is wrong."}}}}},
			}})},
			{"parameters", object{{"If-None-Match", object{
				// No example: API consoles would send it.
				{"name", "If-None-Match"}, {"in", "header"}, {"schema", text},
				{"description", "The `ETag` of a response you already have. If it is still current, the response is 304 without a body."},
			}}}},
			{"headers", headerComponents},
			{"responses", errorComponents(cfg)},
			{"securitySchemes", object{{"apiKey", object{
				{"type", "http"}, {"scheme", "bearer"}, {"description", "An API key, sent as `Authorization: Bearer <API_KEY>`."},
			}}}},
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
		if r.status != 404 || e.notFound != nil {
			responses.add(strconv.Itoa(r.status), object{{"$ref", "#/components/responses/" + r.name}})
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
// slug. The examples are real messages.
var errorResponses = []struct {
	status                            int
	name, description, example, extra string // extra is a header
}{
	{400, "BadRequest", "A parameter is invalid. The error names the parameter, the value and what is allowed.",
		`limit must be an integer from 1 to 200 (got "500").`, ""},
	{401, "Unauthorized", "The API key is malformed, unknown or revoked, or the path requires a key and none was sent.",
		"", "WWW-Authenticate"},
	{404, "NotFound", "Nothing has this slug.", "No tool has the slug nobody.", ""},
	{406, "NotAcceptable", "`Accept-Encoding` excludes every supported encoding.",
		"Accept-Encoding allows none of the encodings that are available: identity, gzip, br and zstd.", ""},
	{429, "TooManyRequests", "The daily quota is used up.", "The daily quota of 100 requests is used up. It resets at 2026-11-16T00:00:00Z.", "Retry-After"},
	{500, "InternalError", "An error on our side. Please include `X-Request-Id` when you report it.", "Something went wrong on our side.", ""},
	{503, "Unavailable", "The catalog is temporarily unavailable.", "The catalog cannot be read at the moment.", "Retry-After"},
}

func errorComponents(cfg Config) object {
	var components object
	for _, r := range errorResponses {
		if r.status == 401 {
			r.example = keyRequired(cfg)
		}
		headers := []string{"Access-Control-Allow-Origin", "X-Request-Id"}
		if r.extra != "" {
			headers = append(headers, r.extra)
		}
		components.add(r.name, object{
			{"description", r.description},
			{"headers", headerRefs(headers)},
			{"content", object{{"application/json", object{
				{"schema", object{{"$ref", "#/components/schemas/Error"}}},
				{"example", object{{"error", r.example}}},
			}}}},
		})
	}
	return components
}

var text = object{{"type", "string"}}

var headerComponents = object{
	header("X-Total-Count", "Number of items in the list across all pages.", object{{"type", "integer"}, {"minimum", 0}}, 48),
	header("Link", "URLs of the `first`, `prev`, `next` and `last` page (RFC 8288).", text, `<https://palmares.example/api/v1/tools?page=2>; rel="next"`),
	header("X-Service-Updated-At", "Date of the feed that the response comes from.", object{{"type", "string"}, {"format", "date"}}, "2026-11-10"),
	header("Cache-Control", "How long shared caches may store the response.", text, cacheControl),
	header("ETag", "Identifies the content of the response. Send it back in `If-None-Match`.", text, `"BC_Ut5yv4lIkZdDJ110D"`),
	header("Vary", "Request headers that the response depends on.", text, vary),
	header("Access-Control-Allow-Origin", "Pages of every origin may read the response.", text, "*"),
	header("X-Request-Id", "Identifies the request in our logs.", text, "K3T7Q2QJ6LPYW4BSMWJ5XZ7F2A"),
	header("X-RateLimit-Tier", "Tier of the API key; only on requests with a key.", object{{"type", "string"}, {"enum", []string{"free", "pro"}}}, "free"),
	header("X-RateLimit-Remaining", "Requests left today; only with a key that has a quota.", object{{"type", "integer"}, {"minimum", 0}}, 999),
	header("X-RateLimit-Reset", "When the quota resets, at midnight UTC; only with a key that has a quota.", object{{"type", "string"}, {"format", "date-time"}}, "2026-11-16T00:00:00Z"),
	header("Retry-After", "Seconds to wait before retrying.", object{{"type", "integer"}, {"minimum", 0}}, 5),
	header("WWW-Authenticate", "The authentication scheme to use.", text, "Bearer"),
}

func header(name, description string, schema object, example any) member {
	return member{name, object{{"description", description}, {"schema", schema}, {"example", example}}}
}

func headerRefs(names []string) object {
	var refs object
	for _, name := range names {
		refs.add(name, object{{"$ref", "#/components/headers/" + name}})
	}
	return refs
}
