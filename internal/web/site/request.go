package site

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"palmares/graph"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/table"
	"palmares/internal/web/page"
)

// request is a parsed request for a page.
type request struct {
	*route
	about
	service   page.Service
	lang      lang.Language
	path      string
	query     url.Values     // normalized: no empty values, no defaults
	variables map[string]any // of the operation
	asOf      graph.AsOf     // zero for the current catalog
	markdown  bool
	invalid   map[string]string // errors by parameter, to be shown in the form
}

const (
	maxPage = 1_000_000
	maxText = 200 // characters
)

var errSearchAsOf = problem.New(problem.BadInput, "Earlier editions cannot be searched here. Search the current catalog, or use the API.")

// parse reads the operation's variables from the URL.
func (rt *route) parse(r *http.Request) (*request, error) {
	variables, err := params.ReadForm(r.URL.RawQuery, rt.params)
	if err != nil {
		return nil, err
	}
	if variables["sort"] == defaultSort(variables) || variables["sort"] == relevance { // which only a search has
		delete(variables, "sort")
	}
	inPath := map[string]string{}
	for _, name := range rt.pathParams() {
		inPath[name] = strings.TrimSuffix(strings.TrimSpace(r.PathValue(name)), page.MarkdownSuffix) // which no slug ends with
	}
	req := &request{route: rt, lang: lang.Of(r.Context()), path: rt.pathOf(inPath), query: url.Values{}, variables: variables, markdown: page.WantsMarkdown(r)}
	if req.asOf, err = graph.ReadAsOf(variables); err != nil {
		return nil, err
	}
	if req.asOf != (graph.AsOf{}) && variables["q"] != nil {
		return nil, errSearchAsOf
	}
	for _, p := range rt.params {
		switch value := variables[p.Name]; value {
		case nil:
		case p.Default:
			delete(variables, p.Name)
		default:
			req.query.Set(p.Name, params.Format(value))
		}
	}
	delete(variables, graph.AsOfName)
	for _, p := range rt.selects {
		delete(variables, p.Name)
	}
	for name, value := range inPath {
		if variables[name] = value; name != "number" {
			continue
		}
		number, ok := catalog.ParseNumber(value)
		if !ok {
			return nil, problem.New(problem.NotFound, "There is no edition “%s”.", params.Truncate(value))
		}
		variables[name] = number
	}
	if rt.operation.Definition().VariableDefinitions.ForName(languageName) != nil {
		variables[languageName] = string(req.lang)
	}
	for name, value := range variables {
		text, _ := value.(string)
		if !params.IsText(text) || utf8.RuneCountInString(text) > maxText {
			return nil, problem.New(problem.BadInput, "%s must be text of at most %d characters.", name, maxText).For(name)
		}
	}
	return req, nil
}

const (
	relevance    = "relevance"
	languageName = "language" // the variable of operations whose texts are translated
)

// defaultSort returns the order of a list of tools without sort.
func defaultSort(variables map[string]any) string {
	if variables["q"] != nil {
		return relevance
	}
	return "score_desc"
}

// Sort returns the order of a list of tools.
func (r *request) Sort() string {
	return cmp.Or(r.Param("sort"), defaultSort(r.variables))
}

// Slug returns the slug in the path, or "".
func (r *request) Slug() string {
	slug, _ := r.variables["slug"].(string)
	return slug
}

func (r *request) cacheKey() cache.Key {
	kind := "page "
	if r.markdown {
		kind = "Markdown page "
	}
	return cache.Key{Operation: kind + string(r.lang) + " " + r.name, Variables: r.path + "?" + r.query.Encode()}
}

// Filtered reports whether the URL has parameters that select items.
func (r *request) Filtered() bool { return len(r.query) > len(r.asOfQuery()) }

// Link returns the URL of a path of the catalog, given in parts, as of the
// release that is viewed.
func (r *request) Link(parts ...string) string {
	return page.WithQuery(strings.Join(parts, ""), r.asOfQuery().Encode())
}

// Query returns the URL of a path with a parameter, as of the release that is
// viewed.
func (r *request) Query(path, name, value string) string {
	query := r.asOfQuery()
	query.Set(name, value)
	return page.WithQuery(path, query.Encode())
}

// HasCategory reports whether the release that is viewed has a category.
func (r *request) HasCategory(slug string) bool { return r.shown.Category(slug) != nil }

// URL returns the absolute URL of a path in the language of the page.
func (r *request) URL(path string) string { return r.service.PublicURL + page.LocalPath(r.lang, path) }

