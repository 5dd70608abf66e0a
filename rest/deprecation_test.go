package rest_test

import (
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/rest"
)

const deprecationLink = `</changelog>; rel="deprecation"; type="text/html"`

func TestDeprecatedPath(t *testing.T) {
	defer rest.AddDeprecated("/api/v1/old", "stats", "2026-11-16", "2027-06-30")()
	handler := onSQLite(t)
	tag := get(handler, "/api/v1/old").Header().Get("ETag")
	current := get(handler, "/api/v1/stats") // the same operation, which is cached by now
	for _, c := range []struct {
		target string
		code   int
		tag    string
	}{{"/api/v1/old", 200, ""}, {"/api/v1/old", 304, tag}, {"/api/v1/old?as_of=1", 200, ""}, {"/api/v1/old?as_of=x", 400, ""}} {
		got := get(handler, c.target, "If-None-Match", c.tag)
		header := got.Header()
		if got.Code != c.code || header.Get("Deprecation") != "@1794787200" || header.Get("Sunset") != "Wed, 30 Jun 2027 00:00:00 GMT" || !slices.Contains(header["Link"], deprecationLink) {
			t.Errorf("%s: got %d %v, want %d with Deprecation, Sunset and Link", c.target, got.Code, header, c.code)
		}
	}
	for _, got := range []string{current.Header().Get("Deprecation"), get(handler, "/api/v1/stats").Header().Get("Deprecation"), get(handler, "/api/v1/openapi.json").Header().Get("Deprecation")} {
		check.Equal(t, got, "", "Deprecation on another path")
	}
	operation := load(t, document(t)).Paths.Value("/api/v1/old").Get
	check.Equal(t, operation.Deprecated, true)
	check.Contains(t, operation.Description, "Deprecated since 2026-11-16, to be removed on 2027-06-30.")
	check.True(t, operation.Responses.Status(200).Value.Headers["Sunset"] != nil, "got %+v, want a deprecated operation with its dates and headers", operation)
	check.True(t, !load(t, document(t)).Paths.Value("/api/v1/stats").Get.Deprecated, "got /api/v1/stats deprecated, want only the old path")
	demo, _ := handlerOver(t, nil)
	operations := demo.Operations()
	old := operations[len(operations)-1]
	check.Equal(t, old.Path, "/api/v1/old")
	check.True(t, old.Deprecated != "", "got %+v, want it deprecated for the reference", old)
	check.Equal(t, operations[0].Deprecated, "")
}

func TestDeprecatedFieldOfAResponse(t *testing.T) {
	field := graph.Schema().Types["Statistics"].Fields.ForName("toolsTested")
	defer func(before ast.DirectiveList) { field.Directives = before }(field.Directives)
	field.Directives = ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{{
		Name: "reason", Value: &ast.Value{Kind: ast.StringValue, Raw: "It is useless. Deprecated since 2026-11-16."},
	}}}}
	header := get(onSQLite(t), "/api/v1/stats").Header()
	check.Equal(t, header.Get("Deprecation"), "@1794787200", header)
	check.Equal(t, header.Get("Sunset"), "", header)
	check.True(t, slices.Contains(header["Link"], deprecationLink), "got %v, want Deprecation and Link, and no Sunset", header)
	doc := load(t, document(t))
	properties := doc.Components.Schemas["Statistics"].Value.Properties
	check.Equal(t, properties["tools_tested"].Value.Deprecated, true)
	check.Equal(t, properties["tools_total"].Value.Deprecated, false)
	check.True(t, !doc.Paths.Value("/api/v1/stats").Get.Deprecated, "got the path deprecated, want only its field")
}
