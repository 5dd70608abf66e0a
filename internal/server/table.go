package server

import (
	"context"
	"net/http"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"
	"time"

	"palmares/internal/account/billing"
	"palmares/internal/account/oauth"
	"palmares/internal/account/portal"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/jsonschema"
	"palmares/internal/ops/metrics"
	"palmares/internal/transport/downloads"
	"palmares/internal/transport/feeds"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
	"palmares/internal/web/queries"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/rest"
)

// mount is a row of the table: patterns with the same handler and policy.
type mount struct {
	on      []string     // patterns of http.ServeMux, without methods
	handler http.Handler // nil for what is disabled: there is no such page
	policy
	listing
}

// policy is what a request may do, and what it costs whom.
type policy struct {
	callers  callers
	basic    bool // the key may be the user name of HTTP Basic: spreadsheets know nothing else
	pays     payer
	cors     bool     // pages of other origins may read the response
	deadline deadline // until the response starts
	body     body
	methods  string // "" if the handler decides
	cached   cached
	// asSent rows get paths as they were sent. The mux would redirect paths such as
	// //tools with a response that is not JSON.
	asSent bool
	// unnamed rows are for unknown paths, which share one label in metrics.
	unnamed   bool
	localized bool // the path has the prefix of a language
	described bool // responses link to the descriptions of the API
	explorer  bool // the path of GraphQL: browsers that send no operation are sent to it, and errors have the format of GraphQL, too
}

// listing is where readers find the paths of a row, besides those of page.Registry.
type listing struct {
	first     string   // the path to show; by default, the first pattern
	banner    string   // its description on the terminal, or ""
	suggested []string // to visitors of a page that does not exist
	sitemap   []string
}

func (m *mount) start() string {
	if m.first != "" {
		return m.first
	}
	return strings.TrimSuffix(m.on[0], "{$}")
}

// callers are those whom a path identifies, or lets in.
type callers string

const (
	anyone    callers = "anyone"    // nobody is identified
	mayHave   callers = "key?"      // anyone; an account is identified by its key
	key       callers = "key"       // accounts with a key
	session   callers = "session"   // those who have signed in, or are about to
	signature callers = "signature" // Stripe
)

// payer is who pays for a request. Nobody pays for what is static or cached, and for what
// has a limit of its own.
type payer string

const (
	nobody     payer = "nobody"
	quotaPays  payer = "quota"
	onceADay   payer = "quota, once a day" // for each account and file
	perCall    payer = "quota, each call"  // in the body
	dataOrPage payer = "quota, or visitor" // which pays for pages; see isFreeIfCached
	visitors   payer = "visitor"           // with a budget of CPU time, for what is not cached
	eachPage   payer = "visitor, each page"
	rate       payer = "rate limit" // by address or server
)

// deadline is how long a response may take to start.
type deadline string

const (
	ownLimits deadline = ""          // of the handler
	likePages deadline = "8s"        // pageDeadline
	pagesOnly deadline = "8s, pages" // data has the limits of GraphQL
)

// body is how large the body of a request may be.
type body string

const (
	noBody    body = "none" // of GET and HEAD; the handler rejects other methods
	formBody  body = "form"
	eventBody body = "event"
	ownBody   body = "own" // errors of the handler have their own format
)

// cached is where responses are stored.
type cached string

const (
	notCached cached = "no"
	byRelease cached = "release" // in the response cache
	atStart   cached = "start"   // they are part of the program, or computed when it starts
)

// pageDeadline is how long a page may take to start its response. Every client must get a
// response within 10 seconds, even if PostgreSQL hangs.
const pageDeadline = 8 * time.Second

const changesFeed = feeds.Path + "changes.atom"

// handlers are what the table refers to.
type handlers struct {
	rest, graphql, mcp, saved, files, fileList, feeds, eventSchemas, feedSchemas, catalog, registry http.Handler
	site, account, billing, prose, security, docs, icons, health                                    http.Handler
	status                                                                                          *status.Page
	oauth                                                                                           *oauth.Server // nil if it is disabled
}

