package rest

import (
	"bytes"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/table"
	"palmares/internal/transport/headers"
)

//go:embed examples
var embeddedExamples embed.FS

// componentsFile contains the components that do not depend on the route table. The
// errors in it are actual messages. If-None-Match has no example, because API
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

// Query is a query that is served at its own path. Its parameters have the names of
// the operation's variables.
type Query struct {
	Path, ID, Summary, Details string
	Parameters                 []Parameter
	Operation                  *graph.Operation
	// Body lists the fields from the root of the result down to the response body; it
	// is empty if the body is the whole result.
	Body []*ast.Field
	// Columns are those of the path with .csv and .ndjson; none if it returns no table.
	Columns []table.Field
}

// DescribeQueries returns an OpenAPI document of queries, like that of the REST
// API. Fragments are not components, because each query has its own.
func DescribeQueries(cfg Config, title, description string, queries []Query) ([]byte, error) {
	var endpoints []*endpoint
	for _, q := range queries {
		e := &endpoint{
			route: route{path: q.Path, id: q.ID, summary: q.Summary, details: q.Details,
				requiresKey: q.Operation.RequiresKey(), pinned: true},
			segments: strings.Split(q.Path, "/"), operation: q.Operation, deprecation: q.Operation.Deprecation(), saved: &q,
		}
		for _, p := range q.Parameters {
			p.hidden, p.csvOnly = p.Name == formatName, p.Name == dialectName
			e.parameters = append(e.parameters, p)
		}
		e.parameters = append(e.parameters, asOf)
		endpoints = append(endpoints, e)
		for _, format := range formats {
			if len(q.Columns) > 0 {
				endpoints = append(endpoints, e.inFormat(format))
			}
		}
		for i, p := range e.parameters {
			e.parameters[i].hidden = p.hidden || p.csvOnly
		}
	}
	return describeAs(title, description, endpoints, cfg, nil)
}

// inFormat returns the endpoint of a saved query in another format, for the document.
func (e *endpoint) inFormat(format string) *endpoint {
	d := *e
	d.format, d.path, d.id = format, e.path+"."+format, e.id+"-"+format
	d.summary = e.summary + ", as " + strings.ToUpper(format)
	d.parameters = slices.Clone(e.parameters)
	for i, p := range d.parameters {
		d.parameters[i].hidden = p.hidden || p.csvOnly && format != table.CSV
	}
	return &d
}

func describe(endpoints []*endpoint, cfg Config, slugs exampleSlugs) ([]byte, error) {
	return describeAs(cfg.ServiceName, introduction(cfg), endpoints, cfg, slugs)
}

func describeAs(title, description string, endpoints []*endpoint, cfg Config, slugs exampleSlugs) ([]byte, error) {
	fill := strings.NewReplacer("{{cacheControl}}", headers.CacheControl, "{{vary}}", vary, "{{keyRequired}}",
		keyRequired(cfg))
	var components map[string]jsontext.Value
	if err := json.Unmarshal([]byte(fill.Replace(componentsFile)), &components); err != nil {
		return nil, err
	}
	schemas := &schemas{model: graph.Schema(), inline: len(endpoints) == 0 || endpoints[0].saved != nil}
	var paths object
	var tags []object
	described := map[string]bool{}
	for _, e := range endpoints {
		paths.add(e.path, object{{"get", e.describe(schemas, cfg.PublicURL, slugs)}})
		if tag := e.tag(); !described[tag] {
			described[tag] = true
			description := e.summary + "."
			if e.saved != nil {
				description = "Saved queries of " + tag + "."
			}
			tags = append(tags, object{{"name", tag}, {"description", description}})
		}
	}
	shared := object{
		{"schemas", append(schemas.components, member{"Error", components["Error"]})},
		{"parameters", membersOf(components["parameters"])},
		{"headers", membersOf(components["headers"])},
		{"responses", membersOf(components["responses"])},
	}
	if err := dropUnused(paths, shared); err != nil {
		return nil, err
	}
	document := object{
		{"openapi", "3.0.3"},
		{"info", object{
			{"title", title},
			{"version", "1.0.0"},
			{"description", description},
			{"contact", object{{"name", cfg.ServiceName}, {"url", cfg.ServiceURL}}},
			{"license", object{{"name", "Free to reuse with the credit line"}, {"url", cfg.ServiceURL}}},
		}},
		{"servers", []object{{{"url", cfg.PublicURL}, {"description", "This server."}}}},
		{"tags", tags},
		{"security", []object{{}, apiKey}},
		{"paths", paths},
		{"components", append(shared, member{"securitySchemes", components["securitySchemes"]})},
		{"x-credit", cfg.Credit},
	}
	return json.Marshal(document, jsontext.WithIndent("  "))
}

