package rest

import (
	"palmares/graph"
	"palmares/internal/core/edge"
)

// scope is the part of the catalog that can change the responses of a path.
type scope int

const (
	everything  scope = iota
	itsTool           // with the slug in the path
	itsCategory       // with all tools in it; everything without that parameter
)

// edgeKeys returns the keys of a response, given the newest release. If a response
// depends on more than the scope of its path, caches keep serving it after it changed.
func (r *request) edgeKeys(newest int) []string {
	scope, depends := everything, edge.Release(newest)
	if r.asOf == (graph.AsOf{}) {
		scope = r.dependsOn
	}
	category, _ := r.variables["category"].(string)
	switch {
	case scope == itsTool:
		depends = edge.Tool(r.variables["slug"].(string))
	// Whether a search allows typos may depend on tools of other categories.
	case scope == itsCategory && edge.IsSlug(category) && r.variables["search"] == nil:
		depends = edge.Category(category)
	}
	return []string{"api-" + r.query, depends}
}
