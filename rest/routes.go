package rest

import (
	"embed"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const maxListed = 200 // values of a parameter

// routes lists every path. To add one, add a row here and its operation in
// queries/, then run `go test ./rest -run 'Golden|OpenAPI' -update`.
var routes = []route{
	{path: "/api/v1/tools", query: "tools", id: "listTools", bulk: true, dependsOn: itsCategory,
		summary: "Tools",
		details: "Active tools, paginated. Retired tools are listed at `/api/v1/cimetiere`.",
		parameters: slices.Concat(paging, []Parameter{slugs, domain, pricingModel, icp, scoreMin, priceMax, updatedSince,
			obsolescenceMax, search, language, sort})},
	{path: "/api/v1/tools/{slug}", query: "tool", id: "getTool", dependsOn: itsTool,
		summary:    "One tool",
		details:    "The same fields as in the list of tools. Retired tools return 404 with an error that says so.",
		parameters: []Parameter{slug}, example: anyTool, notFound: toolNotFound, nearest: names.NearestTool},
	{path: "/api/v1/tools/{slug}/versions", query: "versions", id: "listToolVersions", dependsOn: itsTool,
		summary: "The versions of one tool, newest first",
		details: "Each version with its first and last release and the fields that changed, up to the newest 200. " +
			"Includes tools that have since been retired.",
		parameters: []Parameter{slug}, example: anyTool, notFound: versionsNotFound, nearest: names.NearestTool},
	{path: "/api/v1/comparatifs", query: "comparatifs", id: "listComparisons", bulk: true,
		summary: "Published comparisons, newest first",
		details: "Published head-to-head comparisons, paginated. `category` selects comparisons in which at least " +
			"one tool belongs to the category.",
		parameters: slices.Concat(paging, []Parameter{comparisonSlugs, comparedDomain})},
	{path: "/api/v1/comparatifs/{slug}", query: "comparatif", id: "getComparison",
		summary:    "One comparison, with the scores of both tools",
		details:    "The scores of both tools, the winner, and why it won. Either tool may be retired.",
		parameters: []Parameter{slug}, example: anyComparison, notFound: comparisonNotFound,
		nearest: names.NearestComparison},
	{path: "/api/v1/pricing", query: "prices", id: "listPrices", bulk: true, dependsOn: itsCategory,
		summary:    "Current prices in euros, sorted by tool name",
		details:    "The current price of every active tool, paginated.",
		parameters: slices.Concat(paging, []Parameter{slugs, domain})},
	{path: "/api/v1/pricing/{slug}", query: "price", id: "getPrice", dependsOn: itsTool,
		summary:    "One tool's price and price history",
		details:    "The current price and every recorded price change, newest first.",
		parameters: []Parameter{slug}, example: toolWithPriceHistory, notFound: toolNotFound, nearest: names.NearestTool},
	{path: "/api/v1/cimetiere", query: "retired", id: "listRetiredTools", bulk: true,
		summary: "Retired tools, most recently retired first",
		details: "Tools that were shut down, acquired, deprecated or absorbed, or that changed direction, paginated. " +
			"`category` is the category a tool belonged to.",
		parameters: slices.Concat(paging, []Parameter{reason})},
	{path: "/api/v1/categories", query: "categories", id: "listCategories", bulk: true,
		summary: "Every category, sorted by slug",
		details: "Includes categories without tools; their average score is 0."},
	{path: "/api/v1/stats", query: "stats", id: "getStatistics",
		summary: "Global statistics",
		details: "Counts and averages over the whole catalog."},
	{path: "/api/v1/changes", query: "changes", id: "listChanges",
		summary: "Changes to the catalog, oldest first",
		details: "The change journal: the same event objects as webhooks deliver, with JSON Schemas at " +
			"`/schemas/events/<type>.json`. To follow the catalog, store `next` and pass it as `after`: no event is missed " +
			"or returned twice. A page may have fewer than `limit` events if they are large; you have read everything when " +
			"`data` is empty.",
		parameters: []Parameter{after, types, changeCategory, changedSlug, since, until, pageSize}},
	{path: "/api/embeddings", query: "embeddings_sync", id: "listEmbeddings",
		summary: "Reviews as text chunks, to fill a vector index and keep it in sync",
		details: "All embeddings documents, sorted by slug; with `sync`, only what changed since: documents to store " +
			"in place of their previous versions, and `{\"slug\", \"deleted\": true, \"reason\"}` for those to delete. " +
			"`next_sync` is on the last page; store it, and pass it as `sync` next time. Follow `Link: rel=\"next\"` from " +
			"page to page: the links read the same release, even if a new one is published in the meantime.",
		parameters: []Parameter{paging[0], syncPageSize, documentCategory, syncToken}, requiresKey: true, pinned: true},
	{path: "/api/embeddings/{slug}", query: "embeddings", id: "getEmbeddings",
		summary: "One tool's review as text chunks for retrieval",
		details: "Text chunks for you to embed with your own model. `hash` changes whenever a chunk changes. " +
			"Available for the top tools, at most 300.",
		parameters: []Parameter{slug}, example: toolWithEmbeddings, notFound: embeddingsNotFound,
		nearest: names.NearestTool, requiresKey: true},
}

var (
	slug = Parameter{Param: params.Param{Name: "slug"}, Description: "Unique identifier.", InPath: true}

	paging = []Parameter{
		{Param: params.Param{Name: "page", Min: 1, Max: 1_000_000, NoDefaultWith: formatName},
			Description: "Page number, starting at 1. Pages after the last one are empty."},
		pageSize,
		{Param: params.Param{Name: "category"}, Description: "Slug of a category. Returns only items in it; an unknown " +
			"category returns an empty list."},
	}

	slugs = Parameter{Param: params.Param{Name: "slugs", List: true, Max: maxListed}, Description: "Slugs of tools, " +
		"at most 200, separated by commas. Returns only these; slugs that no active tool has are named in " +
		"`X-Unknown-Values`."}
	domain = Parameter{Param: params.Param{Name: "domain", List: true, Max: maxListed}, Description: "Domains of " +
		"tools' websites, such as `plume.example`, or their web addresses: at most 200, separated by commas. Returns " +
		"only the tools with one of them."}
	comparisonSlugs = Parameter{Param: slugs.Param, Description: "Slugs of comparisons, at most 200, separated by " +
		"commas. Returns only these; unknown slugs are named in `X-Unknown-Values`."}
	comparedDomain = Parameter{Param: domain.Param, Description: "Domains of tools' websites, such as " +
		"`plume.example`, or their web addresses: at most 200, separated by commas. Returns only comparisons that " +
		"include a tool with one of them."}
	pricingModel = Parameter{Param: params.Param{Name: "pricing"}, Description: "Returns only tools with this " +
		"pricing model."}
	icp = Parameter{Param: params.Param{Name: "icp"}, Description: "Returns only tools made for this " +
		"audience.", separator: "-"}
	priceMax = Parameter{Param: params.Param{Name: "price_max"}, Description: "Maximum price in euros per " +
		"month. Yearly prices are divided by 12, and free tools cost 0. Excludes tools with other billing periods, such " +
		"as hours or uses."}
	updatedSince = Parameter{Param: params.Param{Name: "updated_since"}, Description: "Returns only tools updated " +
		"on or after this day."}
	scoreMin = Parameter{Param: params.Param{Name: "score_min"}, Description: "Minimum score. Excludes tools " +
		"without a score."}
	obsolescenceMax = Parameter{Param: params.Param{Name: "obsolescence_max"}, Description: "Maximum obsolescence, " +
		"from 0 (current) to 10 (obsolete). Excludes tools without a rating."}
	search = Parameter{Param: params.Param{Name: "search", Max: 200}, Description: "Words, in any order, " +
		"ignoring case and accents: each must be the start of a word in the name, domain, category, tagline or review, in French or " +
		"English. If no tool matches, words of 5 letters or more may contain a typo. At most 16 different words."}
	language = Parameter{Param: params.Param{Name: "language"}, Description: "The language whose matches come first " +
		"in a search, `fr` or `en`. By default, both count alike."}
	sort = Parameter{Param: params.Param{Name: "sort", Values: []string{"score_desc", "score_asc", "name_asc",
		"name_desc"}, NoDefaultWith: "search"},
		Description: "Sort order. Tools without a score come last in both score orders; ties are sorted by slug. With " +
			"`search`, the best matches come first unless `sort` is given."}
	asOf = Parameter{Param: graph.AsOfParam,
		pattern: `^([1-9][0-9]{0,8}|[0-9]{4}-[0-9]{2}-[0-9]{2})$`, Description: "Reads an earlier release: its number, " +
			"or a day (`YYYY-MM-DD`) for the newest release whose feed is dated on or before it."}
	reason = Parameter{Param: params.Param{Name: "reason"}, Description: "Returns only tools retired for this reason."}

	pageSize = Parameter{Param: params.Param{Name: "limit", Min: 1, Max: 200, NoDefaultWith: formatName},
		Description: "Number of items per page."}
	after = Parameter{Param: params.Param{Name: "after", Form: "an event ID, such as evt_42"},
		Description: "Returns only events after this one: `next` of an earlier response, or an event ID.",
		pattern:     `^evt_[1-9][0-9]{0,17}$`}
	types = Parameter{Param: params.Param{Name: "types", List: true},
		Description: "Returns only events of these types, separated by commas. The parameter may also be repeated.",
		separator:   "."}
	changeCategory = Parameter{Param: params.Param{Name: "category"}, Description: "Slug of a category. Returns " +
		"only events about its tools; a tool that moved matches both categories, and a comparison those of both tools."}
	changedSlug = Parameter{Param: params.Param{Name: "slug"}, Description: "Returns only events about the tool " +
		"or comparison with this slug."}
	syncPageSize = Parameter{Param: params.Param{Name: "limit", Min: 1, Max: 100},
		Description: "Number of documents per page."}
	documentCategory = Parameter{Param: params.Param{Name: "category"}, Description: "Slug of a category. Returns " +
		"only documents of its tools; an unknown category returns an empty list."}
	syncToken = Parameter{Param: params.Param{Name: "sync"}, Description: "`next_sync` of an earlier response " +
		"with the same `category`. Returns only what changed since then. If its release is no longer available, the " +
		"response is 410: read the whole set again.", pattern: `^[A-Za-z0-9_-]{24,600}$`}
	since = Parameter{Param: params.Param{Name: "since"}, Description: "Returns only events published on " +
		"or after this day (UTC)."}
	until = Parameter{Param: params.Param{Name: "until"}, Description: "Returns only events published before " +
		"this day (UTC)."}
)

// route is one path and the operation that it runs.
type route struct {
	path        string
	query       string // name of the operation in queries/
	id          string // operationId in the OpenAPI document, which generated clients turn into a method
	summary     string
	details     string
	parameters  []Parameter
	example     string // the slug that the documentation uses: a key of exampleSlugs
	notFound    notFoundMessage
	nearest     func(in names, slug string) string // finds the slug to suggest instead
	requiresKey bool
	deprecated  string // day of the deprecation (YYYY-MM-DD), or ""
	sunset      string // day of the removal, or ""
	bulk        bool   // the whole list can be downloaded, at the path with .csv and .ndjson
	dependsOn   scope  // what can change its responses
	pinned      bool   // its links to other pages select the release
}

//go:embed queries/*.graphql
var queries embed.FS

// endpoint is a route joined with its operation.
type endpoint struct {
	route
	segments  []string
	inQuery   []params.Param // the parameters in the query string
	operation *graph.Operation
	paginated bool                 // by page number
	resumable bool                 // by cursor
	columns   []string             // of a list that can be downloaded
	format    string               // of a download; "" for JSON
	downloads map[string]*endpoint // the downloads of the same list, by format
	saved     *Query               // the saved query that it serves; nil for a route
	// ownDeprecation is the deprecation of the path itself; deprecation also takes the
	// selected fields into account.
	ownDeprecation, deprecation *document.Deprecation
}

// buildEndpoints checks the route table against the operations: a mistake is
// an error at start-up.
func buildEndpoints() ([]*endpoint, map[string]*graph.Operation, error) {
	operations, err := graph.LoadOperations(queries)
	if err != nil {
		return nil, nil, err
	}
	var endpoints []*endpoint
	for _, r := range routes {
		operation := operations[r.query]
		if operation == nil {
			return nil, nil, fmt.Errorf("%s: no operation %q in queries/", r.path, r.query)
		}
		e := &endpoint{route: r, segments: strings.Split(r.path, "/"), operation: operation}
		variables := operation.Definition().VariableDefinitions
		if len(r.parameters) != len(variables) {
			return nil, nil, fmt.Errorf("%s: got %d parameters, want one for each of the operation's %d "+
				"variables", r.path, len(r.parameters), len(variables))
		}
		e.parameters = nil
		for _, p := range r.parameters {
			variable := variables.ForName(p.Name)
			if variable == nil {
				return nil, nil, fmt.Errorf("%s: the operation has no variable $%s", r.path, p.Name)
			}
			e.parameters = append(e.parameters, p.typed(variable))
			e.paginated = e.paginated || p.Name == "page"
			e.resumable = e.resumable || p.Name == "after"
		}
		if r.id == "" || slices.ContainsFunc(endpoints, func(other *endpoint) bool { return other.id == r.id }) {
			return nil, nil, fmt.Errorf("%s: got operation ID %q, want a unique one", r.path, r.id)
		}
		if e.ownDeprecation, err = document.ParseDeprecation(r.deprecated, r.sunset); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.path, err)
		}
		e.deprecation = e.ownDeprecation.Earliest(operation.Deprecation())
		e.parameters = append(e.parameters, asOf)
		endpoints = append(endpoints, e)
		if r.bulk {
			if e.columns = columnsOf(operation.Definition().SelectionSet); len(e.columns) == 0 {
				return nil, nil, fmt.Errorf("%s: the operation has no list named data", r.path)
			}
			endpoints = append(endpoints, e.addDownloads()...)
		}
	}
	for _, e := range endpoints {
		for _, p := range e.parameters {
			if !p.InPath {
				e.inQuery = append(e.inQuery, p.Param)
			}
		}
	}
	return endpoints, operations, nil
}