// dropUnused removes the components that nothing refers to. Documents of saved queries
// do not use all of them.
func dropUnused(paths, components object) error {
	for dropped := true; dropped; { // what only dropped components refer to is unused too
		text, err := json.Marshal([]object{paths, components})
		if err != nil {
			return err
		}
		dropped = false
		for i, kind := range components {
			all := kind.value.(object)
			used := slices.DeleteFunc(slices.Clone(all), func(m member) bool {
				return !bytes.Contains(text, []byte(`"#/components/`+kind.name+"/"+m.name+`"`))
			})
			components[i].value, dropped = used, dropped || len(used) < len(all)
		}
	}
	return nil
}

func introduction(cfg Config) string {
	return strings.Join([]string{
		"A read-only catalog of tested AI tools: scores, head-to-head comparisons, prices in euros with their history, " +
			"retired tools, categories, statistics, and review texts ready for retrieval.",
		"The data is free to reuse, provided that you show the credit line `" + cfg.Credit + "`.",
		"Every path supports GET and HEAD, and CORS is open to all origins. Without an API key, each IP address may " +
			"send 100 requests per day. With a key, an account on the Developer plan may send 1,000 requests per day " +
			"across all of its keys; the Pro plan is unlimited.",
		"Every response comes from a single release of the catalog. It carries a strong `ETag`; send it back in " +
			"`If-None-Match` to get a 304, which does not count against your quota.",
		"`x-graphql` contains the GraphQL operation behind a path. Post it to `/graphql`, with more or fewer fields, to " +
			"get exactly the data you need.",
	}, "\n\n")
}

var apiKey = object{{"apiKey", []string{}}}

// tag returns the OpenAPI tag, which groups paths by resource.
func (e *endpoint) tag() string {
	if e.segments[2] == "v1" {
		return strings.TrimSuffix(e.segments[3], "."+e.format)
	}
	return e.segments[2]
}

func (e *endpoint) describe(s *schemas, publicURL string, slugs exampleSlugs) object {
	details := e.details
	if sentence := e.ownDeprecation.String(); sentence != "" {
		details = "**" + sentence + "** " + details
	}
	body := func() object { return s.body(e.operation) }
	switch {
	case e.format != "":
		body = func() object { return e.table() }
	case e.saved == nil:
		details += "\n\n[Open in the GraphQL explorer](" + publicURL + ExplorerPath(e.examplePath(slugs)) + ")"
	default:
		body = func() object { return s.bodyAt(e.operation, e.saved.Body) }
	}
	operation := object{
		{"operationId", e.id},
		{"summary", e.summary},
		{"description", details},
		{"tags", []string{e.tag()}},
	}
	if e.ownDeprecation != nil {
		operation.add("deprecated", true)
		if e.sunset != "" {
			operation.add("x-sunset", e.sunset)
		}
	}
	if e.requiresKey {
		operation.add("security", []object{apiKey})
	}
	parameters, variables := []object{}, object{}
	for _, p := range e.documented() {
		parameters = append(parameters, p.describe(s, slugs[e.example]))
		switch {
		case p.InPath:
			variables.add(p.Name, slugs[e.example])
		case p.Name == "limit":
			variables.add(p.Name, 2) // keeps example responses short
		case p.Default != nil:
			variables.add(p.Name, p.Default)
		}
	}
	operation.add("parameters", append(parameters, object{{"$ref", "#/components/parameters/If-None-Match"}}))
	operation.add("responses", e.describeResponses(body()))
	if e.format == "" {
		operation.add("x-graphql", object{{"query", e.operation.Text}, {"variables", variables}})
	}
	return operation
}

