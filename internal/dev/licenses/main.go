// Licenses lists every Go module and npm package in the program with its license, and
// fails on a license that is not allowed. `make audit` runs it.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// permissive licenses require only that their text is included.
var permissive = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Python-2.0", "Unicode-DFS-2016", "Unlicense", "Zlib"}

func main() {
	lock := flag.String("npm", "", "package-lock.json of the built assets")
	flag.Parse()
	testkit.Main("licenses", func(t testing.TB) {
		if flag.NArg() != 1 {
			t.Fatal("usage: licenses [-npm package-lock.json] PROGRAM")
		}
		check.OK(t, run(t, os.Stdout, flag.Arg(0), *lock))
	})
}

// component is a dependency that is part of the program.
type component struct {
	name, version string
	license       string // SPDX expression
}

func run(t testing.TB, w io.Writer, program, lock string) error {
	build, err := buildinfo.ReadFile(program)
	check.OK(t, err)
	components := goModules(t, build)
	if lock != "" {
		components = append(components, npmPackages(t, lock)...)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range components {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.name, c.version, c.license)
	}
	check.OK(t, table.Flush())
	return report(w, components)
}

// report fails if a component's license is not allowed.
func report(w io.Writer, components []component) error {
	rejected := slices.DeleteFunc(slices.Clone(components), allowed)
	for _, c := range rejected {
		fmt.Fprintf(w, "not allowed: %s %s: %q\n", c.name, c.version, c.license)
	}
	if len(rejected) > 0 {
		return fmt.Errorf("%d of %d components have a license that is not allowed: see internal/dev/licenses/main.go", len(rejected), len(components))
	}
	return nil
}

func allowed(c component) bool {
	for choice := range strings.SplitSeq(strings.Trim(c.license, "()"), " OR ") {
		if !slices.ContainsFunc(strings.Split(choice, " AND "), func(license string) bool { return !slices.Contains(permissive, license) }) {
			return true
		}
	}
	return false
}

// goModules returns the modules linked into a program, and the standard
// library. go.mod has many more, such as those of tools.
func goModules(t testing.TB, build *debug.BuildInfo) []component {
	modules := []component{{name: "std", version: strings.TrimPrefix(build.GoVersion, "go"), license: "BSD-3-Clause"}}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, component{name: m.Path, version: m.Version})
	}
	// A library is a module or a directory in one with a license of its own.
	for _, l := range goLibraries(t) {
		var module *component
		for i, m := range modules {
			if (l.name == m.name || strings.HasPrefix(l.name, m.name+"/")) && (module == nil || len(m.name) > len(module.name)) {
				module = &modules[i]
			}
		}
		if module != nil && !slices.Contains(strings.Split(module.license, " AND "), l.license) {
			module.license = strings.TrimPrefix(module.license+" AND "+l.license, " AND ")
		}
	}
	return modules
}

// goLibraries runs go-licenses, which identifies licenses by their text.
func goLibraries(t testing.TB) []component {
	var warnings bytes.Buffer // mostly about URLs that it cannot look up
	report := exec.Command("go", "tool", "go-licenses", "report", "palmares/cmd/palmares", "--ignore", "palmares")
	report.Stderr = &warnings
	out, err := report.Output()
	if err != nil {
		t.Fatalf("go-licenses: %v\n%s", err, &warnings)
	}
	var libraries []component
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ",") // name, URL and license
		libraries = append(libraries, component{name: fields[0], license: fields[len(fields)-1]})
	}
	slices.SortFunc(libraries, func(a, b component) int { return strings.Compare(a.name+a.license, b.name+b.license) })
	return libraries
}

// npmPackages reads the packages that the built assets consist of.
func npmPackages(t testing.TB, lock string) []component {
	data, err := os.ReadFile(lock)
	check.OK(t, err)
	var file struct {
		Packages map[string]struct {
			Version, License string
			Dev, Optional    bool
		}
	}
	check.OK(t, json.Unmarshal(data, &file))
	var packages []component
	for path, p := range file.Packages {
		if path == "" || p.Dev || p.Optional { // build tools, and binaries for one platform
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		packages = append(packages, component{name, p.Version, p.License})
	}
	slices.SortFunc(packages, func(a, b component) int { return strings.Compare(a.name+"@"+a.version, b.name+"@"+b.version) })
	return slices.Compact(packages)
}