// table returns all paths of the server. With zero handlers it is only for looking up
// policies.
func table(h handlers) []mount {
	open, keyed := rest.Paths()
	var connect http.Handler
	if h.oauth != nil {
		connect = h.oauth
	}
	// Policies that several rows share.
	document := policy{callers: anyone, pays: nobody, cors: true, deadline: likePages, body: noBody, cached: atStart}
	static := policy{callers: anyone, pays: nobody, deadline: likePages, body: noBody, cached: atStart}
	text := policy{callers: anyone, pays: nobody, deadline: likePages, body: noBody, cached: atStart, localized: true}
	catalogPage := policy{callers: anyone, pays: visitors, deadline: likePages, body: noBody, cached: byRelease, localized: true}
	renderedPage := text.with(func(p *policy) { p.pays, p.cached = eachPage, notCached })
	feed := policy{callers: anyone, pays: visitors, cors: true, deadline: likePages, body: noBody, cached: byRelease}
	accountPage := policy{callers: session, pays: nobody, deadline: likePages, body: formBody, cached: notCached, localized: true}
	probe := policy{callers: anyone, pays: nobody, cors: true, deadline: likePages, body: noBody, methods: "GET, HEAD", cached: notCached}

	return []mount{
		// The catalog as pages.
		{[]string{site.HomePattern}, h.site, catalogPage.with(func(p *policy) { p.described = true }), listing{banner: "website"}},
		{site.Patterns(), h.site, catalogPage, listing{}},
		{site.FilePatterns, h.site, policy{callers: anyone, pays: visitors, deadline: likePages, body: noBody, cached: byRelease}, listing{}},
		{[]string{"/"}, h.site, policy{callers: anyone, pays: visitors, deadline: likePages, body: noBody, cached: notCached, unnamed: true}, listing{}},

		// The REST API.
		{open, h.rest, policy{callers: mayHave, basic: true, pays: quotaPays, cors: true, body: noBody, cached: byRelease, asSent: true}, listing{banner: "REST API"}},
		{keyed, h.rest, policy{callers: key, basic: true, pays: quotaPays, cors: true, body: noBody, cached: byRelease, asSent: true}, listing{}},
		{[]string{rest.DocumentPath, rest.YAMLPath}, h.rest, policy{callers: anyone, pays: nobody, cors: true, body: noBody, cached: byRelease, asSent: true}, listing{banner: "OpenAPI document"}},
		{[]string{"/api/v1/", "/api/embeddings/"}, h.rest, policy{callers: mayHave, basic: true, pays: quotaPays, cors: true, body: noBody, cached: notCached, asSent: true, unnamed: true}, listing{}},
		{[]string{"/api/v1"}, h.rest, policy{callers: anyone, pays: nobody, cors: true, body: noBody, cached: notCached, asSent: true, unnamed: true, described: true}, listing{}},
		{[]string{"/api", "/api/"}, h.rest, policy{callers: anyone, pays: nobody, cors: true, body: noBody, cached: notCached, asSent: true, unnamed: true}, listing{}},

		// GraphQL, saved queries and agents.
		{[]string{"/graphql"}, h.graphql, policy{callers: mayHave, pays: quotaPays, cors: true, body: ownBody, cached: byRelease, described: true, explorer: true}, listing{banner: "GraphQL API", suggested: []string{"/graphql"}}},
		{[]string{mcp.Path}, h.mcp, policy{callers: mayHave, pays: perCall, body: ownBody, cached: byRelease}, listing{banner: "MCP server for AI agents"}},
		{[]string{mcp.RegistryPath}, h.registry, static, listing{}},
		{[]string{saved.Path + "{hash}", saved.Path + "{handle}/{name}"}, h.saved, policy{callers: mayHave, basic: true, pays: dataOrPage, cors: true, deadline: pagesOnly, body: noBody, cached: byRelease, asSent: true, localized: true}, listing{sitemap: panelPaths()}},
		{[]string{saved.Path}, h.saved, policy{callers: mayHave, basic: true, pays: dataOrPage, cors: true, deadline: pagesOnly, body: noBody, cached: byRelease, asSent: true, unnamed: true, localized: true}, listing{}},
		{[]string{saved.Path + "{handle}/openapi.json"}, h.saved, policy{callers: mayHave, basic: true, pays: nobody, cors: true, deadline: likePages, body: noBody, cached: notCached, asSent: true}, listing{}},
		{withMarkdown(queries.GalleryPath), h.saved, catalogPage.with(func(p *policy) { p.cached = notCached }), listing{}},

		// Feeds and schemas.
		{[]string{feeds.Path}, h.feeds, feed, listing{first: changesFeed, banner: "Atom feed of changes", suggested: []string{changesFeed}}},
		{[]string{feeds.ToolPath, feeds.CategoryPath}, h.feeds, feed.with(func(p *policy) { p.localized = true }), listing{}},
		{[]string{status.FeedPath}, http.HandlerFunc(h.status.ServeFeed), document.with(func(p *policy) { p.cached = notCached }), listing{}},
		{[]string{status.JSONPath}, http.HandlerFunc(h.status.ServeJSON), document.with(func(p *policy) { p.cached = notCached }), listing{}},
		{[]string{prose.FeedPath}, h.prose, document, listing{}},
		{[]string{journal.SchemasPath}, h.eventSchemas, document, listing{}},
		{[]string{jsonschema.FeedPath}, h.feedSchemas, document, listing{}},
		{[]string{catalogPath}, h.catalog, document, listing{}},

		// Guides, reference and information.
		{prose.Patterns, h.prose, text, listing{banner: "guides", sitemap: guidePaths()}},
		{[]string{apidocs.ReferencePath}, h.docs, text.with(func(p *policy) { p.cached = byRelease }), listing{banner: "API reference"}},
		{[]string{apidocs.ExplorerPath}, h.docs, renderedPage, listing{banner: "GraphQL explorer"}},
		{[]string{page.MarkdownPath(apidocs.ExplorerPath)}, h.docs, text.with(func(p *policy) { p.cached = byRelease }), listing{}},
		{[]string{apidocs.LLMsPath, apidocs.LLMsFullPath, apidocs.MarkdownPath}, h.docs, static.with(func(p *policy) { p.cached = byRelease }), listing{suggested: []string{apidocs.LLMsPath}}},
		{[]string{apidocs.SchemaPath}, h.docs, static, listing{}},
		{[]string{apidocs.CostPath}, h.docs, policy{callers: anyone, pays: rate, deadline: likePages, body: noBody, methods: "POST", cached: notCached}, listing{}},
		{informationPaths(), h.prose, text, listing{}},
		{[]string{prose.SecurityPath}, h.security, static, listing{}},
		{withMarkdown(status.Path), h.status, renderedPage, listing{}},
		{[]string{page.AssetsPath}, h.docs, policy{callers: anyone, pays: nobody, body: noBody, methods: "GET, HEAD", cached: atStart}, listing{}},
		{page.IconPaths, h.icons, static, listing{}},

		// Releases as files.
		{[]string{downloads.Path}, h.files, policy{callers: anyone, pays: nobody, cors: true, deadline: likePages, body: noBody, cached: notCached, asSent: true}, listing{banner: "Parquet and SQLite files"}},
		{[]string{downloads.LatestPath + "{name}", downloads.LatestPath}, h.files, policy{callers: key, basic: true, pays: nobody, cors: true, body: noBody, cached: notCached, asSent: true}, listing{}},
		{[]string{downloads.ReleasesPath + "{number}/{name}", downloads.ReleasesPath}, h.files, policy{callers: key, basic: true, pays: onceADay, cors: true, body: noBody, cached: notCached, asSent: true}, listing{}},
		{withMarkdown(downloads.PagePath), h.fileList, renderedPage, listing{}},

		// Accounts.
		{[]string{"/account", "/account/"}, h.account, accountPage, listing{banner: "sign in and create API keys"}},
		{[]string{"/login", "/login/", "/logout"}, h.account, accountPage, listing{}},
		{[]string{oauth.AuthorizePath}, h.account, accountPage.with(func(p *policy) { p.localized = false }), listing{}},
		{append(oauth.Paths, oauth.ResourcePath+mcp.Path), connect, policy{callers: anyone, pays: rate, cors: true, deadline: likePages, body: noBody, cached: notCached}, listing{}},
		{[]string{billing.EventsPath}, h.billing, policy{callers: signature, pays: nobody, deadline: likePages, body: eventBody, methods: "POST", cached: notCached}, listing{}},

		// Probes.
		{[]string{alivePath}, h.health, probe, listing{banner: "liveness probe"}},
		{[]string{readyPath}, h.health, probe, listing{banner: "readiness probe"}},
	}
}

