// Mutants changes the rules of the service one at a time, such as a comparison, a number
// or a statement, and runs the tests of the rule each time. A change that no test notices
// must be listed with a reason in survivors.txt; a listed change that a test does notice
// must be removed from the list. It prints a table, and exits with 1 unless the list is
// correct and the tests notice at least 85 % of the changes of each target.
//
//	make mutants
//	make mutants RUN=quota
//
// The mutants of a target are compiled together, and an environment variable selects one:
// compiling each would take most of the time. A mutant only runs the tests that reach it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/tools/go/packages"
)

const goal = 85 // percent of the mutants of a target

func main() {
	if err := run(os.Getenv("RUN")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run must be called in the root of the repository.
func run(only string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	selected, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	reasons, err := readReasons(filepath.Join(root, "tools/mutants/survivors.txt"))
	if err != nil {
		return err
	}
	var problems []string
	var all []*mutant
	fmt.Print("| rules | file | mutants | killed | survived, with a reason | killed |\n|---|---|---|---|---|---|\n")
	for _, t := range targets {
		if !selected.MatchString(t.name) {
			continue
		}
		started := time.Now()
		found, err := t.run(root)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %d mutants in %.0f s\n", t.name, len(found), time.Since(started).Seconds())
		for _, file := range t.files {
			of := slices.DeleteFunc(slices.Clone(found), func(m *mutant) bool { return m.file != file })
			printRow(t.name, "`"+file+"`", of)
		}
		if killed := len(found) - survivors(found); killed*100 < goal*len(found) {
			problems = append(problems, fmt.Sprintf("%s: %d of %d mutants were killed, less than %d %%", t.name, killed, len(found), goal))
		}
		problems = append(problems, compare(found, t.files, reasons)...)
		all = append(all, found...)
	}
	printRow("**all**", "", all)
	if problems != nil {
		return errors.New("\n" + strings.Join(problems, "\n"))
	}
	return nil
}

func survivors(all []*mutant) (n int) {
	for _, m := range all {
		if m.survived {
			n++
		}
	}
	return n
}

func printRow(name, file string, all []*mutant) {
	survived := survivors(all)
	fmt.Printf("| %s | %s | %d | %d | %d | %d %% |\n", name, file, len(all), len(all)-survived, survived, (len(all)-survived)*100/max(1, len(all)))
}

// readReasons returns the reasons of the listed survivors. A line has a mutant and its
// reason, separated by " // ".
func readReasons(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " // ")
		if _, known := reasons[id]; known || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: must be a mutant that is not listed yet, and a reason after \" // \"", file, i+1)
		}
		reasons[id] = reason
	}
	return reasons, nil
}

// compare returns how the survivors of a target differ from the listed ones.
func compare(found []*mutant, files []string, reasons map[string]string) (problems []string) {
	survived := map[string]bool{}
	for _, m := range found {
		if survived[m.String()] = m.survived; m.survived && reasons[m.String()] == "" {
			problems = append(problems, "survived, without a test or a reason: "+m.String())
		}
	}
	for id := range reasons {
		file, _, _ := strings.Cut(id, " ")
		if slices.Contains(files, file) && !survived[id] {
			problems = append(problems, "listed, but killed or no longer there: "+id)
		}
	}
	slices.Sort(problems)
	return problems
}

// run returns the mutants of a target after running the tests on each of them.
func (t target) run(root string) ([]*mutant, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	mutants, err := t.write(root, dir)
	if err != nil {
		return nil, err
	}
	var tests []test
	for i, suite := range t.suites {
		b := binary{path: filepath.Join(dir, fmt.Sprintf("test%d", i)), dir: filepath.Join(root, suite.folder)}
		build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+filepath.Join(dir, "overlay.json"), "-o", b.path, "./"+suite.folder)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot be built: %w\n%s", err, out)
		}
		found, err := b.reach(suite.run, filepath.Join(dir, "reached"))
		if err != nil {
			return nil, err
		}
		tests = append(tests, found...)
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.length, b.length) })
	var group sync.WaitGroup
	numbers := make(chan int)
	for range runtime.NumCPU() {
		group.Go(func() {
			for number := range numbers {
				mutants[number-1].survived = survives(number, tests)
			}
		})
	}
	for i := range mutants {
		numbers <- i + 1
	}
	close(numbers)
	group.Wait()
	return mutants, nil
}

