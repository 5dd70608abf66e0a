// Recipes follows three recipes of CONTRIBUTING.md on a copy of the repository: it
// adds a field to tools, a filter and a REST path, regenerates code and golden files,
// starts the server and checks the result over HTTP. It fails if a recipe
// requires more files to be edited than it states.
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// recipe is a list of edits, as in CONTRIBUTING.md, and the command after them.
type recipe struct {
	name     string
	maxFiles int
	generate string
	edits    []edit
}

// edit inserts text below the first line that contains another, replaces that if the text
// starts with "=", or creates the file if the other is empty.
type edit struct{ file, at, text string }

var recipes = []recipe{
	{"Add a field to tools", 6, "make generate NAME=add_license", []edit{
		{"ent/schema/tool.go", `field.String("alternatives_url")`, `		field.String("license").Optional().Nillable(),`},
		{"internal/catalog/record/record.go", `json:"alternatives_url"`,
			"	License *string `json:\"license,omitzero\" rule:\"text\" event:\"The license; null if unknown.\" label:\"Code license\"`"},
		{"internal/core/lang/french.json", `"Website": "Site web",`, `    "Code license": "Licence du code",`},
		{"internal/catalog/release/tool.go", `type Tool struct {`, `	License *string`},
		{"internal/catalog/release/tool.go", `t := &Tool{`, `		License: row.License,`},
		{"graph/schema/tool.graphql", `  alternativesUrl:`, "  \"The license, such as `MIT`; null if unknown.\"\n  license: String"},
		{"rest/queries/fragments.graphql", `alternatives_url: alternativesUrl`, `  license`},
	}},
	{"Add a filter", 5, "make generate", []edit{
		{"internal/catalog/release/tool.go", `type Tool struct {`, `	HasAvis bool // there is a page with its review`},
		{"internal/catalog/release/tool.go", `t := &Tool{`, `		HasAvis: row.AvisURL != nil,`},
		{"graph/schema/tool.graphql", `  hasEmbeddings: Boolean`, "  \"Tools with or without a page with their review.\"\n  hasAvis: Boolean"},
		{"graph/model/filter.go", `release.Where(func(t *release.Tool) bool { return t.InEmbeddings`, "	}\n	if f.HasAvis != nil {\n" +
			"		all = append(all, release.Where(func(t *release.Tool) bool { return t.HasAvis == *f.HasAvis }))"},
		{"rest/routes.go", `	obsolescenceMax = Parameter`, "=	hasAvis = Parameter{Param: params.Param{Name: \"has_avis\"}, " +
			"Description: \"Tools with or without a page with their review.\"}\n	obsolescenceMax = Parameter"},
		{"rest/routes.go", `obsolescenceMax, search, language, sort}`, `=obsolescenceMax, hasAvis, search, language, sort}`},
		{"rest/queries/tools.graphql", `$obsolescence_max: Float,`, `=$obsolescence_max: Float, $has_avis: Boolean,`},
		{"rest/queries/tools.graphql", `$obsolescence_max,`, `=$obsolescence_max, hasAvis: $has_avis,`},
	}},
	{"Add a REST path", 2, "make generate", []edit{
		{"rest/routes.go", `var routes = []route{`, `	{path: "/api/v1/totals", query: "totals", id: "getTotals", summary: "Totals", ` +
			`details: "The number of active and retired tools."},`},
		{"rest/queries/totals.graphql", "", "query totals {\n  body: stats {\n    ...Totals\n  }\n}\n\n" +
			"fragment Totals on Statistics {\n  active: toolsTotal\n  retired: toolsRetired\n}\n"},
	}},
}

