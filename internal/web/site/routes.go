package site

import (
	"palmares/graph"
	"palmares/internal/core/params"
)

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