// With returns the URL of the list with another value of a parameter, or without
// it if the value is "". It starts at the first page.
func (r *request) With(name, value string) string {
	query := maps.Clone(r.query)
	query.Del("page")
	if query.Del(name); value != "" {
		query.Set(name, value)
	}
	return page.WithQuery(r.path, query.Encode())
}

// Without returns the URL of the page without some parameters.
func (r *request) Without(names ...string) string {
	query := maps.Clone(r.query)
	for _, name := range names {
		query.Del(name)
	}
	return page.WithQuery(r.path, query.Encode())
}

// AsOf returns the parameter that selects the release, or "" for the current
// catalog.
func (r *request) AsOf() string { return r.Param(graph.AsOfName) }

func (r *request) asOfQuery() url.Values {
	query := url.Values{}
	if asOf := r.AsOf(); asOf != "" {
		query.Set(graph.AsOfName, asOf)
	}
	return query
}

// notFound reports that there is nothing with a slug now, or was in the release that is
// viewed.
func (r *request) notFound(now, then lang.Message, slug string) *problem.Problem {
	if r.AsOf() != "" {
		now = then
	}
	return problem.New(problem.NotFound, string(now), params.Truncate(slug))
}

// noTool reports that there is no such tool.
func (r *request) noTool(slug string) *problem.Problem {
	return r.notFound("There is no tool “%s”.", "There was no tool “%s” in this edition.", slug)
}

// Path returns the path of the page.
func (r *request) Path() string { return r.path }

// Param returns a parameter of the URL, or "".
func (r *request) Param(name string) string { return r.query.Get(name) }

// PageURL returns the URL of another page of the list.
func (r *request) PageURL(page int) string { return r.With("page", strconv.Itoa(page)) }

// restSorts are the orders of tools that REST has.
var restSorts = []string{"score_desc", "score_asc", "name_asc", "name_desc"}

// restURL returns the equivalent request of the REST API, or "" if there is
// none.
func (r *request) restURL() string {
	switch {
	case r.rest == "":
		return ""
	case strings.HasSuffix(r.rest, "/"):
		return r.Link(r.rest, r.Slug())
	case r.Slug() != "": // of a category
		query := maps.Clone(r.query)
		query.Set("category", r.Slug())
		return (&request{route: &route{rest: r.rest}, query: query}).restURL()
	}
	if sort := r.Param("sort"); sort != "" && !slices.Contains(restSorts, sort) {
		return ""
	}
	return page.WithQuery(r.rest, r.restQuery().Encode())
}

// restQuery returns the parameters of the page under their names in REST, which has
// pages of the same length.
func (r *request) restQuery() url.Values {
	query := maps.Clone(r.query)
	if query.Has("q") {
		query.Set("search", query.Get("q"))
		query.Del("q")
	}
	if query.Has("icp") {
		query.Set("icp", strings.ReplaceAll(query.Get("icp"), "_", "-"))
	}
	return query
}

// download is a link to a whole list as a file.
type download struct{ Name, URL string }

// notInFiles are parameters that a file does not have: the parts of a list, and orders
// and directions, which a spreadsheet can sort and filter by.
var notInFiles = []string{"page", "after", "sort", "direction"}

// downloads returns the list of a page as files.
func (r *request) downloads() []download {
	if r.table == "" || r.HasErrors() {
		return nil
	}
	query := r.restQuery()
	for _, name := range notInFiles {
		query.Del(name)
	}
	if r.Slug() != "" {
		query.Set("category", r.Slug())
	}
	return filesOf(r.lang, "/account/downloads/"+r.table, query)
}

// filesOf returns a list in each format.
func filesOf(l lang.Language, path string, query url.Values) []download {
	csv, lines := page.WithQuery(path+".csv", query.Encode()), page.WithQuery(path+".ndjson", query.Encode())
	query.Set("dialect", table.Excel)
	if l == lang.French {
		query.Set("dialect", table.ExcelFR)
	}
	return []download{{"CSV", csv}, {"Excel", page.WithQuery(path+".csv", query.Encode())}, {"NDJSON", lines}}
}

// explorerURL opens the page's operation with its variables.
func (r *request) explorerURL() string {
	variables, err := json.Marshal(r.variables)
	if err != nil {
		panic(err) // strings and finite numbers can be marshaled
	}
	return page.ExplorerURL(r.queryText(), string(variables))
}

// queryText returns the page's operation, with a directive for the release that
// is viewed.
func (r *request) queryText() string {
	// The text starts with the operation, whose variables contain no braces.
	return strings.Replace(r.operation.Text, " {", graph.AsOfDirective(r.asOf)+" {", 1)
}

