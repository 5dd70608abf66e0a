package metrics

import "strings"

// templates are every route that requests are told apart by. Paths that people
// make up are one of these or other: what they ask for must not fill the
// memory of who collects numbers.
var templates = []string{
	other,
	"/api/v1/tools", "/api/v1/tools/{slug}",
	"/api/v1/comparatifs", "/api/v1/comparatifs/{slug}",
	"/api/v1/pricing", "/api/v1/pricing/{slug}",
	"/api/v1/cimetiere", "/api/v1/categories", "/api/v1/stats", "/api/v1/openapi.json",
	"/api/embeddings/{slug}",
	"/graphql",
	"/", "/tools", "/tools/{slug}", "/comparatifs", "/comparatifs/{slug}", "/categories", "/cimetiere", "/cimetiere/{slug}",
	"/explorer", "/explorer/schema.graphql", "/docs", "/docs.md", "/guides", "/guides.md", "/guides/{guide}", "/llms.txt", "/llms-full.txt", "/status",
	"/feeds/{feed}", "/schemas/events/{type}",
	"/login", "/login/…", "/logout", "/account", "/account/…",
	"/billing/stripe",
	"/assets/…", "/healthz", "/readyz",
}

const other = "other"

// route is a place in templates.
type route uint8

// Paths are found by themselves, by what is before their last part, or by
// their first part where everything below belongs together.
var wholePaths, parents, roots = func() (map[string]route, map[string]route, map[string]route) {
	whole, parents, roots := map[string]route{}, map[string]route{}, map[string]route{}
	for i, template := range templates {
		cut := strings.LastIndexByte(template, '/') + 1
		switch last := template[cut:]; {
		case last == "…":
			roots[template[:cut]] = route(i)
		case strings.HasPrefix(last, "{"):
			parents[template[:cut]] = route(i)
		default:
			whole[template] = route(i)
		}
	}
	return whole, parents, roots
}()

func routeOf(path string) route {
	if found, ok := wholePaths[path]; ok {
		return found
	}
	last := strings.LastIndexByte(path, '/') + 1
	if found, ok := parents[path[:last]]; ok && last < len(path) {
		return found
	}
	if first := strings.IndexByte(path[min(1, len(path)):], '/') + 2; first > 1 {
		return roots[path[:first]] // or other, which is 0
	}
	return 0
}

// Route is the template of a path, one of a few.
func Route(path string) string { return templates[routeOf(path)] }
