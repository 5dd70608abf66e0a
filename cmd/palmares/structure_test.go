package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
)

// allowedImports lists, for each part of the program, the other parts it may
// import. Each part imports only parts listed above it, so there is no cycle.
var allowedImports = []struct {
	part    string
	allowed []string
}{
	{"ent", nil},
	{"internal/core", []string{"ent"}},
	{"internal/catalog", []string{"ent", "internal/core"}},
	{"auth", []string{"ent", "internal/core"}},
	{"graph", []string{"ent", "auth", "internal/core", "internal/catalog/journal", "internal/catalog/pricing", "internal/catalog/release", "internal/catalog/search"}},
	{"internal/transport/headers", []string{"graph"}},
	{"rest", []string{"graph", "auth", "internal/core", "internal/catalog/pricing", "internal/transport/headers"}},
	{"internal/notify", []string{"ent", "auth", "internal/core", "internal/catalog/journal", "internal/catalog/release"}},
	{"internal/transport", []string{"ent", "auth", "graph", "rest", "internal/core", "internal/catalog/files", "internal/catalog/journal", "internal/catalog/record", "internal/catalog/release", "internal/notify/mail", "internal/notify/outbox"}},
	{"internal/web", []string{"ent", "graph", "rest", "internal/core", "internal/catalog/journal", "internal/catalog/pricing", "internal/catalog/record", "internal/catalog/release", "internal/transport/downloads", "internal/transport/saved"}},
	{"internal/account", []string{"ent", "auth", "internal/core", "internal/catalog/journal", "internal/notify", "internal/transport/saved", "internal/web/chart", "internal/web/page"}},
	{"internal/ops", []string{"ent", "internal/core", "internal/notify/mail", "internal/account/billing"}},
	{"internal/dev", []string{"ent", "auth", "graph", "internal/core", "internal/catalog"}},
	{"internal/server", []string{"ent", "auth", "graph", "rest", "internal/core", "internal/catalog", "internal/notify", "internal/web", "internal/account", "internal/transport", "internal/ops"}},
	{servertest, []string{"auth", "internal/core", "internal/catalog", "internal/web/visitor", "internal/server", "internal/dev"}},
	{"test", nil}, // nothing but tests
	{"cmd", []string{"ent", "auth", "graph", "rest", "internal/core", "internal/catalog", "internal/notify", "internal/web", "internal/account", "internal/transport", "internal/ops", "internal/server"}},
}

// These packages are for tests, so they have rules of their own.
const servertest, graphtest = "internal/server/servertest", "graph/graphtest"

// forbiddenImports lists, for some packages, imports that the rules above would
// allow.
var forbiddenImports = map[string][]string{
	"internal/core/problem":    {"ent"},
	"internal/core/middleware": {"ent"},
	"internal/core/text":       {"ent"},
	"internal/core/cache":      {"ent"},
	"internal/core/atomxml":    {"ent"},
	"internal/notify/mail":     {"ent", "auth", "internal/core/store"},
	"internal/web/page":        {"ent", "graph", "internal/core/store"},
	"internal/web/site":        {"ent", "internal/core/store"},
	"internal/web/prose":       {"ent", "graph", "internal/core/store"},
	"internal/web/apidocs":     {"ent", "graph", "internal/core/store"},
	"internal/web/status":      {"graph"},
	"internal/web/queries":     {"ent", "internal/core/store"},
	"internal/ops/metrics":     {"ent", "internal/core/store"},
	"internal/ops/tracing":     {"ent", "internal/core/store"},
	"internal/transport/mcp":   {"internal/core/store"},
	// The public model knows neither HTTP nor how callers authenticate.
	"graph": {"net/http", "auth"},
	// It knows the schema, but not the catalog.
	"graph/document": {"ent", "graph/generated", "graph/model", "internal/catalog", "internal/core/store"},
	// Only package graph reads the catalog.
	"internal/transport/graphql": {"ent", "rest", "internal/core/store", "internal/catalog/release"},
}

func TestImports(t *testing.T) {
	t.Parallel()
	within := func(path, part string) bool {
		return path == "palmares/"+part || strings.HasPrefix(path, "palmares/"+part+"/")
	}
	checked := map[string]bool{}
	for importer, imported := range importsOf(t) {
		for _, rule := range allowedImports {
			if !within(importer, rule.part) || rule.part == "internal/server" && within(importer, servertest) {
				continue
			}
			checked[importer] = true
			for _, path := range imported {
				if strings.HasPrefix(path, "palmares/") && !within(path, rule.part) &&
					!slices.ContainsFunc(rule.allowed, func(part string) bool { return within(path, part) }) {
					t.Errorf("got %s importing %s, want %s to import only %v", importer, path, rule.part, rule.allowed)
				}
			}
		}
		check.True(t, checked[importer],
			"got package %s in no part of the program, want it listed in allowedImports", importer)
		for part, forbidden := range forbiddenImports {
			for _, path := range imported {
				if within(importer, part) && importer != "palmares/"+graphtest &&
					slices.ContainsFunc(forbidden, func(part string) bool { return path == part || within(path, part) }) {
					t.Errorf("got %s importing %s, want this import removed", importer, path)
				}
			}
		}
	}
}

// importsOf returns the direct imports of each package, without its tests.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	repo.Read(t)
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "palmares/...")
	out := check.Try(list.Output()).OK(t)
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	check.MustTrue(t, len(imports) >= 10, "got %d packages, want at least 10", len(imports))
	return imports
}

// TestGeneratedCodeIsFresh generates ent again from its schema, in a temporary
// module of the same name, and compares.
func TestGeneratedCodeIsFresh(t *testing.T) {
	testkit.FullTier(t, "it compiles a generator")
	t.Parallel()
	root, module := filepath.Join("..", ".."), t.TempDir()
	check.OK(t, os.CopyFS(filepath.Join(module, "ent", "schema"), os.DirFS(filepath.Join(root, "ent", "schema"))))
	for _, name := range []string{"go.mod", "go.sum", filepath.Join("ent", "generate.go"), filepath.Join("ent", "entc.go"), filepath.Join("ent", "conflict.tmpl")} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(module, name), text, 0o600)
		}
		check.OK(t, err)
	}
	generate := exec.Command("go", "generate", "./ent")
	generate.Dir = module
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("go generate: got %v, want success\n%s", err, out)
	}
	want, got := goFiles(t, filepath.Join(module, "ent")), goFiles(t, filepath.Join(root, "ent"))
	check.MustTrue(t, len(want) >= 50, "got %d generated files, want at least 50", len(want))
	for name, text := range want {
		check.Equal(t, got[name], text, "ent/%s: stale code", name)
	}
	for name := range got {
		_, exists := want[name]
		check.True(t, exists, "ent/%s: got a file that is no longer generated, want it deleted", name)
	}
}

// goFiles returns the contents of all Go files below a folder, by name.
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
	check.OK(t, err)
	return files
}
