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

	"palmares/tools/must"
)

const goal = 85 // percent of the mutants of a target

func main() { must.Main("mutants", func() { run(os.Getenv("RUN")) }) }

// run must be called in the root of the repository.
func run(only string) {
	root, selected := must.Get(os.Getwd()), must.Get(regexp.Compile(only))
	reasons := readReasons(filepath.Join(root, "tools/mutants/survivors.txt"))
	var problems []string
	var all []*mutant
	fmt.Print("| rules | file | mutants | killed | survived, with a reason | killed |\n|---|---|---|---|---|---|\n")
	for _, t := range targets {
		if !selected.MatchString(t.name) {
			continue
		}
		started := time.Now()
		found := t.run(root)
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
		must.Fail("\n%s", strings.Join(problems, "\n"))
	}
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
func readReasons(file string) map[string]string {
	reasons := map[string]string{}
	for i, line := range strings.Split(string(must.Get(os.ReadFile(file))), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " // ")
		if _, known := reasons[id]; known || strings.TrimSpace(reason) == "" {
			must.Fail("%s:%d: must be a mutant that is not listed yet, and a reason after \" // \"", file, i+1)
		}
		reasons[id] = reason
	}
	return reasons
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
func (t target) run(root string) []*mutant {
	dir := must.Get(os.MkdirTemp("", "mutants"))
	defer os.RemoveAll(dir)
	mutants := t.write(root, dir)
	var tests []test
	for i, suite := range t.suites {
		b := binary{path: filepath.Join(dir, fmt.Sprintf("test%d", i)), dir: filepath.Join(root, suite.folder)}
		build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w",
			"-overlay="+filepath.Join(dir, "overlay.json"), "-o", b.path, "./"+suite.folder)
		build.Dir = root
		must.Run(build)
		tests = append(tests, b.reach(suite.run, filepath.Join(dir, "reached"))...)
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
	return mutants
}

// write writes the mutated files and the overlay that replaces the originals by them.
func (t target) write(root, dir string) (mutants []*mutant) {
	var patterns []string
	for _, file := range t.files {
		patterns = append(patterns, "./"+filepath.Dir(file))
	}
	slices.Sort(patterns)
	loaded := must.Get(packages.Load(&packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, slices.Compact(patterns)...))
	replaced := map[string]string{}
	replace := func(file, text string) {
		replaced[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		must.Do(os.WriteFile(replaced[file], []byte(text), 0o644))
	}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			must.Do(pkg.Errors[0])
		}
		consts := constants(pkg)
		for _, syntax := range pkg.Syntax {
			path := pkg.Fset.Position(syntax.Pos()).Filename
			name := must.Get(filepath.Rel(root, path))
			if !slices.Contains(t.files, name) {
				continue
			}
			m := mutator{pkg: pkg, file: name, text: must.Get(os.ReadFile(path)), mutants: &mutants, consts: consts,
				before: map[int][]string{}, after: map[int][]string{},
				parents: map[ast.Node]ast.Node{}, imports: map[string]string{}, known: map[string]int{}}
			replace(path, m.mutate(syntax, t.only))
		}
		replace(filepath.Join(filepath.Dir(pkg.GoFiles[0]), "mutants.go"), "package "+pkg.Name+"\n"+helpers)
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replaced}))
	must.Do(os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	return mutants
}

// constants returns the package's constants, except for enumerations.
func constants(pkg *packages.Package) map[types.Object]*int {
	found := map[types.Object]*int{}
	add := func(n ast.Node) bool {
		g, ok := n.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			return true
		}
		for _, spec := range g.Specs {
			spec := spec.(*ast.ValueSpec)
			if len(spec.Values) == 0 || strings.Contains(types.ExprString(spec.Values[0]), "iota") {
				break
			}
			for _, name := range spec.Names {
				found[pkg.TypesInfo.Defs[name]] = new(int)
			}
		}
		return true
	}
	for _, file := range pkg.Syntax {
		ast.Inspect(file, add)
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
func (b binary) reach(pattern, file string) (tests []test) {
	for name := range strings.FieldsSeq(string(must.Run(exec.Command(b.path, "-test.list="+pattern)))) {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") || skipped.MatchString(name) {
			continue
		}
		must.Do(os.WriteFile(file, nil, 0o644))
		started := time.Now()
		must.Run(b.command(context.Background(), "^"+name+"$", "MUTANTS_REACHED="+file)) // fails if the test does so without a mutant
		t := test{binary: b, name: name, length: time.Since(started), reach: map[int]bool{}}
		for line := range bytes.FieldsSeq(must.Get(os.ReadFile(file))) {
			t.reach[must.Get(strconv.Atoi(string(line)))] = true
		}
		tests = append(tests, t)
	}
	if tests == nil {
		must.Fail("no test has the name %s", pattern)
	}
	return tests
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
