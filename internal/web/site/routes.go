package site

// Every page there is. To add one, add a row, its operation in queries/ and
// its template.
var routes = []route{
	{path: "/{$}", name: "home", view: viewOf[homeView]},
	{path: "/tools", name: "tools", rest: "/api/v1/tools", view: viewOf[toolsView]},
	{path: "/tools/{slug}", name: "tool", rest: "/api/v1/tools/", view: viewOf[toolView]},
	{path: "/comparatifs", name: "comparatifs", rest: "/api/v1/comparatifs", view: viewOf[comparisonsView]},
	{path: "/comparatifs/{slug}", name: "comparatif", rest: "/api/v1/comparatifs/", view: viewOf[comparisonView]},
	{path: "/categories", name: "categories", rest: "/api/v1/categories", view: viewOf[categoriesView]},
	{path: "/cimetiere", name: "cimetiere", rest: "/api/v1/cimetiere", view: viewOf[graveyardView]},
	{path: "/cimetiere/{slug}", name: "retired", view: viewOf[retiredView]},
}

// route is one page.
type route struct {
	path string
	name string // of its operation and its template
	rest string // the path of the API that tells the same; one that ends in a slash wants the slug
	view func(data []byte, asked *asked) (view, error)
}

// view is what a template shows.
type view interface {
	// prepare works out what the answer does not say by itself. A page that
	// is elsewhere says where, and one that is nowhere says so with an error.
	prepare(asked *asked) (elsewhere string, err error)
}
