package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("schema/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var sources []*ast.Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: file, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

// Everything that a caller can name says what it is.
func TestEverythingIsDescribed(t *testing.T) {
	described := 0
	check := func(what, description string) {
		described++
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", what)
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
		t.Errorf("only %d things were looked at", described)
	}
}

// TestGeneratedCodeIsFresh generates gqlgen's part again elsewhere and compares.
func TestGeneratedCodeIsFresh(t *testing.T) {
	t.Chdir("..")
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, file := range []string{cfg.Exec.Filename, cfg.Model.Filename} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want[file] = string(text)
	}
	// Generating writes in place; what was there is put back.
	t.Cleanup(func() {
		for file, text := range want {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	if err := api.Generate(cfg); err != nil {
		t.Fatal(err)
	}
	for file, text := range want {
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%s is stale: run make generate", file)
		}
	}
}
