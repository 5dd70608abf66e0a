package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/account/billing"
	"palmares/internal/account/portal"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/schema"
	"palmares/internal/notify/atom"
	"palmares/internal/ops/metrics"
	"palmares/internal/transport/files"
	"palmares/internal/transport/graphql"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	filelist "palmares/internal/web/files"
	"palmares/internal/web/guide"
	"palmares/internal/web/icon"
	"palmares/internal/web/info"
	"palmares/internal/web/page"
	"palmares/internal/web/queries"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/internal/web/visitor"
	"palmares/rest"
)

// routes dispatches requests to the handlers of the program.
type routes struct {
	mux   *http.ServeMux
	api   *rest.Handler
	saved *saved.Queries
	files *files.Handler
	pages http.Handler // the mux, on the visitors' budgets
}

// renderedPages are rendered for each request, so that their visitors pay for them.
var renderedPages = []string{status.Path, page.MarkdownPath(status.Path), apidocs.ExplorerPath, files.PagePath, page.MarkdownPath(files.PagePath)}

// ServeHTTP passes paths of the API, saved queries and files directly to their handlers:
// the mux would redirect paths such as //tools with a response that is not JSON.
func (r *routes) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case inAPI(path):
		r.api.ServeHTTP(w, request)
	case inSaved(path):
		r.saved.ServeHTTP(w, request)
	case strings.HasPrefix(path, files.Path):
		r.files.ServeHTTP(w, request)
	case slices.Contains(renderedPages, path):
		r.pages.ServeHTTP(w, request)
	default:
		r.mux.ServeHTTP(w, request)
	}
}

func inSaved(path string) bool { return strings.HasPrefix(path, saved.Path) }

func inAPI(path string) bool { return path == "/api" || strings.HasPrefix(path, "/api/") }

// label returns the pattern that a request matches, for metrics and traces. All
// unknown paths share one label.
func (r *routes) label(request *http.Request) string {
	if _, path, localized := page.SplitLanguage(request.URL.Path); localized {
		request = request.Clone(request.Context())
		request.URL.Path = path
	}
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
	p.services.portal.API = api
	p.services.portal.IsDownload = rest.IsDownload
	mux := http.NewServeMux()
	mux.Handle(rest.DocumentPath, api)
	mux.Handle(rest.YAMLPath, api)
	for _, operation := range api.Operations() {
		mux.Handle(operation.Path, api)
	}
	p.graphql = graphql.NewHandler(p.executor, p.cache)
	p.graphql.ConfigureStreams(p.access.streams())
	mux.Handle("/graphql", p.graphql)
	visitors := visitor.NewLimiter(s.proxies)
	p.services.portal.Charge = visitors.Charge
	pages := &queries.Pages{Service: s.service(), Queries: p.saved, Visitors: visitors, Log: p.log}
	p.saved.Page = http.HandlerFunc(pages.ServeQuery)
	mux.HandleFunc(queries.GalleryPath, pages.ServeGallery)
	mux.HandleFunc(page.MarkdownPath(queries.GalleryPath), pages.ServeGallery)
	for _, path := range []string{"{hash}", "{handle}/{name}", "{handle}/openapi.json"} { // for labels: see ServeHTTP
		mux.Handle(saved.Path+path, p.saved)
	}
	fileServer := &files.Handler{Archive: p.files, Newest: p.executor.Newest, PublicURL: s.PublicURL, Log: p.log}
	p.services.portal.Files = p.access.quota.Count(fileServer)
	for _, path := range []string{files.Path, files.LatestPath + "{name}", files.ReleasesPath + "{number}/{name}"} { // for labels: see ServeHTTP
		mux.Handle(path, fileServer)
	}
	(&filelist.Page{Service: s.service(), Files: fileServer, Log: p.log}).Register(mux)
	agents, err := newMCP(s, p.executor, p.cache, p.access, p.log)
	if err != nil {
		return nil, err
	}
	mux.Handle(mcp.Path, agents)
	registered, err := agents.RegistryEntry()
	if err != nil {
		return nil, err
	}
	mux.Handle(mcp.RegistryPath, page.Handler(registered.Write))

	feeds := atom.New(atom.Config{
		Store: p.store, Cache: p.cache, PublicURL: s.PublicURL, ServiceName: s.ServiceName, Credit: s.credit(), Log: p.log,
		NearestTool: p.executor.NearestTool, Visitors: visitors,
	})
	for _, path := range []string{atom.Path, atom.ToolPath, atom.CategoryPath} {
		mux.Handle(path, feeds)
	}
	mux.Handle(journal.SchemasPath, journal.SchemaHandler())
	mux.Handle(schema.FeedPath, schema.FeedHandler())
	catalog, err := newAPICatalog(s.PublicURL)
	if err != nil {
		return nil, err
	}
	mux.Handle(catalogPath, catalog)
	mux.Handle("POST "+billing.EventsPath, p.services.billing)

	website, err := site.New(site.Config{
		Service: s.service(), Executor: p.executor, Cache: p.cache, Log: p.log, Visitors: visitors,
		SitemapPages: sitemapPages(),
		OtherPages:   []string{"/docs", "/explorer", "/guides", "/account", "/login", "/graphql", "/llms.txt", "/status", "/changelog", "/feeds/changes.atom", "/about", "/method", "/pricing", "/terms", "/privacy", "/licence", "/contact"},
	})
	if err != nil {
		return nil, err
	}
	website.Register(mux)
	statusPage := status.NewPage(status.Config{Service: s.service(), Store: p.store, Log: p.log, Healthy: p.statusRecorder.Healthy, DownSince: p.statusRecorder.DownSince})
	mux.Handle(status.Path, statusPage)
	mux.HandleFunc(status.FeedPath, statusPage.ServeFeed)
	mux.Handle(page.MarkdownPath(status.Path), statusPage)
	for _, path := range portal.Paths {
		mux.Handle(path, p.services.portal)
	}
	if p.services.oauth != nil {
		p.services.oauth.Register(mux)
	}
	guides, err := guide.New(guide.Config{Service: s.service()})
	if err != nil {
		return nil, err
	}
	guides.Register(mux)
	information, err := info.New(info.Config{
		Service: s.service(), ServiceURL: s.ServiceURL, Folder: s.PagesDir,
		Anonymous: planOf(auth.Anonymous), Developer: planOf(auth.Developer), Pro: planOf(auth.Pro), Facts: info.Facts(s.Facts), Demo: s.demo,
	})
	if err != nil {
		return nil, err
	}
	information.Register(mux)
	reference := apidocs.Config{
		Service: s.service(), Schema: schemaText(), Document: rest.DocumentPath,
		Operations: api.Operations(), Objects: api.Objects(), Errors: rest.Errors(), Limits: limitsText(document.Limits(s.GraphQL)), Sections: textSections(api), Samples: api.Samples,
		Cache: p.cache, Explain: api.Explain, Run: p.runPublic, Cost: p.cost, SavePath: "/account/queries/new", Key: p.services.portal.Key, Log: p.log,
	}
	for _, g := range guides.All() {
		reference.Guides = append(reference.Guides, apidocs.Guide{Title: g.Title, Summary: g.Summary, URL: g.URL, Markdown: g.Markdown})
	}
	apidocs.New(reference).Register(mux)
	icon.Register(mux, s.service())
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.SharedAssets, apidocs.Assets))

	mux.HandleFunc("GET /healthz", p.health.alive)
	mux.HandleFunc("GET /readyz", p.health.ready)
	return &routes{mux, api, p.saved, fileServer, visitors.Limit(mux, p.writeError)}, nil
}