// responses must contain these texts afterwards.
var responses = []struct{ path, want string }{
	{"/api/v1/tools/plume", `"license":"MIT"`},
	{"/api/v1/tools/atelier-nova", `"license":null`},
	{`/graphql?query={tool(slug:%22plume%22){license}}`, `{"license":"MIT"}`},
	{"/api/v1/tools?has_avis=false", `"total":8`},
	{`/graphql?query={tools(filter:{hasAvis:false}){meta{total}}}`, `"total":8`},
	{"/api/v1/totals", `"active":48`},
	{"/api/v1/openapi.json", "The license, such as `MIT`; null if unknown."},
	{"/api/v1/openapi.json", `"summary": "Totals"`},
	{"/schemas/events/tool.created.json", "license"},
	{"/schemas/feed/tool.json", "license"},
	{`/graphql?query={changes(last:30){nodes{fields,after}}}`, "license"},
	{"/api/v1/tools.csv", ",license"},
	{"/en/changes?type=tool_updated", "code license"},
}

func main() {
	testkit.Main("recipes", func(t testing.TB) {
		tree := t.TempDir()
		// All files that git tracks or would add, except deleted ones.
		command(t, ".", `git ls-files -z --cached --others --exclude-standard |
			xargs -0 sh -c 'for f; do [ ! -e "$f" ] || cp --parents -p "$f" `+tree+`; done' sh`)
		for _, r := range recipes {
			files := map[string]bool{}
			for _, e := range r.edits {
				fmt.Printf("%s: edit %s\n", r.name, e.file)
				e.apply(t, filepath.Join(tree, e.file))
				files[e.file] = true
			}
			check.MustTrue(t, len(files) <= r.maxFiles, "%s: got %d files edited by hand, want at most %d", r.name, len(files), r.maxFiles)
			command(t, tree, r.generate)
		}
		command(t, tree, "go test ./rest")
		command(t, tree, "go build -o bin/palmares ./cmd/palmares")
		checkServer(t, tree)
	})
}

func (e edit) apply(t testing.TB, path string) {
	text := e.text
	if e.at != "" {
		old := string(check.Try(os.ReadFile(path)).OK(t))
		before, after, found := strings.Cut(old, e.at)
		check.MustTrue(t, found, "%s: got no %q, want it", e.file, e.at)
		if replacement, ok := strings.CutPrefix(e.text, "="); ok {
			text = strings.ReplaceAll(old, e.at, replacement)
		} else {
			line, rest, _ := strings.Cut(after, "\n")
			text = before + e.at + line + "\n" + e.text + "\n" + rest
		}
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
// over HTTP and in exports.
func checkServer(t testing.TB, tree string) {
	const slug = `"slug":"plume",`
	check.Must(t, bytes.Count(demo.Catalog(), []byte(slug)), 1, "tools named plume in the demo feed")
	licensed := bytes.Replace(demo.Catalog(), []byte(slug), []byte(slug+`"license":"MIT",`), 1)
	for _, feed := range [][]byte{demo.Catalog(), licensed} {
		command(t, tree, "bin/palmares import "+blackbox.WriteFile(t, "feed.ndjson", feed))
	}
	command(t, tree, "bin/palmares accounts create ana@example.com --plan pro")
	command(t, tree, "bin/palmares keys create ana@example.com --name recipes > key")
	key := strings.TrimSpace(string(check.Try(os.ReadFile(filepath.Join(tree, "key"))).OK(t)))
	cmd := exec.Command(filepath.Join(tree, "bin", "palmares"), "serve", "--listen", "127.0.0.1:0")
	cmd.Dir = tree
	server := blackbox.ServeCommand(t, cmd)
	for _, r := range responses {
		response := server.Call(t, http.MethodGet, r.path, "", "Authorization", "Bearer "+key)
		body := blackbox.ReadAll(t, response.Body)
		check.Must(t, response.StatusCode, http.StatusOK, r.path)
		check.MustTrue(t, strings.Contains(body, r.want), "%s: got %.300s, want %s", r.path, body, r.want)
		fmt.Println("ok", r.path)
	}
	command(t, tree, "bin/palmares export --format parquet files && bin/palmares export --format sqlite catalog.sqlite")
	for _, file := range []string{"files/tools.parquet", "catalog.sqlite"} { // both formats contain the names of columns
		check.Contains(t, string(check.Try(os.ReadFile(filepath.Join(tree, file))).OK(t)), "license", file)
	}
}
