package rest

import (
	"reflect"
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
		if _, _, err := buildEndpoints(); err == nil {
			t.Errorf("%+v: got no error, want one", invalid)
		}
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
	if len(operations) > 0 {
		t.Errorf("got unused operations in queries/: %v, want none", operations)
	}
}

// FuzzParameters checks that the canonical form of an accepted query string has
// the same values, and is its own canonical form.
func FuzzParameters(f *testing.F) {
	endpoints, _, err := buildEndpoints()
	if err != nil {
		f.Fatal(err)
	}
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
				if p := problem.Of(err); p.Code.Status() != 400 || p.Message == "" {
					t.Errorf("%s?%q: got %v, want a 400", e.path, query, err)
				}
				continue
			}
			canonical := params.Canonical(e.inQuery, variables)
			again, err := e.read(canonical)
			if err != nil || !reflect.DeepEqual(variables, again) || params.Canonical(e.inQuery, again) != canonical {
				t.Errorf("%s?%q: got %v and %v from the canonical form %q, want %v", e.path, query, again, err, canonical, variables)
			}
		}
	})
}
