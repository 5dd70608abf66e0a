// Package site serves the catalog as HTML pages. Each page is a fixed GraphQL
// operation whose rendered result is cached until the next release; nothing here
// reads the database.
package site

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/edge"
	"palmares/internal/core/lang"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
	"palmares/internal/web/visitor"
)

// Config configures the site.
type Config struct {
	page.Service
	Executor     *graph.Executor
	Cache        *cache.Cache
	Visitors     *visitor.Limiter
	Suggested    []string // paths besides those of page.Registry, for suggestions
	SitemapPages []string // the same, for the sitemap
	// Pattern returns the pattern of the server that a request matches; by default, that
	// of the site.
	Pattern func(*http.Request) string
}

// Site serves the pages.
type Site struct {
	Config
	operations map[string]*graph.Operation
	routes     []route
	mux        *http.ServeMux
}

//go:embed queries/*.graphql
var queries embed.FS

//go:embed templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", func(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"score": func(score *float64) string { return formatScore(l, score) }, "average": func(average *float64) string { return formatNumber(l, average, 2, 2) },
		"meterWidth": meterWidth, "label": func(code string) string { return label(l, code) },
		"fullPrice":   func(price string) template.HTML { return formatPrice(l, price, true) },
		"price":       func(price string) template.HTML { return formatPrice(l, price, false) },
		"catalogLang": func() template.HTMLAttr { return catalogLang(l) },
		"langOf":      func(text, french string) template.HTMLAttr { return langOf(l, text, french) },
		"inFrench":    func(texts ...string) template.HTML { return inFrench(l, texts...) },
		"onlyFrench":  func(tools []tool) bool { return onlyFrench(l, tools) },
		"signedCount": func(change int) string {
			return map[bool]string{true: "+", false: "−"}[change > 0] + l.Number(max(change, -change))
		},
		"signed": func(change float64) string { return signed(l, change) },
		"band":   band, "ageBand": ageBand, "typeset": lang.Typeset,
		"euros": l.Euros, "priceText": func(price string) string { return priceText(l, price) }, "section": func(id string) template.HTML { return sectionTitle(l, id) },
		"fieldName": func(field string) string { return fieldName(l, field) },
		"minute":    func(at time.Time) string { return l.Time(at) },
	}
})

// New returns an error if a page's operation is missing or does not match the
// schema.
func New(cfg Config) (*Site, error) {
	operations, err := graph.LoadOperations(queries)
	if err != nil {
		return nil, err
	}
	s := &Site{Config: cfg, operations: operations}
	for _, r := range routes {
		if r.operation = operations[r.name]; r.operation == nil {
			return nil, fmt.Errorf("%s: no operation %q in queries/", r.pattern, r.name)
		}
		for _, definition := range r.operation.Definition().VariableDefinitions {
			p := params.FromVariable(definition)
			if strings.Contains(r.pattern, "{"+p.Name+"}") || p.Name == languageName { // both are in the path
				continue
			}
			if p.Name == "page" {
				p.Min, p.Max = 1, maxPage
			}
			r.params = append(r.params, p)
		}
		if r.charts {
			r.selects = append(r.selects, params.Param{Name: chartParam, Kind: "String", Max: maxText})
		}
		r.params = append(r.params, r.selects...)
		if !slices.Contains([]string{"edition", "follow", "search"}, r.name) { // which show what is current
			r.params = append(r.params, graph.AsOfParam)
		}
		s.routes = append(s.routes, r)
	}
	s.mux = s.newMux()
	if s.Pattern == nil {
		s.Pattern = func(r *http.Request) string {
			_, pattern := s.mux.Handler(r)
			return pattern
		}
	}
	return s, nil
}

// HomePattern is that of the home page.
const HomePattern = "/{$}"