// planOf returns a plan for the pricing page.
func planOf(plan auth.Plan) info.Plan {
	terms := plan.Terms()
	shown := info.Plan{
		DailyQuota: terms.DailyQuota, Keys: terms.Keys, SavedQueries: terms.SavedQueries, Streams: terms.Streams,
		Downloads: terms.Downloads > 0, Embeddings: terms.Embeddings, Webhooks: terms.Webhooks,
	}
	if plan == auth.Pro {
		shown.MonthlyEuros, shown.Uptime = billing.MonthlyEuros, 99
	}
	return shown
}

// sitemapPages returns the paths of all pages that are not part of the catalog.
func sitemapPages() []string {
	paths := append([]string{"/docs", "/explorer", "/guides", "/changelog", "/status", files.PagePath, queries.GalleryPath}, info.Paths()...)
	for _, name := range guide.Names() {
		paths = append(paths, "/guides/"+name)
	}
	for _, panel := range panels() {
		paths = append(paths, saved.Path+saved.Handle+"/"+panel.Name)
	}
	return paths
}

// panels returns the explorer's dashboard panels, which are saved queries of the
// service.
func panels() (all []saved.BuiltIn) {
	for _, example := range apidocs.Examples {
		if name, isPanel := strings.CutPrefix(example.Name, "panel-"); isPanel {
			all = append(all, saved.BuiltIn{Name: name, Title: example.Title, Description: example.Description, Text: example.Query, Former: formerPanels[name]})
		}
	}
	return all
}

// formerPanels are the hashes that the panels had when their comments were worded
// differently. Their URLs are permanent.
var formerPanels = map[string]string{
	"score-movers":                 "a91b7cb12efa5670f37edfdf67da5ad0",
	"price-drops":                  "d101adc23f1403c2de70d1d0d92d95e1",
	"scores-by-category-and-month": "5af7342b621d15cb8ddc345823f4d697",
	"scores-by-pricing":            "322a755909c5481538ad194d809ed4de",
	"retirements":                  "6a227b8eac9f8870278e3e93fdedb0d5",
	"good-and-affordable":          "6338ed358ce45639a7d86b2866e2a902",
	"compared-with":                "111f2713854040e63a2a5d726a889a0f",
	"win-rates":                    "88c5c3d411d88497f900135743c20701",
	"newest-tools":                 "b81204e56dfc58d4632b047b521ac29d",
	"price-increases":              "cbab1b55c01834d9defebca2f9618b34",
	"key-figures":                  "a3c8d835433c0f9b24e781a8af3e3b61",
	"category-by-pricing":          "249069afc8a5d29fd96c66e4e72c802f",
	"not-updated":                  "c5b0fa7a6abdea61b34faeabfcbd9038",
	"monthly-prices":               "55d367f15c084d16fb8519420899bb0d",
	"growth":                       "a2e728cd57539068d3d50613a10dda34",
}

