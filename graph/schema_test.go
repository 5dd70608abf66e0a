package graph_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("schema/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files and %v, want the schema", len(files), err)
	}
	var sources []*ast.Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		check.OK(t, err)
		sources = append(sources, &ast.Source{Name: file, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

func TestSchemaHasDescriptions(t *testing.T) {
	described := 0
	check := func(what, description string) {
		described++
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s: got no description, want one", what)
		}
	}
	for name, definition := range loadSchema(t).Types {
		if definition.BuiltIn {
			continue
		}
		check(name, definition.Description)
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			check(name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				check(name+"."+field.Name+"("+argument.Name+")", argument.Description)
			}
		}
		for _, value := range definition.EnumValues {
			check(name+"."+value.Name, value.Description)
		}
	}
	if described < 200 {
		t.Errorf("got %d definitions, want at least 200", described)
	}
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
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("got %v, want success\n%s", err, out)
	}
	fresh, err := filepath.Glob(filepath.Join(module, "graph", "*", "*.go"))
	check.OK(t, err)
	for _, file := range fresh {
		name, _ := filepath.Rel(filepath.Join(module, "graph"), file)
		want, err := os.ReadFile(file)
		check.OK(t, err)
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("graph/%s: got stale code, want the output of make generate", name)
		}
	}
	if len(fresh) < 3 {
		t.Errorf("got %d files, want at least 3", len(fresh))
	}
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