// with returns a policy with a difference.
func (p policy) with(change func(*policy)) policy {
	change(&p)
	return p
}

func withMarkdown(path string) []string { return []string{path, page.MarkdownPath(path)} }

func informationPaths() (patterns []string) {
	for _, name := range prose.TextNames {
		patterns = append(patterns, withMarkdown("/"+name)...)
	}
	return patterns
}

func guidePaths() (paths []string) {
	for _, name := range prose.GuideNames {
		paths = append(paths, "/guides/"+name)
	}
	return paths
}

func panelPaths() (paths []string) {
	for _, panel := range panels() {
		paths = append(paths, saved.Path+saved.Handle+"/"+panel.Name)
	}
	return paths
}

// counts reports whether the quota counts a request before it is served.
func (p *policy) counts(r *http.Request) bool {
	return p.pays == quotaPays || p.pays == onceADay || p.pays == dataOrPage && !saved.IsPage(r)
}

// servesData reports whether a request is for data, whose failures make the service
// unavailable.
func (p *policy) servesData(r *http.Request) bool { return p.counts(r) || p.pays == perCall }

// hasDeadline reports whether a request has the deadline of pages.
func (p *policy) hasDeadline(r *http.Request) bool {
	return p.deadline == likePages || p.deadline == pagesOnly && saved.IsPage(r)
}

