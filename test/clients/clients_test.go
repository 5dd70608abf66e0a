// Package clients_test tests a server with third-party GraphQL clients, and checks
// the schema with their tools.
package clients_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/graph"
	"palmares/internal/core/middleware"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/transport/headers"
	"palmares/internal/web/apidocs"
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
	t.Run("QUERY", func(t *testing.T) { sendQuery(t, s, key) })
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

// sendQuery revalidates a response with QUERY, which does not count against the
// quota.
func sendQuery(t *testing.T, s *blackbox.Server, key string) {
	call := func(method string, headers ...string) *http.Response {
		return s.Call(t, method, "/graphql", `{"query":"{tools(limit: 1) {items {slug}}}"}`, headers...)
	}
	got := call(middleware.MethodQuery)
	tag := got.Header.Get("ETag")
	for name, want := range map[string]string{
		"Cache-Control": headers.CacheControl, "Accept-Query": "application/json", "X-Service-Release": "8", "CDN-Cache-Control": "",
	} {
		value := got.Header.Get(name)
		check.True(t, got.StatusCode == http.StatusOK && value == want, "got %d with %s %q, want %q", got.StatusCode, name, value, want)
	}
	check.Equal(t, call(middleware.MethodQuery, "If-None-Match", tag).StatusCode, http.StatusNotModified, tag)
	keyed := call(middleware.MethodQuery, "Authorization", "Bearer "+key)
	cdn := keyed.Header.Get("CDN-Cache-Control")
	check.True(t, keyed.StatusCode == http.StatusOK && cdn == "private, no-store", "with a key: got %d with CDN-Cache-Control %q, want private, no-store", keyed.StatusCode, cdn)
	unchanged := call(middleware.MethodQuery, "Authorization", "Bearer "+key, "If-None-Match", keyed.Header.Get("ETag"))
	left := unchanged.Header.Get("X-RateLimit-Remaining")
	want := keyed.Header.Get("X-RateLimit-Remaining")
	check.True(t, unchanged.StatusCode == http.StatusNotModified && left == want, "with a key and the tag: got %d and %s requests remaining, want 304 and %s", unchanged.StatusCode, left, want)
	preflight := call(http.MethodOptions, "Origin", "https://dashboard.example", "Access-Control-Request-Method", middleware.MethodQuery)
	check.Contains(t, preflight.Header.Get("Access-Control-Allow-Methods"), middleware.MethodQuery, "allowed methods")
}