// documented returns the parameters that the documentation describes.
func (e *endpoint) documented() []Parameter {
	return slices.DeleteFunc(slices.Clone(e.parameters), func(p Parameter) bool { return p.hidden })
}

// Paths returns the path templates of all routes that anyone may call, and of those that
// require a key.
func Paths() (open, keyed []string) {
	for _, r := range routes {
		if r.requiresKey {
			keyed = append(keyed, r.path)
			continue
		}
		open = append(open, r.path)
		for _, format := range formats {
			if r.bulk {
				keyed = append(keyed, r.path+"."+format)
			}
		}
	}
	return open, keyed
}

// find returns the endpoint of an escaped path and the slug in it. Segments are
// unescaped separately, so that a slug may contain an escaped slash.
func (h *Handler) find(path string) (*endpoint, string, error) {
	segments := strings.Split(path, "/")
	for i := range segments {
		text, err := url.PathUnescape(segments[i])
		if err != nil || !params.IsText(text) {
			return nil, "", problem.New(problem.BadInput, "The path contains a NUL character or invalid UTF-8.")
		}
		segments[i] = text
	}
	for _, e := range h.endpoints {
		if slug, ok := e.match(segments); ok {
			return e, slug, nil
		}
	}
	return nil, "", problem.New(problem.NotFound, "There is no such path. See %s for the list of paths.", DocumentPath)
}

