// Package rest serves the REST API. A path is a row in routes.go and a fixed
// operation in queries/; the response body is cut out of the executor's result.
// Nothing here reads the database.
package rest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/edge"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/transport/headers"
)

// Config describes the service to its callers.
type Config struct {
	PublicURL               string
	ServiceName, ServiceURL string
	Credit                  string // the line to display wherever the data is reused
	Version                 string // the version of the program
}

// Handler serves every path under /api/.
type Handler struct {
	executor     *graph.Executor
	cache        *cache.Cache
	cfg          Config
	paths        []*endpoint // the route table
	json, yaml   *endpoint   // the OpenAPI document at DocumentPath and YAMLPath
	endpoints    []*endpoint // all of them
	slugStatus   *graph.Operation
	exampleSlugs *graph.Operation
	requests     *cache.Table[*request]
	demoDocument []byte // the OpenAPI document with examples from the demo catalog
	Downloads    *Downloads
}

// The paths of the OpenAPI document, in both of its formats.
const (
	DocumentPath = "/api/v1/openapi.json"
	YAMLPath     = "/api/v1/openapi.yaml"
)

const vary = "Authorization, Accept-Encoding"

// NewHandler checks the route table against the schema and returns a handler.
// An error is a mistake in the program.
func NewHandler(cfg Config, executor *graph.Executor, responses *cache.Cache) (*Handler, error) {
	endpoints, operations, err := buildEndpoints()
	if err != nil {
		return nil, err
	}
	document, err := describe(endpoints, cfg, demoSlugs)
	if err != nil {
		return nil, err
	}
	asJSON, asYAML := &endpoint{segments: strings.Split(DocumentPath, "/")},
		&endpoint{segments: strings.Split(YAMLPath, "/")}
	return &Handler{
		executor: executor, cache: responses, cfg: cfg, demoDocument: document,
		paths: endpoints, json: asJSON, yaml: asYAML, endpoints: append(endpoints, asJSON, asYAML),
		slugStatus: operations["slug_status"], exampleSlugs: operations["example_slugs"],
		requests: cache.NewTable[*request](responses, "REST requests"), Downloads: &Downloads{},
	}, nil
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // no path accepts a body: do not wait for one
	}
	err := h.serve(w, r)
	if err != nil && r.Context().Err() == nil {
		w.Header().Set("Vary", vary)
		w.Header().Del(UnknownParametersHeader)
		release := h.cache.Newest()
		if missing := (*missingSlug)(nil); errors.As(err, &missing) {
			release = missing.release
		}
		if release > 0 {
			w.Header()[headers.Release] = []string{strconv.Itoa(release)}
		}
		problem.Write(w, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	req, err := h.parse(r.URL)
	if err != nil {
		return err
	}
	headers.AddDeprecation(w.Header(), req.deprecation) // also for errors
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed; use GET or HEAD.", params.Truncate(r.Method))
	}
	if req.err != nil {
		return req.err
	}
	if req.unknown != nil { // not part of the cached response, which other URLs share
		w.Header()[UnknownParametersHeader] = req.unknown
	}
	switch req.endpoint {
	case h.json:
		return h.serveDocument(w, r, "application/json", func(document []byte) ([]byte, error) { return document, nil })
	case h.yaml:
		return h.serveDocument(w, r, "application/yaml", toYAML)
	}
	if req.isBulk() {
		return h.serveBulk(w, r, req)
	}
	if req.requiresKey && !auth.CallerFrom(r.Context()).MayReadEmbeddings() {
		return problem.New(problem.Unauthenticated, "%s", keyRequired(h.cfg))
	}
	if req.asOf.Release > 0 && auth.CallerFrom(r.Context()).Key != "" {
		req = req.private
	}
	response, err := h.cache.Get(r.Context(), req.cacheKey, req.respond)
	if err != nil {
		return err
	}
	return response.Write(w, r)
}

func keyRequired(cfg Config) string {
	return "This endpoint requires an API key. Create one at " + cfg.PublicURL + "/account."
}

// request is a parsed URL. It is shared between callers: nothing changes it.
type request struct {
	*endpoint
	variables map[string]any // the values of the parameters
	arguments map[string]any // the operation's variables
	asOf      graph.AsOf
	keyed     bool // the caller has a key
	cacheKey  cache.Key
	respond   cache.Execute
	private   *request // the same request for callers with a key, if the responses differ
	unknown   []string // names parameters that the path does not have; nil for none
	err       error    // in the parameters
}

// requestSize approximates the memory of a parsed request without its strings.
const requestSize = 1_000