// Patterns returns those of the other pages.
func Patterns() (patterns []string) {
	for _, r := range routes {
		if r.pattern != HomePattern {
			patterns = append(patterns, r.pattern)
		}
		if pattern := r.markdownPattern(); pattern != "" {
			patterns = append(patterns, pattern)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(moved)) {
		patterns = append(patterns, path, page.MarkdownPath(path))
	}
	return patterns
}

// moved are the paths of former pages.
var moved = map[string]string{"/releases": changesPath, "/editions": changesPath}

// FilePatterns are those of the files for programs.
var FilePatterns = []string{suggestionsPath, robotsPath, SitemapPath, sitemapsPath + "{name}"}

// ServeHTTP serves the pages and files, and a "not found" page for all other paths.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Site) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range s.routes {
		handle := func(w http.ResponseWriter, req *http.Request) {
			s.SetSecurityHeaders(w.Header(), page.FormPolicy)
			if err := s.serve(w, req, &r); err != nil {
				s.fail(w, req, &r, err)
			}
		}
		mux.HandleFunc(r.pattern, handle)
		if pattern := r.markdownPattern(); pattern != "" {
			mux.HandleFunc(pattern, handle)
		}
	}
	for from, to := range moved {
		mux.HandleFunc(from, func(w http.ResponseWriter, r *http.Request) { page.Redirect(w, r, to, http.StatusMovedPermanently) })
		mux.HandleFunc(page.MarkdownPath(from), func(w http.ResponseWriter, r *http.Request) {
			page.Redirect(w, r, page.MarkdownPath(to), http.StatusMovedPermanently)
		})
	}
	mux.HandleFunc(suggestionsPath, func(w http.ResponseWriter, r *http.Request) {
		s.SetSecurityHeaders(w.Header(), page.BasePolicy)
		page.Handler(s.serveSuggestions)(w, r)
	})
	mux.HandleFunc(robotsPath, s.serveRobots)
	mux.HandleFunc(SitemapPath, page.Handler(s.serveSitemap))
	mux.HandleFunc(sitemapsPath+"{name}", page.Handler(s.serveSitemap))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.SetSecurityHeaders(w.Header(), page.FormPolicy)
		if target := s.withoutTrailingSlash(r); target != "" {
			page.Redirect(w, r, target, http.StatusMovedPermanently)
			return
		}
		s.fail(w, r, nil, problem.New(problem.NotFound, "There is no page at this address."))
	})
	return mux
}

// withoutTrailingSlash returns the URL of the page that a path with a trailing
// slash most likely means, or "".
func (s *Site) withoutTrailingSlash(r *http.Request) string {
	clean := path.Clean(r.URL.Path)
	if clean == r.URL.Path || r.Method != http.MethodGet && r.Method != http.MethodHead || s.patternOf(r, clean) == "" {
		return ""
	}
	return (&url.URL{Path: clean, RawQuery: r.URL.RawQuery}).String()
}

// patternOf returns the pattern of the page at a path, or "".
func (s *Site) patternOf(r *http.Request, path string) string {
	other := r.Clone(r.Context())
	other.URL = &url.URL{Path: path}
	if pattern := s.Pattern(other); !strings.HasSuffix(pattern, "/") {
		return pattern
	}
	return ""
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request, route *route) error {
	if err := page.CheckMethod(w, r); err != nil {
		return err
	}
	req, err := route.parse(r)
	if err != nil {
		return s.correctForm(w, r, route, err)
	}
	req.service = s.Service
	entry, err := s.Cache.Get(s.Visitors.Identify(r), req.cacheKey(), s.render(req))
	if err != nil {
		return s.correctForm(w, r, route, err)
	}
	return entry.Write(w, r)
}

// pageData is the data of every template.
type pageData struct {
	Request  *request
	View     any
	Base     string // public URL of the service
	Query    string // opens the page's operation in the explorer
	REST     string // path of the equivalent REST request, or ""
	Explorer string // opens the operation of that REST request, or "" as of a release

	Downloads []download // the list as files, or none

	Structured any // what search engines read, or nil
}