func (e *endpoint) match(segments []string) (slug string, ok bool) {
	if len(segments) != len(e.segments) {
		return "", false
	}
	for i, segment := range e.segments {
		switch {
		case segment == "{slug}" && segments[i] != "":
			slug = segments[i]
		case segment != segments[i]:
			return "", false
		}
	}
	return slug, true
}

// Parameter is a path or query parameter, and the operation's variable of the
// same name. Its type and default come from the operation.
type Parameter struct {
	params.Param
	Description string
	pattern     string // constrains a string; without a Form, it is only documented
	InPath      bool
	hidden      bool   // accepted, but not documented
	csvOnly     bool   // for downloads as CSV
	separator   string // what its values have where those of the enum have underscores; "" for underscores
}

// typed adds the type and default of the operation's variable.
func (p Parameter) typed(variable *ast.VariableDefinition) Parameter {
	declared := params.FromVariable(variable)
	p.Kind, p.Default, p.Required = declared.Kind, declared.Default, declared.Required
	if p.Values == nil {
		p.Values = declared.Values
	}
	if p.separator != "" {
		for i, value := range p.Values {
			p.Values[i] = strings.ReplaceAll(value, "_", p.separator)
		}
	}
	if p.Form != "" {
		p.Pattern = regexp.MustCompile(p.pattern)
	}
	return p
}