// parse parses a URL or returns the cached request.
func (h *Handler) parse(u *url.URL) (*request, error) {
	raw := cache.Key{Operation: u.EscapedPath(), Variables: u.RawQuery}
	if known, ok := h.requests.Get(cache.Timeless, raw); ok {
		return known, nil
	}
	e, slug, err := h.find(raw.Operation)
	if err != nil {
		return nil, err
	}
	variables, err := e.read(raw.Variables)
	var asOf graph.AsOf
	if err == nil {
		asOf, err = graph.ReadAsOf(variables)
	}
	if err != nil {
		return &request{endpoint: e, err: err}, nil
	}
	unknown := e.unknownParameters(raw.Variables)
	if e.notFound != nil {
		variables["slug"] = slug
	}
	if selected, _ := variables[formatName].(string); e.format == "" && selected != "" {
		e = e.downloads[selected]
	}
	req := &request{
		endpoint: e, variables: variables, arguments: e.arguments(variables), asOf: asOf, unknown: unknown,
		cacheKey: cache.Key{Operation: e.query, Variables: slug + "?" + params.Canonical(e.inQuery, variables),
			Keyed: e.requiresKey},
	}
	if e.format != "" {
		req.cacheKey.Operation += "." + e.format
	}
	if e.ownDeprecation != nil { // its headers differ from those of other paths with the same operation
		req.cacheKey.Operation += " " + e.path
	}
	req.respond = func(ctx context.Context) (*cache.Entry, int, error) { return h.respond(ctx, req) }
	switch {
	case req.isBulk():
		req.cacheKey.Keyed = true
		req.respond = func(ctx context.Context) (*cache.Entry, int, error) { return h.describeList(ctx, req) }
	case asOf.Release > 0:
		private := *req
		private.keyed, private.cacheKey.Keyed = true, true
		private.respond = func(ctx context.Context) (*cache.Entry, int, error) { return h.respond(ctx, &private) }
		req.private = &private
	}
	h.requests.Put(cache.Timeless, raw, req, requestSize+len(req.cacheKey.Variables)+len(slug))
	return req, nil
}

// respond runs an endpoint's operation and returns the response with the newest
// release at that time.
func (h *Handler) respond(ctx context.Context, req *request) (*cache.Entry, int, error) {
	if slug, ok := req.variables["slug"].(string); ok && req.notFound != nil && len(slug) > params.MaxText {
		return nil, 0, problem.New(problem.NotFound, "%s", req.notFound(params.Truncate(slug), slugStatus{}))
	}
	result := h.executor.Execute(ctx, req.execution())
	if p := result.Problem(); p != nil {
		return nil, 0, p
	}
	if req.notFound != nil && !result.Found() {
		return h.respondNotFound(ctx, req, result.Release)
	}
	return h.newEntry(ctx, req, result), result.Newest, nil
}

func (r *request) execution() graph.Request {
	return graph.Request{Operation: r.operation, Variables: r.arguments, AsOf: r.asOf}
}

// newEntry returns a successful response.
func (h *Handler) newEntry(ctx context.Context, req *request, result *graph.Result) *cache.Entry {
	keyed := req.keyed || req.requiresKey
	header := responseHeader(result, keyed)
	if !keyed {
		header[edge.KeysHeader] = edge.Header(req.edgeKeys(result.Newest)...)
	}
	if req.paginated {
		header["X-Total-Count"] = []string{strconv.Itoa(result.Total)}
		variables := req.variables
		if req.pinned && result.Release > 0 {
			variables = maps.Clone(variables)
			variables[graph.AsOfName] = strconv.Itoa(result.Release)
		}
		header["Link"] = []string{req.links(h.cfg.PublicURL, variables, int64(result.Total))}
	}
	if req.resumable && result.Next != "" {
		header["Link"] = []string{"<" + h.urlWith(req, "after", result.Next) + `>; rel="next"`}
	}
	h.addCommon(header, req, result)
	return cache.NewEntry(result.Body(), header)
}

// addCommon adds the headers that depend on the request, for all kinds of responses.
func (h *Handler) addCommon(header http.Header, req *request, result *graph.Result) {
	if unknown := req.unknownValues(result); unknown != nil {
		header[UnknownValuesHeader] = unknown
	}
	headers.AddAsOf(header, req.asOf, result, func(value any) string { return h.urlWith(req, graph.AsOfName, value) })
	headers.AddDeprecation(header, req.deprecation)
}

// urlWith returns the URL of a request with another value of a parameter, or without
// it for nil.
func (h *Handler) urlWith(req *request, name string, value any) string {
	variables := maps.Clone(req.variables)
	variables[name] = value
	address := h.cfg.PublicURL + req.path
	if slug, ok := req.variables["slug"].(string); ok {
		address = strings.Replace(address, "{slug}", url.PathEscape(slug), 1)
	}
	if query := params.Canonical(req.inQuery, variables); query != "" {
		address += "?" + query
	}
	return address
}

