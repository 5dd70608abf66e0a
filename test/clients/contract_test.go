package clients_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
	"palmares/rest"
)

var update = flag.Bool("update", false, "renew the documents of the last release in docs/contract")

func TestContract(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	t.Run("current", func(t *testing.T) { compareCurrent(t, g) })
	t.Run("gate", func(t *testing.T) { checkGate(t, g) })
}

// compareCurrent checks that the current documents have no breaking changes since the
// last release, except for what it had deprecated.
func compareCurrent(t *testing.T, g gate) {
	folder := filepath.Join(repo.Root(t), "docs", "contract")
	openAPIFile, schemaFile := filepath.Join(folder, "openapi.json"), filepath.Join(folder, "schema.graphql")
	openAPI, schema := currentDocuments(t)
	if *update {
		check.OK(t, os.MkdirAll(folder, 0o755))
		check.OK(t, os.WriteFile(openAPIFile, []byte(openAPI), 0o644))
		check.OK(t, os.WriteFile(schemaFile, []byte(schema), 0o644))
	}
	read := func(file string) string {
		content := check.Try(os.ReadFile(file)).OK(t)
		return string(content)
	}
	const advice = "; deprecate what clients use first, and remove it after the next release; after a release, run make contract"
	check.Equal(t, g.openAPI(read(openAPIFile), openAPI), "", "breaking changes of the REST API"+advice)
	check.Equal(t, g.graphQL(read(schemaFile), schema), "", "breaking changes of the GraphQL schema"+advice)
}

// checkGate checks that the gate reports what would break clients, unless it was
// deprecated.
func checkGate(t *testing.T, g gate) {
	openAPI, schema := currentDocuments(t)
	const (
		path     = `"operationId": "getStatistics",`
		search   = `"name": "search",`
		property = `"tagline": {`
	)
	const mark = ` "deprecated": true,`
	deprecated := strings.NewReplacer(path, path+mark, search, search+mark, property, property+mark).Replace(openAPI)
	removed := decode(t, openAPI)
	delete(at(removed, "paths"), "/api/v1/stats")
	operation := at(removed, "paths", "/api/v1/tools", "get")
	operation["parameters"] = without(operation["parameters"], func(p any) bool {
		return p.(map[string]any)["name"] == "search"
	})
	tool := at(removed, "components", "schemas", "ToolItem")
	delete(at(tool, "properties"), "tagline")
	tool["required"] = without(tool["required"], func(name any) bool { return name == "tagline" })
	types := at(removed, "components", "schemas", "ChangeType") // of responses
	types["enum"] = without(types["enum"], func(value any) bool { return value == "tool_removed" })
	after := check.Try(json.Marshal(removed)).OK(t)
	got := g.openAPI(openAPI, string(after))
	for _, want := range []string{
		"/api/v1/stats api path removed without deprecation", "request parameter `search`", "required property `tagline`",
	} {
		check.Contains(t, got, want)
	}
	check.Equal(t, g.openAPI(deprecated, string(after)), "", "want none after a deprecation")
	check.Equal(t, g.openAPI(string(after), openAPI), "", "want none for additions")

	const field, quotes = "  domain: String!", `"""`
	before, end, _ := strings.Cut(schema, field)
	before = before[:strings.LastIndex(before, quotes)] // the end of its description
	fewer := before[:strings.LastIndex(before, quotes)] + end
	check.Contains(t, g.graphQL(schema, fewer), "Field 'domain' was removed from object type 'Tool'", "want the removed field")
	check.Equal(t, g.graphQL(strings.Replace(schema, field, field+` @deprecated(reason: "x")`, 1), fewer), "", "want none after a deprecation")
	check.Equal(t, g.graphQL(fewer, schema), "", "want none for additions")
}

// currentDocuments returns the OpenAPI document and the GraphQL schema.
func currentDocuments(t *testing.T) (openAPI, schema string) {
	t.Helper()
	const url = "https://palmares.example"
	document := check.Try(rest.Describe(rest.Config{
		PublicURL: url, ServiceName: "palmares", ServiceURL: url, Credit: "Source : palmares (" + url + ")",
	})).OK(t)
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(graph.Schema())
	return string(document) + "\n", text.String()
}

// gate compares documents with oasdiff and graphql-inspector.
type gate struct {
	workspace
	oasdiff string
}

func newGate(t *testing.T) gate {
	t.Helper()
	testkit.NPM(t, "testdata")
	w := newWorkspace(t, "", "contract.mjs")
	check.OK(t, os.CopyFS(w.dir, os.DirFS(filepath.Join("testdata", "oasdiff"))))
	w.run(exec.Command("go", "build", "-o", "compare", "github.com/oasdiff/oasdiff"), "GOFLAGS=")
	return gate{w, filepath.Join(w.dir, "compare")}
}

// openAPI returns the breaking changes between two OpenAPI documents. Deprecated
// properties of responses may be removed, which oasdiff does not know. Unlike its
// defaults, severity.txt forbids removing a parameter, and allows new values of an enum
// and new kinds of items, such as types of events, as graphql-inspector does.
func (g gate) openAPI(before, after string) string {
	g.Helper()
	old, current := decode(g, before), decode(g, after)
	for name, schema := range at(old, "components", "schemas") {
		schema, now := schema.(map[string]any), at(current, "components", "schemas", name, "properties")
		for property, value := range at(schema, "properties") {
			if value.(map[string]any)["deprecated"] == true && now[property] == nil {
				delete(at(schema, "properties"), property)
				schema["required"] = without(schema["required"], func(name any) bool { return name == property })
			}
		}
	}
	kept := check.Try(json.Marshal(old)).OK(g)
	g.write("before.json", string(kept))
	g.write("after.json", after)
	out := g.run(exec.Command(g.oasdiff, "breaking", "--format", "json", "--severity-levels", "severity.txt",
		"before.json", "after.json"))
	var changes []struct {
		Text, Path string
		Level      int
	}
	check.OK(g, json.Unmarshal([]byte(out), &changes))
	var breaking []string
	const isError = 3
	for _, c := range changes {
		if c.Level == isError {
			breaking = append(breaking, c.Path+" "+c.Text)
		}
	}
	return strings.Join(breaking, "\n")
}

// graphQL returns the breaking changes between two schemas.
func (g gate) graphQL(before, after string) string {
	g.Helper()
	g.write("before.graphql", before)
	g.write("after.graphql", after)
	return strings.TrimSpace(g.node("contract.mjs", "before.graphql", "after.graphql"))
}

func decode(t testing.TB, document string) (object map[string]any) {
	t.Helper()
	check.OK(t, json.Unmarshal([]byte(document), &object))
	return object
}

// at returns the object at a path within another; nil if there is none.
func at(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// without returns a list without some of its items.
func without(list any, drop func(any) bool) (kept []any) {
	items, _ := list.([]any)
	for _, item := range items {
		if !drop(item) {
			kept = append(kept, item)
		}
	}
	return kept
}
