package rest

import (
	"testing"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func TestInvalidRoutes(t *testing.T) {
	valid := routes
	defer func() { routes = valid }()
	for _, invalid := range []route{
		{path: "/api/v1/x", query: "missing"},
		{path: "/api/v1/x", query: "stats", parameters: paging},
		{path: "/api/v1/x", query: "tool"},
		{path: "/api/v1/x", query: "tool", parameters: []Parameter{reason}},
		{path: "/api/v1/x", query: "stats"},
		{path: "/api/v1/x", query: "stats", id: "getStatistics"},
		{path: "/api/v1/x", query: "stats", id: "getX", deprecated: "soon"},
		{path: "/api/v1/x", query: "stats", id: "getX", sunset: "2027-06-30"},
		{path: "/api/v1/x", query: "stats", id: "getX", deprecated: "2026-11-16", sunset: "2026-11-15"},
	} {
		routes = append(valid[:len(valid):len(valid)], invalid)
		_, _, err := buildEndpoints()
		check.Fails(t, err, "%+v", invalid)
	}
}

func TestEveryOperationIsUsed(t *testing.T) {
	endpoints, operations, err := buildEndpoints()
	check.OK(t, err)
	delete(operations, "slug_status")
	delete(operations, "example_slugs")
	for _, e := range endpoints {
		delete(operations, e.query)
	}
	check.Equal(t, len(operations), 0, operations)
}

// FuzzParameters checks that the canonical form of an accepted query string has
// the same values, and is its own canonical form.
func FuzzParameters(f *testing.F) {
	endpoints, _, err := buildEndpoints()
	check.OK(f, err)
	for _, query := range []string{
		"", "page=2&limit=10", "sort=name_asc&category=code", "score_min=-0&obsolescence_max=1e21", "category=%C3%A9+%26", "limit=%30%37",
		"page=1&page=1", "page=", "%ff", "&&=&", "reason=mort;x", "score_min=1e-320", "types=tool.updated&types=tool.created,tool.updated&since=2026-01-01",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, e := range endpoints {
			variables, err := e.read(query)
			if err != nil {
				p := problem.Of(err)
				check.Equal(t, p.Code.Status(), 400, "%s?%q", e.path, query)
				check.True(t, p.Message != "", "%s?%q: got %v, want a 400", e.path, query, err)
				continue
			}
			canonical := params.Canonical(e.inQuery, variables)
			again := check.Try(e.read(canonical)).OK(t, "%s?%q", e.path, query)
			check.DeepEqual(t, variables, again, "%s?%q", e.path, query)
			check.Equal(t, params.Canonical(e.inQuery, again), canonical, "%s?%q", e.path, query)
		}
	})
}
