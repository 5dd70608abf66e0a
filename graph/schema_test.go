package graph_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files := check.Try(filepath.Glob("schema/*.graphql")).OK(t)
	check.MustTrue(t, len(files) != 0, "got %d files, want the schema", len(files))
	var sources []*ast.Source
	for _, file := range files {
		text := check.Try(os.ReadFile(file)).OK(t)
		sources = append(sources, &ast.Source{Name: file, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

func TestSchemaHasDescriptions(t *testing.T) {
	described := 0
	verify := func(what, description string) {
		described++
		check.True(t, strings.TrimSpace(description) != "", "%s: got no description, want one", what)
	}
	for name, definition := range loadSchema(t).Types {
		if definition.BuiltIn {
			continue
		}
		verify(name, definition.Description)
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			verify(name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				verify(name+"."+field.Name+"("+argument.Name+")", argument.Description)
			}
		}
		for _, value := range definition.EnumValues {
			verify(name+"."+value.Name, value.Description)
		}
	}
	check.True(t, described >= 200, "got %d definitions, want at least 200", described)
}

// The generated code is what graph/generate writes in a copy of the
// module.
func TestGeneratedCodeIsFresh(t *testing.T) {
	testkit.FullTier(t, "it compiles a generator")
	module := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "gqlgen.yml", "graph", "auth", "ent", "internal"} {
		copyInto(t, filepath.Join("..", part), filepath.Join(module, part))
	}
	generate := exec.Command("go", "run", "./graph/generate")
	generate.Dir = module
	out, err := generate.CombinedOutput()
	check.OK(t, err, string(out))
	fresh := check.Try(filepath.Glob(filepath.Join(module, "graph", "*", "*.go"))).OK(t)
	for _, file := range fresh {
		name, _ := filepath.Rel(filepath.Join(module, "graph"), file)
		want := check.Try(os.ReadFile(file)).OK(t)
		got := check.Try(os.ReadFile(name)).OK(t, "graph/%s", name)
		check.Equal(t, string(got), string(want), "graph/%s", name)
	}
	check.True(t, len(fresh) >= 3, "got %d files, want at least 3", len(fresh))
}

// copyInto copies a file or a folder without node_modules.
func copyInto(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.Name() == "node_modules":
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
	check.OK(t, err)
}

// Malformed dates would be ignored.
func TestDatesOfDeprecatedFields(t *testing.T) {
	for _, definition := range graph.Schema().Types {
		for _, field := range definition.Fields {
			directive := field.Directives.ForName("deprecated")
			if directive == nil || directive.Arguments.ForName("reason") == nil {
				continue
			}
			reason := strings.ToLower(directive.Arguments.ForName("reason").Value.Raw)
			if (strings.Contains(reason, "since") || strings.Contains(reason, "removed on")) && document.DeprecationOf(field) == nil {
				t.Errorf("%s.%s: got no dates from %q, want some", definition.Name, field.Name, reason)
			}
		}
	}
}
