// Recipes follows three recipes of CONTRIBUTING.md on a copy of the repository: it
// adds a field to tools, a filter and a REST path, regenerates code and golden files,
// starts the server and checks the result over HTTP. It fails if a recipe
// requires more files to be edited than it states.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// recipe is a list of steps, as in CONTRIBUTING.md.
type recipe struct {
	name     string
	maxFiles int
	steps    []step
}

// step edits a file and runs commands. It inserts text below the first line
// that contains after, or creates the file if after is empty.
type step struct {
	file, after, insert string
	commands            []string
}

// change is a step that changes text within lines.
func change(file, from, to string, commands ...string) step {
	return step{file, changes + from, to, commands}
}

const changes = "change "

var recipes = []recipe{
	{
		name:     "Add a field to tools",
		maxFiles: 6,
		steps: []step{
			{"ent/schema/tool.go", `field.String("alternatives_url")`, `		field.String("license").Optional().Nillable(),`, nil},
			{"internal/catalog/record/record.go", `json:"alternatives_url"`, "	License *string `json:\"license,omitzero\" rule:\"text\" event:\"The license; null if unknown.\" label:\"Code license\"`", nil},
			{"internal/core/lang/french.json", `"Website": "Site web",`, `    "Code license": "Licence du code",`, nil},
			{"internal/catalog/release/tool.go", `type Tool struct {`, `	License *string`, nil},
			{"internal/catalog/release/tool.go", `t := &Tool{`, `		License: row.License,`, nil},
			{"graph/schema/tool.graphql", `  alternativesUrl:`, "  \"The license, such as `MIT`; null if unknown.\"\n  license: String", nil},
			{"rest/queries/fragments.graphql", `alternatives_url: alternativesUrl`, `  license`,
				[]string{"make generate NAME=add_license"}},
		},
	},
	{
		name:     "Add a filter",
		maxFiles: 5,
		steps: []step{
			{"internal/catalog/release/tool.go", `type Tool struct {`, `	HasAvis bool // there is a page with its review`, nil},
			{"internal/catalog/release/tool.go", `t := &Tool{`, `		HasAvis: row.AvisURL != nil,`, nil},
			{"graph/schema/tool.graphql", `  hasEmbeddings: Boolean`, "  \"Tools with or without a page with their review.\"\n  hasAvis: Boolean", nil},
			{"graph/model/filter.go", `release.Where(func(t *release.Tool) bool { return t.InEmbeddings`,
				"	}\n	if f.HasAvis != nil {\n		all = append(all, release.Where(func(t *release.Tool) bool { return t.HasAvis == *f.HasAvis }))", nil},
			change("rest/routes.go", `	obsolescenceMax = Parameter`,
				"	hasAvis = Parameter{Param: params.Param{Name: \"has_avis\"}, Description: \"Tools with or without a page with their review.\"}\n	obsolescenceMax = Parameter"),
			change("rest/routes.go", `obsolescenceMax, search, language, sort}`, `obsolescenceMax, hasAvis, search, language, sort}`),
			change("rest/queries/tools.graphql", `$obsolescence_max: Float,`, `$obsolescence_max: Float, $has_avis: Boolean,`),
			change("rest/queries/tools.graphql", `$obsolescence_max,`, `$obsolescence_max, hasAvis: $has_avis,`, "make generate"),
		},
	},
	{
		name:     "Add a REST path",
		maxFiles: 2,
		steps: []step{
			{"rest/routes.go", `var routes = []route{`, `	{path: "/api/v1/totals", query: "totals", id: "getTotals", summary: "Totals", details: "The number of active and retired tools."},`, nil},
			{"rest/queries/totals.graphql", "", "query totals {\n  body: stats {\n    ...Totals\n  }\n}\n\nfragment Totals on Statistics {\n  active: toolsTotal\n  retired: toolsRetired\n}\n",
				[]string{"make generate"}},
		},
	},
}

func main() {
	testkit.Main("recipes", func(t testing.TB) {
		tree := t.TempDir()
		copyTree(t, tree)
		for _, r := range recipes {
			r.follow(t, tree)
		}
		command(t, tree, "go test ./rest")
		command(t, tree, "go build -o bin/palmares ./cmd/palmares")
		checkServer(t, tree)
	})
}

// copyTree copies all files that git tracks or would add.
func copyTree(t testing.TB, to string) {
	list := check.Try(exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()).OK(t)
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted and not yet committed
		}
		check.OK(t, err)
		data, err := os.ReadFile(name)
		check.OK(t, err)
		target := filepath.Join(to, name)
		check.OK(t, os.MkdirAll(filepath.Dir(target), 0o755))
		check.OK(t, os.WriteFile(target, data, info.Mode().Perm()))
	}
}

func (r recipe) follow(t testing.TB, tree string) {
	var files []string
	for _, s := range r.steps {
		fmt.Printf("%s: edit %s\n", r.name, s.file)
		s.edit(t, tree)
		for _, line := range s.commands {
			command(t, tree, line)
		}
		files = append(files, s.file)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	fmt.Printf("%s: %d files edited by hand: %s\n", r.name, len(files), strings.Join(files, ", "))
	check.MustTrue(t, len(files) <= r.maxFiles, "%s: got %d files edited by hand, want at most %d", r.name, len(files), r.maxFiles)
}

func (s step) edit(t testing.TB, tree string) {
	path, text := filepath.Join(tree, s.file), s.insert
	if s.after != "" {
		data := check.Try(os.ReadFile(path)).OK(t)
		if from, ok := strings.CutPrefix(s.after, changes); ok {
			check.MustTrue(t, strings.Contains(string(data), from), "%s: got no %q, want it", s.file, from)
			check.OK(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), from, s.insert)), 0o644))
			return
		}
		lines := strings.Split(string(data), "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, s.after) })
		check.MustTrue(t, i >= 0, "%s: got no line with %q, want one", s.file, s.after)
		text = strings.Join(slices.Insert(lines, i+1, s.insert), "\n")
	}
	check.OK(t, os.WriteFile(path, []byte(text), 0o644))
}

