package main

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/graph"
	"palmares/internal/account/billing"
	"palmares/internal/account/portal"
	"palmares/internal/catalog/journal"
	"palmares/internal/notify/atom"
	"palmares/internal/ops/metrics"
	"palmares/internal/transport/mcp"
	"palmares/internal/web/guide"
	"palmares/internal/web/page"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/internal/web/workbench"
	"palmares/rest"
)

// routes dispatches requests to the handlers of the program.
type routes struct {
	mux *http.ServeMux
	api *rest.Handler
}

// ServeHTTP passes API paths to the REST handler unchanged: the mux would
// redirect unclean ones with a response that is not JSON.
func (r *routes) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if inAPI(request.URL.Path) {
		r.api.ServeHTTP(w, request)
		return
	}
	r.mux.ServeHTTP(w, request)
}

func inAPI(path string) bool { return path == "/api" || strings.HasPrefix(path, "/api/") }

// label returns the pattern that a request matches, for metrics and traces. All
// unknown paths share one label.
func (r *routes) label(request *http.Request) string {
	_, pattern := r.mux.Handler(request)
	if _, path, hasMethod := strings.Cut(pattern, " "); hasMethod {
		pattern = path
	}
	switch pattern {
	case "", "/": // the site's page for unknown paths
		return metrics.Other
	case "/{$}":
		return "/"
	}
	return pattern
}

// routes registers every handler of the program.
func (p *program) routes() (*routes, error) {
	s := p.settings
	api, err := rest.NewHandler(s.rest(), p.executor, p.cache)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(rest.DocumentPath, api)
	mux.Handle(rest.YAMLPath, api)
	for _, operation := range api.Operations() {
		mux.Handle(operation.Path, api)
	}
	p.graphql = graph.NewHandler(p.executor, p.cache)
	p.graphql.ConfigureStreams(p.access.streams())
	mux.Handle("/graphql", p.graphql)
	agents, err := newMCP(s, p.executor, p.cache, p.access.quota.Take, p.log)
	if err != nil {
		return nil, err
	}
	mux.Handle(mcp.Path, agents)

	mux.Handle(atom.Path, atom.New(atom.Config{
		Store: p.store, Cache: p.cache, PublicURL: s.PublicURL, ServiceName: s.ServiceName, Credit: s.credit(), Log: p.log,
	}))
	mux.Handle(journal.SchemasPath, journal.SchemaHandler())
	catalog, err := newAPICatalog(s.PublicURL)
	if err != nil {
		return nil, err
	}
	mux.Handle(catalogPath, catalog)
	mux.Handle("POST "+billing.EventsPath, p.services.billing)

	website, err := site.New(site.Config{
		Service: s.service(), Executor: p.executor, Cache: p.cache, Log: p.log, TrustedProxies: s.proxies,
		OtherPages: []string{"/docs", "/explorer", "/guides", "/account", "/login", "/graphql", "/llms.txt", "/status", "/changelog", "/feeds/changes.atom"},
	})
	if err != nil {
		return nil, err
	}
	website.Register(mux)
	mux.Handle(status.Path, status.NewPage(status.Config{Service: s.service(), Store: p.store, Log: p.log, Healthy: p.minutes.Healthy}))
	for _, path := range portal.Paths {
		mux.Handle(path, p.services.portal)
	}
	workbench.New(workbench.Config{
		Service: s.service(), Schema: schemaText(), Document: rest.DocumentPath,
		Operations: api.Operations(), Samples: api.ExamplePaths, Cache: p.cache, Explain: api.Explain, Key: p.services.portal.Key, Log: p.log,
	}).Register(mux)
	guides, err := guide.New(guide.Config{Service: s.service(), Sections: guideSections(api)})
	if err != nil {
		return nil, err
	}
	guides.Register(mux)
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.SharedAssets, site.Assets, status.Assets, guide.Assets, workbench.Assets))

	mux.HandleFunc("GET /healthz", p.health.alive)
	mux.HandleFunc("GET /readyz", p.health.ready)
	return &routes{mux, api}, nil
}

// schemaText returns the GraphQL schema with a blank line after each
// definition.
func schemaText() string {
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(graph.Schema())
	return definitionEnd.ReplaceAllString(text.String(), "$0\n")
}

var definitionEnd = regexp.MustCompile(`(?m)^(\}|scalar .*|\) on .*)\n`)

// guideSections returns the links of llms.txt.
func guideSections(api *rest.Handler) []guide.Section {
	restLinks := []guide.Link{
		{Name: "OpenAPI document", Path: rest.DocumentPath, Note: "Every path, parameter and response, as OpenAPI 3.0.3; as YAML at " + rest.YAMLPath + "."},
		{Name: "Reference", Path: workbench.MarkdownPath, Note: "The same as Markdown. The web version is at " + workbench.ReferencePath + "."},
	}
	for _, o := range api.Operations() {
		link := guide.Link{Name: o.Path, Path: o.Path, Note: o.Summary + "."}
		if strings.Contains(o.Path, "{") {
			link.Path = rest.DocumentPath // a template is not a link
		}
		if o.RequiresKey {
			link.Note += " Requires an API key."
		}
		restLinks = append(restLinks, link)
	}
	var eventLinks []guide.Link
	for _, event := range journal.Events {
		eventLinks = append(eventLinks, guide.Link{Name: event, Path: journal.SchemasPath + event + ".json", Note: "JSON Schema of this event, in webhooks and in the change journal."})
	}
	return []guide.Section{
		{Title: "REST", Links: restLinks},
		{Title: "GraphQL", Links: []guide.Link{
			{Name: "Schema", Path: workbench.SchemaPath, Note: "All types and fields, with descriptions. Send queries to /graphql, as POST or QUERY with JSON or as GET: numbered pages, Relay connections, aggregates, the change journal, and a subscription as server-sent events."},
			{Name: "Explorer", Path: workbench.ExplorerPath, Note: "An editor to try queries in the browser."},
		}},
		{Title: "Feeds", Links: []guide.Link{
			{Name: "Changes", Path: atom.Path + "changes.atom", Note: "All changes of the catalog, as Atom."},
			{Name: "Prices", Path: atom.Path + "prices.atom", Note: "Price changes, as Atom."},
			{Name: "Retired tools", Path: atom.Path + "cimetiere.atom", Note: "Retired tools, as Atom."},
			{Name: "Changelog", Path: atom.Path + "changelog.atom", Note: "Changes of the API, as Atom; as Markdown at /changelog.md."},
		}},
		{Title: "Events", Links: eventLinks},
	}
}