func (e *endpoint) describeResponses(body object) object {
	headers := []string{"X-Service-Release", "X-Service-Updated-At", "Cache-Control", "ETag", "Vary",
		"Access-Control-Allow-Origin", "X-Request-Id",
		"X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy", "Cache-Status"}
	if e.paginated || e.format != "" && e.saved == nil {
		headers = append([]string{"X-Total-Count"}, headers...)
	}
	var described object
	headers = append(headers, "Link", "Memento-Datetime", "Content-Location")
	if e.saved == nil {
		headers = append(headers, UnknownParametersHeader)
		if slices.ContainsFunc(e.parameters, func(p Parameter) bool { return p.Name == categoryName }) {
			headers = append(headers, UnknownValuesHeader)
		}
	}
	for _, name := range headers {
		described.add(name, object{{"$ref", "#/components/headers/" + name}})
	}
	if e.deprecation != nil { // a component that no path uses would be a mistake
		described.add("Deprecation", object{{"description", "The date since which the path, or a field of the response, " +
			"is deprecated (RFC 9745)."}, {"schema", object{{"type", "string"}}}})
	}
	if e.deprecation != nil && !e.deprecation.Sunset.IsZero() {
		described.add("Sunset", object{{"description", "When it will be removed (RFC 8594)."}, {"schema", object{{"type", "string"}}}})
	}
	content, mediaType := object{{"schema", body}}, "application/json"
	if e.format != "" {
		mediaType, _, _ = strings.Cut(table.ContentTypes[e.format], ";")
	} else if example, err := fs.ReadFile(examples,
		"examples/"+e.query+".json"); err == nil { // tests fail if it is missing
		content.add("example", jsontext.Value(example))
	}
	responses := object{
		{"200", object{
			{"description", strings.TrimSuffix(e.summary, ".") + "."},
			{"headers", described},
			{"content", object{{mediaType, content}}},
		}},
		{"304", object{
			{"description", "The response identified by `If-None-Match` is still current."},
			{"headers", described},
		}},
	}
	for _, r := range errorResponses {
		if r.status == "410" && !e.pinned {
			continue
		}
		responses.add(r.status, object{{"$ref", "#/components/responses/" + r.name}})
	}
	return responses
}

// table returns the schema of a download.
func (e *endpoint) table() object {
	description := "One JSON object per line."
	if e.format == table.CSV {
		description = "A header row, and then a row for each item. `null` is an empty cell. Strings that a spreadsheet " +
			"would run as a formula are prefixed with an apostrophe."
	}
	if e.format == table.CSV && len(e.columns) > 0 { // NDJSON has the fields of the JSON list
		description += " The columns are " + quoted(e.columns) + "."
	}
	schema := object{{"type", "string"}, {"description", description}}
	if e.saved != nil && e.format == table.CSV {
		schema.add("x-table-schema", object{{"fields", e.saved.Columns}})
	}
	return schema
}

func (p Parameter) describe(s *schemas, exampleSlug string) object {
	described := object{{"name", p.Name}, {"in", "query"}, {"description", p.Description}}
	if p.InPath {
		described = object{{"name", p.Name}, {"in", "path"}, {"description", p.Description}, {"required", true},
			{"example", exampleSlug}}
	}
	if p.Required && !p.InPath {
		described.add("required", true)
	}
	var schema object
	switch {
	case p.Repeats:
		item := p
		item.Repeats, item.Required, item.Default = false, false, nil
		items, _ := item.describe(s, "").member("schema").(object)
		schema = object{{"type", "array"}, {"items", items}}
	case p.List && p.Values == nil:
		items := object{{"type", "string"}, {"minLength", 1}}
		schema = object{{"type", "array"}, {"items", items}, {"minItems", 1}, {"maxItems", p.Max}}
		described.add("explode", false)
	case p.List:
		schema = object{{"type", "array"}, {"items", object{{"type", "string"}, {"enum", p.Values}}}, {"minItems", 1}}
		described.add("explode", false)
	case p.Values != nil && p.Kind == "String":
		// Not an enum: the reference fills in the first value of one.
		schema = object{{"type", "string"}, {"pattern", "^(" + strings.Join(p.Values, "|") + ")$"}}
	case p.Values != nil && s.inline: // each query has its own default
		schema = object{{"type", "string"}, {"enum", p.Values}}
	case p.Values != nil:
		described.add("schema", s.enum(p.Kind, p.Values, p.Default))
		return described
	case p.Kind == "Int":
		schema = append(scalar(p.Kind), object{{"minimum", p.Min}, {"maximum", p.Max}}...)
	case p.Relative:
		schema = object{{"type", "string"}, {"pattern", `^(\d{4}-\d{2}-\d{2}|` + params.RelativeDates + `)$`}}
	case p.Kind == "Boolean" || p.Kind == "Float" || p.Kind == "Date":
		schema = scalar(p.Kind)
	case p.pattern != "":
		schema = object{{"type", "string"}, {"pattern", p.pattern}}
	default:
		schema = object{{"type", "string"}, {"minLength", 1}}
		if p.Max > 0 && !s.inline {
			schema.add("maxLength", p.Max)
		}
	}
	if p.Default != nil {
		schema.add("default", p.Default)
	}
	described.add("schema", schema)
	return described
}

// errorResponses lists the errors of every path. All of them may return 404 for a
// release. Only saved queries and paths that read changes since a release return
// 410.
var errorResponses = []struct{ status, name string }{
	{"400", "BadRequest"}, {"401", "Unauthorized"}, {"404", "NotFound"}, {"410", "Gone"}, {"406", "NotAcceptable"},
	{"429", "TooManyRequests"}, {"500", "InternalError"}, {"503", "Unavailable"},
}