// command runs a command in the tree, and prints its output only if it fails.
func command(t testing.TB, tree, line string) {
	fmt.Println("$ " + line)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	check.MustTrue(t, err == nil, "%s: %v\n%s", line, err, out)
}

// checkServer imports a feed with the new field, and checks it and the new path
// over HTTP.
func checkServer(t testing.TB, tree string) {
	command(t, tree, "bin/palmares import "+writeFeed(t, tree, "former.ndjson", demo.Catalog()))
	command(t, tree, "bin/palmares import "+feedWithLicense(t, tree))
	command(t, tree, "bin/palmares accounts create ana@example.com --plan pro")
	command(t, tree, "bin/palmares keys create ana@example.com --name recipes > key")
	key := check.Try(os.ReadFile(filepath.Join(tree, "key"))).OK(t)
	cmd := exec.Command(filepath.Join(tree, "bin", "palmares"), "serve", "--listen", "127.0.0.1:0")
	cmd.Dir = tree
	server := blackbox.ServeCommand(t, cmd)
	for _, c := range []struct {
		name, path string
		keys       []string
		want       any
	}{
		{"REST field", "/api/v1/tools/plume", []string{"license"}, "MIT"},
		{"REST field without a value", "/api/v1/tools/atelier-nova", []string{"license"}, nil},
		{"GraphQL field", `/graphql?query={tool(slug:%22plume%22){license}}`, []string{"data", "tool", "license"}, "MIT"},
		{"REST filter", "/api/v1/tools?has_avis=false", []string{"meta", "total"}, 8.0},
		{"GraphQL filter", `/graphql?query={tools(filter:{hasAvis:false}){meta{total}}}`, []string{"data", "tools", "meta", "total"}, 8.0},
		{"REST path", "/api/v1/totals", []string{"active"}, 48.0},
		{"OpenAPI field", "/api/v1/openapi.json", []string{"components", "schemas", "ToolItem", "properties", "license", "type"}, "string"},
		{"OpenAPI path", "/api/v1/openapi.json", []string{"paths", "/api/v1/totals", "get", "summary"}, "Totals"},
		{"event schema", "/schemas/events/tool.created.json", nil, nil},
		{"feed schema", "/schemas/feed/tool.json", nil, nil},
		{"journal", `/graphql?query={changes(last:30){nodes{fields,after}}}`, nil, nil},
	} {
		status, body := server.Get(t, c.path)
		var got any = body
		for _, key := range c.keys {
			object, _ := got.(map[string]any)
			value, exists := object[key]
			check.MustTrue(t, exists, "%s: got no %q in %d %v, want it", c.name, key, status, body)
			got = value
		}
		switch {
		case status != http.StatusOK:
			t.Fatalf("%s: got %d %v, want 200", c.name, status, body)
		case c.keys == nil && !strings.Contains(fmt.Sprint(got), "license"):
			t.Fatalf("%s: got no license in %v, want it", c.name, got)
		case c.keys != nil && got != c.want:
			t.Fatalf("%s: got %v, want %v", c.name, got, c.want)
		}
		fmt.Println("ok", c.name)
	}
	for _, c := range []struct{ name, path, want string }{
		{"CSV column", "/api/v1/tools.csv", ",license"},
		{"page", "/en/changes?type=tool_updated", "code license"},
	} {
		response, body, err := blackbox.Do(t.Context(), http.DefaultClient, http.MethodGet, "http://"+server.Address+c.path, "",
			"Authorization", "Bearer "+strings.TrimSpace(string(key)))
		check.OK(t, err)
		check.MustTrue(t, response.StatusCode == http.StatusOK && strings.Contains(string(body), c.want), "%s: got %d %.300s, want 200 with %q", c.name, response.StatusCode, body, c.want)
		fmt.Println("ok", c.name)
	}
	for _, export := range []struct{ format, to, file string }{
		{"parquet", "files", "files/tools.parquet"}, {"sqlite", "catalog.sqlite", "catalog.sqlite"},
	} {
		command(t, tree, "bin/palmares export --format "+export.format+" "+export.to)
		data := check.Try(os.ReadFile(filepath.Join(tree, export.file))).OK(t)
		check.MustTrue(t, bytes.Contains(data, []byte("license")), "%s: got no column license, want one", export.file) // both formats contain the names of columns
		fmt.Println("ok", export.format, "column")
	}
}

// feedWithLicense writes the demo feed with a license of one tool.
func feedWithLicense(t testing.TB, tree string) (path string) {
	const slug = `"slug":"plume",`
	n := bytes.Count(demo.Catalog(), []byte(slug))
	check.MustTrue(t, n == 1, "got %d tools named plume in the demo feed, want 1", n)
	return writeFeed(t, tree, "licensed.ndjson", bytes.Replace(demo.Catalog(), []byte(slug), []byte(slug+`"license":"MIT",`), 1))
}

func writeFeed(t testing.TB, tree, name string, data []byte) (path string) {
	path = filepath.Join(tree, name)
	check.OK(t, os.WriteFile(path, data, 0o644))
	return path
}
