// Package clients_test tests a server with third-party GraphQL clients, and checks
// the schema with their tools.
package clients_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/web/apidocs"
	"palmares/rest"
)

func TestClients(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	cfg := testkit.SQLite(t)
	s := blackbox.Serve(t, cfg, "--demo")
	url, key := "http://"+s.Address+"/graphql", blackbox.NewKey(t, cfg, "developer")
	schema := blackbox.ReadAll(t, s.Call(t, http.MethodGet, apidocs.SchemaPath, "").Body)

	t.Run("Relay compiler", func(t *testing.T) { compileRelay(t, schema) })
	t.Run("schema rules", func(t *testing.T) {
		w := newWorkspace(t, schema, "eslint.config.mjs")
		w.node("node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "schema.graphql")
	})
	for _, client := range []string{"apollo", "graphcache"} {
		t.Run(client, func(t *testing.T) {
			newWorkspace(t, schema, "queries.mjs", client+".mjs").node(client+".mjs", url, key)
		})
	}
	t.Run("genqlient", func(t *testing.T) { generateGo(t, schema, url) })
}

// workspace is a directory with the npm packages, for tools that write files.
type workspace struct {
	testing.TB
	dir string
}

// newWorkspace returns a directory with the schema and some files of testdata.
func newWorkspace(t testing.TB, schema string, files ...string) workspace {
	t.Helper()
	w := workspace{t, t.TempDir()}
	packages := check.Try(filepath.Abs(filepath.Join("testdata", "node_modules"))).OK(t)
	check.OK(t, os.Symlink(packages, filepath.Join(w.dir, "node_modules")))
	w.write("schema.graphql", schema)
	for _, name := range files {
		content := check.Try(os.ReadFile(filepath.Join("testdata", name))).OK(t)
		w.write(name, string(content))
	}
	return w
}

func (w workspace) write(name, content string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	check.OK(w, os.MkdirAll(filepath.Dir(path), 0o700))
	check.OK(w, os.WriteFile(path, []byte(content), 0o600))
}

func (w workspace) node(args ...string) string {
	w.Helper()
	return w.run(exec.Command("node", args...), "NODE_ENV=production")
}

func (w workspace) run(cmd *exec.Cmd, env ...string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
	defer cancel()
	limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	limited.Dir, limited.Env = w.dir, append(os.Environ(), env...)
	out, err := limited.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// compileRelay compiles a pagination fragment for each connection of the schema,
// and a fragment of a tool that can be fetched again.
func compileRelay(t *testing.T, schema string) {
	source := "graphql`fragment Catalog_tool on Tool @refetchable(queryName: \"CatalogToolQuery\") { name score }`;\n"
	var connections []string
	for _, parent := range graph.Schema().Types {
		for _, field := range parent.Fields {
			if strings.HasSuffix(field.Type.Name(), "Connection") {
				connections = append(connections, parent.Name+"."+field.Name)
				source += strings.NewReplacer("TYPE", parent.Name, "FIELD", field.Name).Replace(paginationFragment)
			}
		}
	}
	for _, want := range []string{
		"Query.toolConnection", "Query.comparisonConnection", "Query.retiredToolConnection", "Query.changes", "Query.releases",
		"Tool.comparisonConnection", "Tool.changes", "Category.toolConnection",
	} {
		check.True(t, slices.Contains(connections, want), "got the connections %v, want %s among them", connections, want)
	}
	w := newWorkspace(t, schema, "relay.config.json")
	w.write("src/Catalog.js", source)
	check.OK(t, os.Mkdir(filepath.Join(w.dir, "artifacts"), 0o700))
	w.node("node_modules/relay-compiler/cli.js", "relay.config.json")
	queries := check.Try(filepath.Glob(filepath.Join(w.dir, "artifacts", "*Query.graphql.js"))).OK(t)
	check.Equal(t, len(queries), 1+len(connections), "refetch queries")
}

const paginationFragment = "graphql`" + `
fragment Catalog_TYPE_FIELD on TYPE
@refetchable(queryName: "CatalogTYPEFIELDQuery")
@argumentDefinitions(first: { type: "Int", defaultValue: 10 }, after: { type: "String" }) {
  FIELD(first: $first, after: $after) @connection(key: "Catalog_TYPE_FIELD") { edges { node { __typename } } }
}` + "`;\n"

// generateGo generates a Go client with the default settings of genqlient, and
// reads all tools with it. For optional arguments without a value, it sends "".
func generateGo(t *testing.T, schema, url string) {
	w := workspace{t, t.TempDir()}
	check.OK(t, os.CopyFS(w.dir, os.DirFS(filepath.Join("testdata", "genqlient"))))
	w.write("schema.graphql", schema)
	check.OK(t, os.Mkdir(filepath.Join(w.dir, "catalog"), 0o700))
	w.run(exec.Command("go", "tool", "genqlient"), "GOFLAGS=")
	w.run(exec.Command("go", "build", "-o", "read", "."), "GOFLAGS=")
	check.Equal(t, w.run(exec.Command(filepath.Join(w.dir, "read"), url)), "48 of 48 tools\n", "want all 48 tools")
}

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