// limitsText lists the limits of a GraphQL request.
func limitsText(l document.Limits) string {
	return fmt.Sprintf("a body of %d bytes, %d tokens, %d levels, %d fields, %d aliases, a cost of %d, a response of %d bytes and a duration of %s",
		l.Body, l.Tokens, l.Depth, l.Fields, l.Aliases, l.Cost, l.Response, l.Time)
}

// runPublic executes a query for a caller without a key.
func (p *program) runPublic(ctx context.Context, query string) ([]byte, error) {
	result := p.executor.Execute(auth.WithCaller(ctx, auth.Caller{}), graph.Request{Query: query})
	if problem := result.Problem(); problem != nil {
		return nil, problem
	}
	return result.Data, nil
}

// cost returns the cost of a query, even if it requires a key.
func (p *program) cost(ctx context.Context, query string, variables map[string]any) (cost, limit int, err error) {
	return p.executor.Cost(auth.WithCaller(ctx, auth.Caller{Plan: auth.Pro}), graph.Request{Query: query, Variables: variables})
}

// schemaText returns the GraphQL schema with a blank line after each
// definition.
func schemaText() string {
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(graph.Schema())
	return definitionEnd.ReplaceAllString(text.String(), "$0\n")
}

var definitionEnd = regexp.MustCompile(`(?m)^(\}|scalar .*|\) on .*)\n`)

// textSections returns the links of llms.txt.
func textSections(api *rest.Handler) []apidocs.Section {
	restLinks := []apidocs.Link{
		{Name: "OpenAPI document", Path: rest.DocumentPath, Note: "Every path, parameter and response, as OpenAPI 3.0.3; as YAML at " + rest.YAMLPath + "."},
		{Name: "Reference", Path: apidocs.MarkdownPath, Note: "The same as Markdown. The web version is at " + apidocs.ReferencePath + "."},
	}
	for _, o := range api.Operations() {
		link := apidocs.Link{Name: o.Path, Path: o.Path, Note: o.Summary + "."}
		if strings.Contains(o.Path, "{") {
			link.Path = rest.DocumentPath // a path template is not a link
		}
		if o.RequiresKey {
			link.Note += " Requires an API key."
		}
		restLinks = append(restLinks, link)
	}
	var eventLinks []apidocs.Link
	for _, event := range journal.SchemaTypes {
		link := apidocs.Link{Name: event, Path: journal.SchemasPath + event + ".json", Note: "JSON Schema of this event, in webhooks and in the change journal."}
		if event == journal.EventsBatch {
			link.Note = "JSON Schema of webhook requests with several events."
		}
		eventLinks = append(eventLinks, link)
	}
	return []apidocs.Section{
		{Title: "REST", Links: restLinks},
		{Title: "GraphQL", Links: []apidocs.Link{
			{Name: "Schema", Path: apidocs.SchemaPath, Note: "All types and fields, with descriptions. Send queries to /graphql, as POST or QUERY with JSON or as GET: numbered pages, Relay connections, aggregates, the change journal, and a subscription as server-sent events."},
			{Name: "Explorer", Path: apidocs.ExplorerPath, Note: "An editor to try queries in the browser."},
		}},
		{Title: "Feeds", Links: []apidocs.Link{
			{Name: "Changes", Path: atom.Path + "changes.atom", Note: "All changes to the catalog, as Atom."},
			{Name: "Prices", Path: atom.Path + "prices.atom", Note: "Price changes, as Atom."},
			{Name: "Retired tools", Path: atom.Path + "cimetiere.atom", Note: "Retired tools, as Atom."},
			{Name: "Changelog", Path: atom.Path + "changelog.atom", Note: "Changes to the API, as Atom; as Markdown at /changelog.md."},
			{Name: "Incidents", Path: status.FeedPath, Note: "Service incidents, as Atom. The status page is at " + status.Path + "."},
		}},
		{Title: "Events", Links: eventLinks},
		{Title: "About", Links: []apidocs.Link{
			{Name: "About", Path: "/en/about.md", Note: "Who publishes the catalog, and how to contact them."},
			{Name: "How tools are tested", Path: "/en/method.md", Note: "What scores, verifiability and obsolescence mean."},
			{Name: "License", Path: "/en/licence.md", Note: "The data is free to reuse, provided that you show the credit line."},
			{Name: "Plans", Path: "/en/pricing.md", Note: "Quotas and prices."},
			{Name: "Sitemap", Path: site.SitemapPath, Note: "The URLs of all pages, in English and French. Each page is also available as Markdown: add .md to its path."},
		}},
	}
}