func (s *Site) render(req *request) cache.Execute {
	return func(ctx context.Context) (*cache.Entry, int, error) {
		release, err := s.Visitors.Start(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer release()
		view, response, err := s.load(ctx, req)
		if err != nil {
			return nil, response.Newest, err
		}
		caching := page.Caching
		if response.Release == 0 {
			caching = "no-store" // the first release must show at once
		}
		if req.Param(chartParam) != "" {
			entry, err := req.chartFile(ctx, caching)
			return entry, response.Newest, err
		}
		entry, err := templates.Entry(req.name, s.content(ctx, req, view, response), caching)
		return entry.With(edge.KeysHeader, edge.Header("page-"+req.name, edge.Release(response.Newest))), response.Newest, err
	}
}

// load executes the operation of a page and returns its view.
func (s *Site) load(ctx context.Context, req *request) (any, *graph.Result, error) {
	response := s.Executor.Execute(ctx, graph.Request{Operation: req.operation, Variables: req.variables, AsOf: req.asOf})
	if p := response.Problem(); p != nil {
		if p.Code == problem.NotFound {
			return nil, response, releaseNotFound{p}
		}
		return nil, response, p
	}
	view := req.view()
	err := json.Unmarshal(s.typeset(ctx, req.asOf, response.Data), view)
	if v, ok := view.(*homeView); ok && err == nil {
		err = json.Unmarshal(response.Data, &v.homeExamples) // they are shown as the API returns them
	}
	if v, ok := view.(preparer); ok && err == nil {
		if req.shown, err = s.Executor.Release(ctx, req.asOf); err == nil {
			err = v.prepare(ctx, s, req)
		}
	}
	return view, response, err
}

// nameWithApostrophe finds names in a result, of tools first of all.
var nameWithApostrophe = regexp.MustCompile(`"(?:n|winnerN)ame":"(?:[^"\\]|\\.)*'(?:[^"\\]|\\.)*"`)

// typeset prepares a result for pages. A label that is the same in both languages is not
// in French.
func (s *Site) typeset(ctx context.Context, asOf graph.AsOf, result []byte) []byte {
	result = typesetNames(result)
	if shown, err := s.Executor.Release(ctx, asOf); err == nil {
		for _, c := range shown.Categories {
			if label := strconv.Quote(c.Label); c.Translations.En.Label == c.Label {
				result = bytes.ReplaceAll(result, []byte(`"label":`+label+`,"frenchLabel":`+label), []byte(`"label":`+label+`,"frenchLabel":""`))
			}
		}
	}
	return result
}

// typesetNames gives names the apostrophes of the text around them. The API returns
// names as the feed has them.
func typesetNames(result []byte) []byte {
	return nameWithApostrophe.ReplaceAllFunc(result, func(field []byte) []byte { return bytes.ReplaceAll(field, []byte("'"), []byte("’")) })
}

// execute executes an operation of queries/ on a release and decodes its result.
func (s *Site) execute(ctx context.Context, asOf graph.AsOf, operation string, variables map[string]any, result any) error {
	response := *s.Executor.Execute(ctx, graph.Request{Operation: s.operations[operation], Variables: variables, AsOf: asOf})
	response.Data = s.typeset(ctx, asOf, response.Data)
	return response.Decode(result)
}

func (s *Site) content(ctx context.Context, req *request, view any, response *graph.Result) page.Content {
	data := &pageData{Request: req, View: view, Base: s.PublicURL, Query: req.explorerURL(), REST: req.restURL(), Downloads: req.downloads()}
	content := s.Content(req.lang, req.path, page.Head{}, data)
	content.AsMarkdown = req.markdown
	content.Path = cmp.Or(req.canonical, content.Path)
	if req.AsOf() == "" {
		content.Feeds, data.Structured = req.feeds, req.structured
	}
	if req.image != "" {
		content.Image = page.LocalPath(req.lang, req.image)
	}
	content.Query, content.NoIndex = req.query.Encode(), req.name == "search"
	content.Markdown = page.WithQuery(page.MarkdownPath(req.path), req.query.Encode())
	if req.AsOf() == "" {
		data.Explorer = "/explorer?path=" + url.QueryEscape(data.REST)
		return content
	}
	content.AsOf = &page.AsOf{Release: response.Release, Date: response.UpdatedAt, Query: req.asOfQuery().Encode(), Current: req.Without(graph.AsOfName)}
	// What the page is about, or what was entered, may be no longer in the catalog.
	if newest, err := s.Executor.Newest(ctx); err == nil && (req.name == "choose" || !pageExists(newest, content.Path)) {
		section, _, _ := strings.Cut(content.Path[1:], "/")
		content.AsOf.Current = "/" + section
	}
	return content
}

// releaseNotFound reports that the selected release cannot be read.
type releaseNotFound struct{ *problem.Problem }

func (e releaseNotFound) Unwrap() error { return e.Problem }

// fail responds with an error page. If route is nil, the path does not exist, and
// clients that do not accept HTML get JSON.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, route *route, err error) {
	var to redirect
	if errors.As(err, &to) {
		w.Header().Set("Cache-Control", "no-store")
		page.Redirect(w, r, string(to), http.StatusFound) // temporary: retired tools may come back
		return
	}
	p := problem.Of(err)
	if route == nil && negotiate.Named(r.Header["Accept"], "text/html") == 0 {
		problem.Write(w, p)
		return
	}
	l := lang.Of(r.Context())
	var data page.ErrorPage
	switch {
	case errors.As(err, new(releaseNotFound)):
		data.Title = l.Text("Edition not found")
		data.More = page.Suggestion{Path: changesPath, Name: l.Text("View all editions")}
	case p.Code == problem.NotFound:
		data.Suggestions = s.suggest(s.Visitors.Identify(r), r, route)
		if last := s.lastPage(s.Visitors.Identify(r), r, route); last.Path != "" {
			data.Text = p.In(l) + " " + l.Text("It has been removed from the catalog.")
			data.More = last
		}
	case p.Code.Status() == http.StatusServiceUnavailable:
		data.Title = l.Text("The catalog is unavailable")
		data.Text = l.Text("The catalog is temporarily unavailable. Recently viewed pages still work; try this one again in a minute.")
	}
	s.Fail(w, r, err, s.Content(l, r.URL.Path, page.Head{}, nil), data)
}
