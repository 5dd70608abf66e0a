package graphql_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
)

// deprecate deprecates a field for the duration of a test.
func deprecate(t *testing.T, typeName, name, reason string) {
	field := graph.Schema().Types[typeName].Fields.ForName(name)
	before := field.Directives
	t.Cleanup(func() { field.Directives = before })
	field.Directives = ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{{Name: "reason", Value: &ast.Value{Kind: ast.StringValue, Raw: reason}}}}}
}

func TestDeprecatedFields(t *testing.T) {
	deprecate(t, "Statistics", "toolsTested", "Use `toolsTotal`. Deprecated since 2026-11-16, to be removed on 2027-06-30.")
	deprecate(t, "Statistics", "toolsRetired", "Deprecated since 2026-11-20, to be removed on 2027-01-01.")
	deprecate(t, "Statistics", "toolsTotal", "Without dates.")
	h := demoHandler(t)
	for query, want := range map[string][2]string{
		"{stats {toolsTotal}}":                                       {},
		"{stats {toolsTested}}":                                      {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {... {toolsTested}}}":                                {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {...F ...F}} fragment F on Statistics {toolsTested}": {"@1794787200", "Wed, 30 Jun 2027 00:00:00 GMT"},
		"{stats {toolsTested toolsRetired}}":                         {"@1794787200", "Fri, 01 Jan 2027 00:00:00 GMT"},
	} {
		for range 2 { // the second response is cached
			got := serve(h, httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape(query), nil)).Header()
			linked := slices.Contains(got["Link"], `</changelog>; rel="deprecation"; type="text/html"`)
			if got.Get("Deprecation") != want[0] || got.Get("Sunset") != want[1] || linked != (want[0] != "") {
				t.Errorf("%s: got %v, want Deprecation %q and Sunset %q", query, got, want[0], want[1])
			}
		}
	}
}

func TestErrorsLinkHelp(t *testing.T) {
	h := demoHandler(t)
	got := serve(h, httptest.NewRequest(http.MethodGet, "/graphql", nil))
	if got.Code != 400 || !slices.Contains(got.Header()["Link"], `</docs>; rel="help"`) {
		t.Errorf("got %d %v, want 400 with a link to help", got.Code, got.Header())
	}
	if got := serve(h, httptest.NewRequest(http.MethodGet, "/graphql?query={stats{toolsTotal}}", nil)); got.Code != 200 || got.Header()["Link"] != nil {
		t.Errorf("got %d %v, want 200 without it", got.Code, got.Header())
	}
}
