// Recipes follows two recipes of CONTRIBUTING.md on a copy of the tree: it adds
// a field to tools and a REST path, regenerates code and golden files, starts
// the server and checks the result over HTTP. It fails if a recipe needs more
// files edited by hand than it promises.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
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

var recipes = []recipe{
	{
		name:     "Add a field to tools",
		maxFiles: 5,
		steps: []step{
			{"ent/schema/tool.go", `field.String("alternatives_url")`, `		field.String("license").Optional().Nillable(),`,
				[]string{"make generate", "make migration NAME=add_license"}},
			{"internal/catalog/record/record.go", `json:"alternatives_url"`, "	License *string `json:\"license,omitzero\" rule:\"text\" event:\"The license; null if unknown.\"`", nil},
			{"graph/schema/tool.graphql", `  alternativesUrl:`, "  \"The license, such as `MIT`; null if unknown.\"\n  license: String", []string{"make generate"}},
			{"graph/tool_fields.go", `{"alternativesUrl"`, `	{"license", []string{tool.FieldLicense}, func(t *model.Tool, row *ent.Tool) { t.License = row.License }},`, nil},
			{"rest/queries/fragments.graphql", `alternatives_url: alternativesUrl`, `  license`, []string{"go test ./rest -update"}},
		},
	},
	{
		name:     "Add a REST path",
		maxFiles: 2,
		steps: []step{
			{"rest/routes.go", `var routes = []route{`, `	{path: "/api/v1/totals", query: "totals", summary: "Totals", details: "The number of active and retired tools."},`, nil},
			{"rest/queries/totals.graphql", "", "query totals {\n  body: stats {\n    ...Totals\n  }\n}\n\nfragment Totals on Statistics {\n  active: toolsTotal\n  retired: toolsRetired\n}\n",
				[]string{"go test ./rest -update"}},
		},
	},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "recipes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	tree, err := os.MkdirTemp("", "palmares-recipes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if err := copyTree(ctx, tree); err != nil {
		return err
	}
	for _, r := range recipes {
		if err := r.follow(ctx, tree); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if err := command(ctx, tree, "go build -o bin/palmares ./cmd/palmares"); err != nil {
		return err
	}
	return checkServer(ctx, tree)
}

// copyTree copies all files that git tracks or would add.
func copyTree(ctx context.Context, to string) error {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted and not yet committed
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func (r recipe) follow(ctx context.Context, tree string) error {
	var files []string
	for _, s := range r.steps {
		fmt.Printf("%s: edit %s\n", r.name, s.file)
		if err := s.edit(tree); err != nil {
			return err
		}
		for _, line := range s.commands {
			if err := command(ctx, tree, line); err != nil {
				return err
			}
		}
		files = append(files, s.file)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	fmt.Printf("%s: %d files edited by hand: %s\n", r.name, len(files), strings.Join(files, ", "))
	if len(files) > r.maxFiles {
		return fmt.Errorf("got %d files edited by hand, want at most %d", len(files), r.maxFiles)
	}
	return nil
}

func (s step) edit(tree string) error {
	path := filepath.Join(tree, s.file)
	if s.after == "" {
		return os.WriteFile(path, []byte(s.insert), 0o644)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, s.after) })
	if i < 0 {
		return fmt.Errorf("%s: got no line with %q", s.file, s.after)
	}
	lines = slices.Insert(lines, i+1, s.insert)
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

// command runs a command in the tree, and prints its output only if it fails.
func command(ctx context.Context, tree, line string) error {
	fmt.Println("$ " + line)
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// checkServer imports a feed with the new field, and checks it and the new path
// over HTTP.
func checkServer(ctx context.Context, tree string) error {
	feed, err := feedWithLicense(tree)
	if err != nil {
		return err
	}
	if err := command(ctx, tree, "bin/palmares import "+feed); err != nil {
		return err
	}
	base, stop, err := startServer(ctx, tree)
	if err != nil {
		return err
	}
	defer stop()
	for _, check := range []struct {
		name, path string
		keys       []string
		want       any
	}{
		{"REST field", "/api/v1/tools/plume", []string{"license"}, "MIT"},
		{"REST field without a value", "/api/v1/tools/atelier-nova", []string{"license"}, nil},
		{"GraphQL field", `/graphql?query={tool(slug:"plume"){license}}`, []string{"data", "tool", "license"}, "MIT"},
		{"REST path", "/api/v1/totals", []string{"active"}, 48.0},
		{"OpenAPI field", "/api/v1/openapi.json", []string{"components", "schemas", "ToolItem", "properties", "license", "type"}, "string"},
		{"OpenAPI path", "/api/v1/openapi.json", []string{"paths", "/api/v1/totals", "get", "summary"}, "Totals"},
		{"event schema", "/schemas/events/tool.created.json", nil, nil},
	} {
		got, err := get(ctx, base+strings.ReplaceAll(check.path, `"`, "%22"))
		for _, key := range check.keys {
			object, isObject := got.(map[string]any)
			if value, exists := object[key]; isObject && exists {
				got = value
			} else if err == nil {
				err = fmt.Errorf("got no %q in %v", key, got)
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", check.name, err)
		case check.keys == nil && !strings.Contains(fmt.Sprint(got), "license"):
			return fmt.Errorf("%s: got no license in %v", check.name, got)
		case check.keys != nil && got != check.want:
			return fmt.Errorf("%s: got %v, want %v", check.name, got, check.want)
		}
		fmt.Println("ok", check.name)
	}
	return nil
}

// feedWithLicense writes the demo feed with a license of one tool.
func feedWithLicense(tree string) (path string, err error) {
	demo, err := os.ReadFile(filepath.Join(tree, "internal", "catalog", "feed", "demo", "catalog.ndjson"))
	if err != nil {
		return "", err
	}
	const slug = `"slug":"plume",`
	if strings.Count(string(demo), slug) != 1 {
		return "", fmt.Errorf("got %d tools named plume in the demo feed, want 1", strings.Count(string(demo), slug))
	}
	path = filepath.Join(tree, "licensed.ndjson")
	return path, os.WriteFile(path, []byte(strings.Replace(string(demo), slug, slug+`"license":"MIT",`, 1)), 0o644)
}

// startServer starts the server on a free port and returns its base URL.
func startServer(ctx context.Context, tree string) (base string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, "bin/palmares", "serve", "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Stderr = tree, io.Discard
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, after, found := strings.Cut(lines.Text(), "http://"); found {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			host, _, _ := strings.Cut(after, "/")
			return "http://" + host, stop, nil
		}
	}
	stop()
	return "", nil, errors.New("the server did not start")
}

// get returns the JSON that a URL serves.
func get(ctx context.Context, url string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("got %d %v, want 200", response.StatusCode, body)
	}
	return body, nil
}