// identifies reports whether responses depend on the caller's key.
func (p *policy) identifies() bool { return p.callers == mayHave || p.callers == key }

// maxBody returns the maximum body size of a request; -1 leaves the check to the handler.
func (p *policy) maxBody(r *http.Request) int64 {
	switch {
	case p.body == formBody:
		return portal.FormLimit(r)
	case p.body == eventBody:
		return billing.MaxEvent
	case p.body == noBody && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return 0
	}
	return -1
}

// route is a pattern of a row.
type route struct {
	*mount
	pattern string
	label   string // in metrics and traces, of which there are few
}

// routes finds the route of a request.
type routes struct {
	mounts    []mount
	mux       *http.ServeMux
	byPattern map[string]*route
	exact     map[string]*route // whose patterns match only one path, as it is written
	unknown   *route            // of paths without any other
	asSent    []*route          // that end in a slash, longest first
}

func newRoutes(mounts []mount) *routes {
	t := &routes{mounts: mounts, mux: http.NewServeMux(), byPattern: map[string]*route{}, exact: map[string]*route{}}
	for i := range mounts {
		for _, pattern := range mounts[i].on {
			found := &route{&mounts[i], pattern, strings.TrimSuffix(pattern, "{$}")}
			if found.unnamed {
				found.label = metrics.Other
			}
			if found.asSent && strings.HasSuffix(pattern, "/") {
				t.asSent = append(t.asSent, found)
			}
			if !strings.Contains(pattern, "{") && !strings.HasSuffix(pattern, "/") {
				t.exact[pattern] = found
			}
			t.byPattern[pattern] = found
			t.mux.Handle(pattern, t.serveMatched(found))
		}
	}
	t.unknown = t.byPattern["/"]
	slices.SortFunc(t.asSent, func(a, b *route) int { return len(b.pattern) - len(a.pattern) })
	return t
}

// serveMatched passes requests that a row does not serve on to the row for unknown paths.
func (t *routes) serveMatched(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		handler := rt.handler
		if handler == nil || rt.methods != "" && !slices.Contains(strings.Split(rt.methods, ", "), r.Method) {
			handler = t.unknown.handler
		}
		handler.ServeHTTP(w, r)
	}
}

// match returns the route of a request.
func (t *routes) match(r *http.Request) *route {
	path := r.URL.Path
	_, rest, localized := page.SplitLanguage(path)
	if localized {
		path = rest
	}
	if rt := t.exact[path]; rt != nil {
		return rt // most requests, without a search
	}
	owner := slices.IndexFunc(t.asSent, func(rt *route) bool { return strings.HasPrefix(path, rt.pattern) })
	if owner >= 0 && !isClean(path) {
		return t.asSent[owner]
	}
	if localized || owner >= 0 && r.URL.RawPath != "" {
		r = &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: path}}
	}
	if _, pattern := t.mux.Handler(r); t.byPattern[pattern] != nil {
		return t.byPattern[pattern]
	}
	return t.unknown
}

// isClean reports whether the mux would not redirect a path.
func isClean(path string) bool {
	clean := pathpkg.Clean(path)
	return clean == path || clean+"/" == path
}

type routeKey struct{}

// find makes the route of a request available to routeOf.
func (t *routes) find(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, t.match(r))))
	})
}

// ServeHTTP serves a request whose route was found.
func (t *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rt := routeOf(r); rt.asSent {
		rt.handler.ServeHTTP(w, r)
		return
	}
	t.mux.ServeHTTP(w, r)
}

// routeOf returns the route that find has found.
func routeOf(r *http.Request) *route { return r.Context().Value(routeKey{}).(*route) }

func labelOf(r *http.Request) string { return routeOf(r).label }

// listed collects paths from the rows.
func (t *routes) listed(in func(*listing) []string) (paths []string) {
	for i := range t.mounts {
		paths = append(paths, in(&t.mounts[i].listing)...)
	}
	return paths
}
