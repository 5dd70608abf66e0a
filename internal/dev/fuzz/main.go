// Command fuzz runs every fuzz target of the repository for FUZZTIME (1m by default) and
// prints a table for docs/reliability.md. It exits with 1 if a target fails, is skipped or
// lacks a comment that says what it checks.
package main

import (
	"bytes"
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
	"time"

	"palmares/internal/dev/testkit/repo"
)

// target is a fuzz target.
type target struct {
	dir, name string // the folder is relative to the root of the repository
	checks    string // what it checks, from its comment
}

func (t target) String() string { return t.dir + " " + t.name }

func main() {
	if err := run(os.Getenv("FUZZTIME"), os.Getenv("RUN")); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(fuzzTime, only string) error {
	root, err := repo.Find()
	if err != nil {
		return err
	}
	targets, err := find(root)
	if err != nil {
		return err
	}
	selected, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	binaries, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer os.RemoveAll(binaries)
	cacheDir, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	var failed []string
	fmt.Print("| target | checks | executions | CPU time |\n|---|---|---|---|\n")
	for _, t := range targets {
		if !selected.MatchString(t.name) {
			continue
		}
		r := runner{root: root, cache: strings.TrimSpace(string(cacheDir)), binary: filepath.Join(binaries, strings.ReplaceAll(t.dir, "/", "-")), time: cmp.Or(fuzzTime, "1m")}
		executions, cpu, err := r.fuzz(t)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", t, err)
			failed = append(failed, t.String())
			continue
		}
		fmt.Printf("| `%s` in `%s` | %s | %s | %.0f s |\n", t.name, t.dir, t.checks, executions, cpu.Seconds())
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// find returns the targets in all test files of the repository, whatever their build tags.
func find(root string) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Fuzz") {
				continue
			}
			name := function.Name.Name
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			comment, ok := strings.CutPrefix(strings.Join(strings.Fields(function.Doc.Text()), " "), name+" checks ")
			if !ok {
				return fmt.Errorf("%s in %s: its comment must start with %q", name, dir, name+" checks ")
			}
			sentence, _, _ := strings.Cut(comment, ". ")
			targets = append(targets, target{filepath.ToSlash(dir), name, strings.TrimSuffix(sentence, ".")})
		}
		return nil
	})
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return targets, err
}

// runner fuzzes one target.
type runner struct{ root, cache, binary, time string }

// progress is what the testing package prints while it fuzzes.
var progress = regexp.MustCompile(`fuzz: elapsed: .*, execs: ([0-9]+) `)

// fuzz builds the target's package once and runs the target. The CPU time is that of the
// target, without the build.
func (r runner) fuzz(t target) (executions string, cpu time.Duration, err error) {
	if _, err := os.Stat(r.binary); err != nil {
		build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-fuzz=Fuzz", "-o", r.binary, "./"+t.dir)
		build.Dir = r.root
		if out, err := build.CombinedOutput(); err != nil {
			return "", 0, fmt.Errorf("cannot be built: %w\n%s", err, out)
		}
	}
	test := exec.Command(r.binary, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+r.time,
		"-test.fuzzcachedir="+filepath.Join(r.cache, "fuzz", "palmares", t.dir), "-test.timeout=0")
	test.Dir = filepath.Join(r.root, t.dir)
	var out bytes.Buffer
	test.Stdout, test.Stderr = &out, &out
	err = test.Run()
	found := progress.FindAllStringSubmatch(out.String(), -1)
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("%w\n%s", err, out.String())
	case len(found) == 0: // the binary has no such target, for example because of its build tags
		return "", 0, fmt.Errorf("was skipped\n%s", out.String())
	}
	return found[len(found)-1][1], test.ProcessState.UserTime() + test.ProcessState.SystemTime(), nil
}