// write writes the mutated files and the overlay that replaces the originals by them.
func (t target) write(root, dir string) (mutants []*mutant, err error) {
	var patterns []string
	for _, file := range t.files {
		patterns = append(patterns, "./"+filepath.Dir(file))
	}
	slices.Sort(patterns)
	loaded, err := packages.Load(&packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, slices.Compact(patterns)...)
	if err != nil {
		return nil, err
	}
	replaced := map[string]string{}
	replace := func(file, text string) error {
		replaced[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		return os.WriteFile(replaced[file], []byte(text), 0o644)
	}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, pkg.Errors[0]
		}
		consts := constants(pkg)
		var folder string
		for _, syntax := range pkg.Syntax {
			path := pkg.Fset.Position(syntax.Pos()).Filename
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			folder = filepath.Dir(path)
			if !slices.Contains(t.files, name) {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			m := mutator{pkg: pkg, file: name, text: text, mutants: &mutants, parents: map[ast.Node]ast.Node{},
				imports: map[string]string{}, known: map[string]int{}, consts: consts}
			if err := replace(path, m.mutate(syntax, t.only)); err != nil {
				return nil, err
			}
		}
		if err := replace(filepath.Join(folder, "mutants.go"), "package "+pkg.Name+"\n"+helpers); err != nil {
			return nil, err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	return mutants, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)
}

// constants returns the package's constants, except for enumerations.
func constants(pkg *packages.Package) map[types.Object]*int {
	found := map[types.Object]*int{}
	for _, file := range pkg.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					spec := spec.(*ast.ValueSpec)
					if len(spec.Values) == 0 || strings.Contains(types.ExprString(spec.Values[0]), "iota") {
						break
					}
					for _, name := range spec.Names {
						found[pkg.TypesInfo.Defs[name]] = new(int)
					}
				}
			}
			return true
		})
	}
	return found
}

// binary is a test binary with mutants.
type binary struct{ path, dir string }

// test is a test with the mutants that it reaches.
type test struct {
	binary
	name   string
	length time.Duration
	reach  map[int]bool
}

// command runs tests on SQLite only: the rules are the same on all databases.
func (b binary) command(ctx context.Context, pattern string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, b.path, "-test.run="+pattern, "-test.skip=/^postgres$|//^postgres$", "-test.failfast")
	c.Dir, c.Env = b.dir, append(os.Environ(), env...)
	return c
}

// reach runs each test without a mutant.
func (b binary) reach(pattern, file string) (tests []test, err error) {
	out, err := exec.Command(b.path, "-test.list="+pattern).Output()
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") || skipped.MatchString(name) {
			continue
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			return nil, err
		}
		started := time.Now()
		if out, err := b.command(context.Background(), "^"+name+"$", "MUTANTS_REACHED="+file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, out)
		}
		t := test{binary: b, name: name, length: time.Since(started), reach: map[int]bool{}}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range bytes.FieldsSeq(data) {
			number, err := strconv.Atoi(string(line))
			if err != nil {
				return nil, err
			}
			t.reach[number] = true
		}
		tests = append(tests, t)
	}
	if tests == nil {
		return nil, errors.New("no test has the name " + pattern)
	}
	return tests, nil
}

// survives reports whether no test notices a mutant. The shortest tests run first. A test
// that takes much longer than without the mutant has noticed it.
func survives(number int, tests []test) bool {
	for _, t := range tests {
		if !t.reach[number] {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+10*t.length)
		err := t.command(ctx, "^"+t.name+"$", "MUTANT="+strconv.Itoa(number)).Run()
		cancel()
		if err != nil {
			return false
		}
	}
	return true
}