// arguments returns the operation's variables for the values of parameters.
func (e *endpoint) arguments(values map[string]any) map[string]any {
	variables := maps.Clone(values)
	for _, name := range []string{graph.AsOfName, formatName, dialectName} {
		delete(variables, name)
	}
	for _, p := range e.parameters {
		if _, given := values[p.Name]; !given && p.Default != nil && p.DefaultWith(values) == nil &&
			!e.operation.Definition().VariableDefinitions.ForName(p.Name).Type.NonNull {
			variables[p.Name] = nil // otherwise the operation's own default would apply
		}
		switch value := values[p.Name].(type) {
		case string:
			if p.separator != "" {
				variables[p.Name] = p.enumValue(value)
			}
		case []string:
			items := make([]any, len(value))
			for i, item := range value {
				items[i] = p.enumValue(item)
			}
			variables[p.Name] = items
		}
	}
	return variables
}

// enumValue returns a value as the enum spells it.
func (p Parameter) enumValue(value string) string {
	if p.separator == "" {
		return value
	}
	return strings.ReplaceAll(value, p.separator, "_")
}

// read converts a query string to the values of the parameters, including defaults.
func (e *endpoint) read(rawQuery string) (map[string]any, error) {
	values, err := params.Read(rawQuery, e.inQuery)
	if err == nil {
		err = e.checkFormat(values)
	}
	if err != nil {
		return nil, err
	}
	if e.format != "" {
		values[formatName] = e.format
	}
	for _, p := range e.inQuery {
		if _, given := values[p.Name]; !given && p.DefaultWith(values) != nil {
			values[p.Name] = p.Default
		}
	}
	return values, nil
}
