package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhoMayImportWhom keeps the floors of the house apart.
func TestWhoMayImportWhom(t *testing.T) {
	t.Parallel()
	imports := importsOf(t)
	within := func(path, part string) bool {
		return path == "palmares/"+part || strings.HasPrefix(path, "palmares/"+part+"/")
	}
	for _, rule := range []struct {
		who   string
		never []string
	}{
		{"ent", []string{"graph", "rest", "auth", "cmd", "internal"}},
		{"graph", []string{"rest", "cmd"}},
		{"rest", []string{"ent", "cmd"}},
		{"auth", []string{"graph", "rest", "cmd", "internal/billing", "internal/portal", "internal/mail"}},
		{"internal", []string{"cmd", "rest"}},
		{"internal/problem", []string{"ent", "graph"}},
		{"internal/middleware", []string{"ent", "graph"}},
		{"internal/fold", []string{"ent", "graph", "internal/store"}},
		{"internal/store", []string{"internal/feed", "graph"}},
		{"internal/mail", []string{"ent", "auth", "graph", "internal/store"}},
		{"internal/billing", []string{"graph", "internal/portal"}},
		{"internal/webhook", []string{"graph", "internal/feed", "internal/portal", "internal/billing"}},
		{"internal/journal", []string{"auth", "graph", "internal/feed", "internal/store"}},
		{"internal/portal", []string{"graph", "internal/feed", "internal/cache"}},
		{"internal/page", []string{"ent", "auth", "graph", "internal/store"}},
		{"internal/site", []string{"ent", "auth", "internal/store", "internal/feed", "internal/portal"}},
		{"internal/workbench", []string{"ent", "auth", "graph", "internal/store", "internal/portal"}},
		{"internal/availability", []string{"auth", "graph", "internal/feed", "internal/portal"}},
		{"internal/guide", []string{"ent", "auth", "graph", "internal/store", "internal/site"}},
		{"internal/metrics", []string{"ent", "auth", "graph", "internal/store"}},
		{"internal/tracing", []string{"ent", "auth", "graph", "internal/store"}},
		{"internal/near", []string{"ent", "auth", "graph", "internal/store"}},
	} {
		for who, imported := range imports {
			if !within(who, rule.who) {
				continue
			}
			for _, path := range imported {
				for _, part := range rule.never {
					if within(path, part) {
						t.Errorf("%s imports %s", who, path)
					}
				}
			}
		}
	}
	for floor, allowed := range map[string][]string{
		"graph": {"graph", "ent", "auth", "internal/problem", "internal/cache", "internal/fold", "internal/journal", "internal/mean"},
		"rest":  {"rest", "graph", "auth", "internal/problem", "internal/cache", "internal/quota"},
	} {
		for who, imported := range imports {
			for _, path := range imported {
				ours := within(who, floor) && strings.HasPrefix(path, "palmares/")
				if ours && !slices.ContainsFunc(allowed, func(part string) bool { return within(path, part) }) {
					t.Errorf("%s imports %s", who, path)
				}
			}
		}
	}
	for who, imported := range imports {
		tool := within(who, "internal/testdb") || within(who, "internal/bench") || within(who, "internal/chaos") || within(who, "internal/store/newmigration")
		for _, path := range imported {
			if (within(path, "internal/testdb") || within(path, "internal/feed/feedtest")) && !tool {
				t.Errorf("%s imports %s, which is for tests", who, path)
			}
		}
	}
}

// importsOf lists what each package of ours imports directly, tests apart.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "palmares/...")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	if len(imports) < 10 {
		t.Fatalf("only %d packages are listed", len(imports))
	}
	return imports
}

// TestGeneratedCodeIsFresh generates ent again from what is written by hand,
// in a module of the same name, and compares.
func TestGeneratedCodeIsFresh(t *testing.T) {
	t.Parallel()
	house, module := filepath.Join("..", ".."), t.TempDir()
	if err := os.CopyFS(filepath.Join(module, "ent", "schema"), os.DirFS(filepath.Join(house, "ent", "schema"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", filepath.Join("ent", "generate.go")} {
		text, err := os.ReadFile(filepath.Join(house, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(module, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A process of its own is not slowed down by the race detector.
	generate := exec.Command("go", "generate", "./ent")
	generate.Dir = module
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, got := goFiles(t, filepath.Join(module, "ent")), goFiles(t, filepath.Join(house, "ent"))
	if len(want) < 50 {
		t.Fatalf("only %d files were generated", len(want))
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("ent/%s is stale: run make generate", name)
		}
	}
	for name := range got {
		if _, exists := want[name]; !exists {
			t.Errorf("ent/%s is no longer generated: delete it", name)
		}
	}
}

// goFiles maps the names of all Go files below a folder to what they say.
func goFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
