// Command fuzz runs every fuzz target of the repository for FUZZTIME (1m by default) and
// prints a table for docs/reliability.md. It exits with 1 if a target fails, is skipped or
// lacks a comment that says what it checks.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
)

// target is a fuzz target.
type target struct {
	dir, name string // the folder is relative to the root of the repository
	checks    string // what it checks, from its comment
}

func (t target) String() string { return t.dir + " " + t.name }

func main() {
	testkit.Main("fuzz", func(t testing.TB) {
		root, binaries := repo.Root(t), t.TempDir()
		cache := strings.TrimSpace(string(check.Try(exec.Command("go", "env", "GOCACHE").Output()).OK(t)))
		selected := check.Try(regexp.Compile(os.Getenv("RUN"))).OK(t)
		fmt.Print("| target | checks | executions | CPU time |\n|---|---|---|---|\n")
		for _, found := range find(t, root) {
			if selected.MatchString(found.name) {
				found.fuzz(t, root, cache, filepath.Join(binaries, strings.ReplaceAll(found.dir, "/", "-")))
			}
		}
	})
}

// find returns the targets in all test files of the repository, whatever their build tags.
func find(t testing.TB, root string) (targets []target) {
	check.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir := filepath.ToSlash(check.Try(filepath.Rel(root, filepath.Dir(path))).OK(t))
		file := check.Try(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)).OK(t)
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Fuzz") {
				continue
			}
			name := function.Name.Name
			comment, ok := strings.CutPrefix(strings.Join(strings.Fields(function.Doc.Text()), " "), name+" checks ")
			check.MustTrue(t, ok, "%s in %s: its comment must start with %q", name, dir, name+" checks ")
			sentence, _, _ := strings.Cut(comment, ". ")
			targets = append(targets, target{dir, name, strings.TrimSuffix(sentence, ".")})
		}
		return nil
	}))
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return targets
}

// executions is what the testing package prints while it fuzzes.
var executions = regexp.MustCompile(`fuzz: elapsed: .*, execs: ([0-9]+) `)

// fuzz builds the target's package once, runs the target and prints a row. The CPU time is
// that of the target, without the build.
func (f target) fuzz(t testing.TB, root, cache, binary string) {
	if _, err := os.Stat(binary); err != nil {
		build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-fuzz=Fuzz", "-o", binary, "./"+f.dir)
		build.Dir = root
		out, err := build.CombinedOutput()
		check.MustTrue(t, err == nil, "%s cannot be built: %v\n%s", f, err, out)
	}
	test := exec.Command(binary, "-test.run=^$", "-test.fuzz=^"+f.name+"$", "-test.fuzztime="+cmp.Or(os.Getenv("FUZZTIME"), "1m"),
		"-test.fuzzcachedir="+filepath.Join(cache, "fuzz", "palmares", f.dir), "-test.timeout=0")
	test.Dir = filepath.Join(root, f.dir)
	out, err := test.CombinedOutput()
	found := executions.FindAllSubmatch(out, -1)
	switch {
	case err != nil:
		t.Errorf("%s: %v\n%s", f, err, out)
	case found == nil: // the binary has no such target, for example because of its build tags
		t.Errorf("%s was skipped\n%s", f, out)
	default:
		cpu := test.ProcessState.UserTime() + test.ProcessState.SystemTime()
		fmt.Printf("| `%s` in `%s` | %s | %s | %.0f s |\n", f.name, f.dir, f.checks, found[len(found)-1][1], cpu.Seconds())
	}
}