// responseHeader returns the headers of a successful response.
func responseHeader(result *graph.Result, keyed bool) http.Header {
	header := headers.Of(result, "application/json", keyed)
	header["Vary"] = []string{vary}
	return header
}

// links returns the Link header of a page, with absolute URLs of the other pages.
func (e *endpoint) links(publicURL string, variables map[string]any, total int64) string {
	page, limit := variables["page"].(int64), variables["limit"].(int64)
	last := max(1, (total+limit-1)/limit)
	others := maps.Clone(variables)
	delete(others, "page")
	query := params.Canonical(e.inQuery, others)
	if query != "" {
		query = "&" + query
	}
	link := func(rel string, page int64) string {
		return "<" + publicURL + e.path + "?page=" + strconv.FormatInt(page, 10) + query + `>; rel="` + rel + `"`
	}
	links := []string{link("first", 1)}
	if page > 1 {
		links = append(links, link("prev", min(page-1, last)))
	}
	if page < last {
		links = append(links, link("next", page+1))
	}
	return strings.Join(append(links, link("last", last)), ", ")
}

// notFoundMessage explains why nothing has a slug.
type notFoundMessage func(slug string, status slugStatus) string

// slugStatus says whether a slug is that of an active or a retired tool, and which slug
// is most similar; "" for none.
type slugStatus struct {
	active, retired bool
	nearest         string
}

// suggest ends a sentence with the most similar slug.
func (s slugStatus) suggest() string {
	if s.nearest == "" {
		return "."
	}
	return "; did you mean " + s.nearest + "?"
}

func versionsNotFound(slug string, status slugStatus) string {
	return "No release has a tool with the slug " + slug + status.suggest()
}

func toolNotFound(slug string, status slugStatus) string {
	if status.retired {
		return "The tool " + slug + " is retired; see /api/v1/cimetiere for the reason."
	}
	return "No tool has the slug " + slug + status.suggest()
}

func comparisonNotFound(slug string, status slugStatus) string {
	return "No published comparison has the slug " + slug + status.suggest()
}

func embeddingsNotFound(slug string, status slugStatus) string {
	if status.active {
		return "The tool " + slug + " has no embeddings: they are available only for the top tools, at most 300."
	}
	return toolNotFound(slug, status)
}

// names finds the slugs that are most similar to others.
type names interface {
	NearestTool(slug string) string
	NearestComparison(slug string) string
}

// respondNotFound looks up the reason. If a new release was published since
// the first query, it may contain the slug: then the request is retried.
func (h *Handler) respondNotFound(ctx context.Context, req *request, release int) (*cache.Entry, int, error) {
	slug := req.variables["slug"].(string)
	result := h.executor.Execute(ctx, graph.Request{Operation: h.slugStatus, Variables: map[string]any{"slug": slug},
		AsOf: req.asOf})
	var found struct{ Tool, Retired *struct{} }
	if err := result.Decode(&found); err != nil {
		return nil, 0, err
	}
	if result.Release != release {
		return h.respond(ctx, req)
	}
	status := slugStatus{active: found.Tool != nil, retired: found.Retired != nil}
	isUnknown := !status.active && !status.retired
	if isUnknown {
		if in, err := h.executor.Release(ctx, req.asOf); err == nil && in.Number() == release {
			status.nearest = req.nearest(in, slug)
		}
	}
	message := req.notFound(params.Truncate(slug), status)
	return nil, result.Newest, &missingSlug{release, problem.New(problem.NotFound, "%s", message)}
}

// missingSlug is the error for a slug that does not exist in a release.
type missingSlug struct {
	release int
	error
}

func (m *missingSlug) Unwrap() error { return m.error }

// serveDocument serves the OpenAPI document with examples from the current
// catalog, or from the demo catalog if that cannot be read.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, contentType string,
	format func([]byte) ([]byte, error)) error {
	entryOf := func(document []byte, result *graph.Result) (*cache.Entry, error) {
		body, err := format(document)
		header := responseHeader(result, false)
		header["Content-Type"] = []string{contentType}
		return cache.NewEntry(body, header), err
	}
	response, err := h.cache.Get(r.Context(), cache.Key{Operation: "openapi", Variables: contentType},
		func(ctx context.Context) (*cache.Entry, int, error) {
			slugs, result, err := h.findExamples(ctx)
			if err != nil {
				return nil, 0, err
			}
			document, err := describe(h.paths, h.cfg, slugs)
			if err != nil {
				return nil, 0, err
			}
			entry, err := entryOf(document, result)
			return entry, result.Release, err
		})
	if err != nil {
		entry, err := entryOf(h.demoDocument, &graph.Result{})
		if err != nil {
			return err
		}
		return entry.Write(w, r)
	}
	return response.Write(w, r)
}
