package site

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// request is a parsed request for a page.
type request struct {
	*route
	path      string
	query     url.Values     // normalized: no empty values, no defaults
	variables map[string]any // of the operation
}

const (
	maxPage = 1_000_000
	maxText = 200 // characters
)

// parse reads the operation's variables from the URL.
func (rt *route) parse(r *http.Request) (*request, error) {
	variables, err := params.ReadForm(r.URL.RawQuery, rt.params)
	if err != nil {
		return nil, err
	}
	if variables["sort"] == defaultSort(variables) || variables["sort"] == relevance { // which only a search has
		delete(variables, "sort")
	}
	req := &request{route: rt, path: r.URL.Path, query: url.Values{}, variables: variables}
	for _, p := range rt.params {
		switch value := variables[p.Name]; value {
		case nil:
		case p.Default:
			delete(variables, p.Name)
		default:
			req.query.Set(p.Name, params.Format(value))
		}
	}
	if slug := r.PathValue("slug"); slug != "" {
		variables["slug"] = strings.TrimSpace(slug)
	}
	for name, value := range variables {
		text, _ := value.(string)
		if !params.IsText(text) || utf8.RuneCountInString(text) > maxText {
			return nil, problem.New(problem.BadInput, "%s must be text of at most %d characters.", name, maxText)
		}
	}
	return req, nil
}

const relevance = "relevance"

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

func (r *request) slug() string {
	slug, _ := r.variables["slug"].(string)
	return slug
}

func (r *request) cacheKey() cache.Key {
	return cache.Key{Operation: "page " + r.name, Variables: r.slug() + "?" + r.query.Encode()}
}

// Path returns the path of the page without its query.
func (r *request) Path() string { return r.path }

// Filtered reports whether the URL has any parameters.
func (r *request) Filtered() bool { return len(r.query) > 0 }

// Param returns a parameter of the URL, or "".
func (r *request) Param(name string) string { return r.query.Get(name) }

// PageURL returns the URL of another page of the list.
func (r *request) PageURL(page int) string {
	query := url.Values{"page": {strconv.Itoa(page)}}
	for name := range r.query {
		if name != "page" {
			query.Set(name, r.query.Get(name))
		}
	}
	return withQuery(r.path, query)
}

// REST has these parameters under the same names, and pages of the same length.
var (
	restParams = []string{"category", "score_min", "reason", "page", "sort"}
	restSorts  = []string{"score_desc", "score_asc", "name_asc", "name_desc"}
)

// restURL returns the equivalent request of the REST API, or "" if there is
// none.
func (r *request) restURL() string {
	if strings.HasSuffix(r.rest, "/") {
		return r.rest + r.slug()
	}
	for name := range r.query {
		if !slices.Contains(restParams, name) || name == "sort" && !slices.Contains(restSorts, r.query.Get(name)) {
			return ""
		}
	}
	return withQuery(r.rest, r.query)
}

// explorerURL opens the page's operation with its variables.
func (r *request) explorerURL() string {
	variables, err := json.Marshal(r.variables)
	if err != nil {
		panic(err) // strings and finite numbers can be marshaled
	}
	return explorerURL("query", r.operation.Text) + "&variables=" + url.QueryEscape(string(variables))
}

func explorerURL(param, value string) string {
	return "/explorer?" + param + "=" + url.QueryEscape(value)
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// routes lists every page. To add one, add a row, its operation in queries/ and
// its template.
var routes = []route{
	{pattern: "/{$}", name: "home", view: newView[homeView]},
	{pattern: "/tools", name: "tools", rest: "/api/v1/tools", view: newView[toolsView]},
	{pattern: "/tools/{slug}", name: "tool", rest: "/api/v1/tools/", view: newView[toolView]},
	{pattern: "/comparatifs", name: "comparatifs", rest: "/api/v1/comparatifs", view: newView[comparisonsView]},
	{pattern: "/comparatifs/{slug}", name: "comparatif", rest: "/api/v1/comparatifs/", view: newView[comparisonView]},
	{pattern: "/categories", name: "categories", rest: "/api/v1/categories", view: newView[categoriesView]},
	{pattern: "/cimetiere", name: "cimetiere", rest: "/api/v1/cimetiere", view: newView[retiredToolsView]},
	{pattern: "/cimetiere/{slug}", name: "retired", view: newView[retiredToolView]},
}

type route struct {
	pattern   string
	name      string     // of the operation and the template
	rest      string     // equivalent path of the REST API, or ""; one that ends in a slash takes the slug
	view      func() any // the result of the operation is decoded into it
	operation *graph.Operation
	params    []params.Param // query parameters, which are the operation's variables
}

func newView[V any]() any { return new(V) }

// preparer is a view that needs more than its fields. An error may be a
// redirect.
type preparer interface{ prepare(*request) error }

// redirect sends the visitor to another path.
type redirect string

func (r redirect) Error() string { return "moved to " + string(r) }