// routes lists every page. To add one, add a row, its operation in queries/ and
// its template.
var routes = []route{
	{pattern: HomePattern, name: "home", charts: true, view: newView[homeView]},
	{pattern: "/tools", name: "tools", rest: "/api/v1/tools", table: "tools", form: true, view: newView[toolsView]},
	{pattern: "/tools/{slug}", name: "tool", rest: "/api/v1/tools/", charts: true, view: newView[toolView]},
	{pattern: "/tools/{slug}/follow", name: "follow", view: newView[followView]},
	{pattern: "/comparatifs", name: "comparatifs", rest: "/api/v1/comparatifs", table: "comparatifs", view: newView[comparisonsView]},
	{pattern: "/comparatifs/{slug}", name: "comparatif", rest: "/api/v1/comparatifs/", view: newView[comparisonView]},
	{pattern: "/compare", name: "choose", view: newView[chooseView]},
	{pattern: "/compare/{a}/{b}", name: "compare", charts: true, view: newView[compareView]},
	{pattern: "/compare/{a}/{b}/{c}", name: "compare", charts: true, view: newView[compareView]},
	{pattern: "/compare/{a}/{b}/{c}/{d}", name: "compare", charts: true, view: newView[compareView]},
	{pattern: "/search", name: "search", view: newView[searchView]},
	{pattern: "/categories", name: "categories", rest: "/api/v1/categories", table: "categories", view: newView[categoriesView]},
	{pattern: "/categories/{slug}", name: "category", rest: "/api/v1/tools", table: "tools", charts: true, view: newView[categoryView]},
	{pattern: "/cimetiere", name: "cimetiere", rest: "/api/v1/cimetiere", table: "cimetiere", charts: true, view: newView[retiredToolsView]},
	{pattern: "/cimetiere/{slug}", name: "retired", view: newView[retiredToolView]},
	{pattern: changesPath, name: "changes", view: newView[changesView]},
	{pattern: "/editions/{number}", name: "edition", charts: true, view: newView[editionView]},
	{pattern: "/prices", name: "prices", table: "pricing", view: newView[pricesView], selects: []params.Param{{Name: "direction", Values: []string{"up", "down"}}}},
	{pattern: "/trends", name: "trends", charts: true, view: newView[trendsView]},
}

type route struct {
	pattern   string
	name      string     // of the operation and the template
	rest      string     // equivalent path of the REST API, or ""; one that ends in a slash takes the slug
	table     string     // name of the list's files, or ""
	charts    bool       // they can be downloaded
	form      bool       // invalid parameters are shown in the page's form
	view      func() any // the result of the operation is decoded into it
	operation *graph.Operation
	params    []params.Param // query parameters, which are the operation's variables
	selects   []params.Param // further ones, which the view reads itself
}

var pathParam = regexp.MustCompile(`\{([a-z]+)\}`)

// pathParams returns the names of the variables in the path.
func (rt *route) pathParams() (names []string) {
	for _, match := range pathParam.FindAllStringSubmatch(rt.pattern, -1) {
		names = append(names, match[1])
	}
	return names
}

// markdownPattern returns the pattern of the Markdown version, or "" if the last variable in
// the path has its suffix.
func (rt *route) markdownPattern() string {
	switch {
	case rt.pattern == HomePattern:
		return page.MarkdownPath("/")
	case strings.HasSuffix(rt.pattern, "}"):
		return ""
	}
	return page.MarkdownPath(rt.pattern)
}

// pathOf returns the path of the page with the given variables.
func (rt *route) pathOf(values map[string]string) string {
	path := pathParam.ReplaceAllStringFunc(rt.pattern, func(name string) string { return values[strings.Trim(name, "{}")] })
	return strings.TrimSuffix(path, "{$}")
}

func newView[V any]() any { return new(V) }

// preparer is a view that needs more than its fields, or that describes its page. An error
// may be a redirect.
type preparer interface {
	prepare(context.Context, *Site, *request) error
}

// about describes a page to the layout and to search engines.
type about struct {
	shown      *catalog.Release     // what the page shows
	former     map[string][]version // of tools that it does not have, newest first
	canonical  string               // path, if the page has several
	figures    []*figure            // which can be downloaded
	image      string               // path of the image that other sites show with a link
	feeds      []page.Feed          // about what can be followed
	structured any                  // for search engines
}

// redirect sends the visitor to another path.
type redirect string

func (r redirect) Error() string { return "moved to " + string(r) }
