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
	"text/tabwriter"
)

// permissive licenses require only that their text is included.
var permissive = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Python-2.0", "Unicode-DFS-2016", "Unlicense", "Zlib"}

func main() {
	lock := flag.String("npm", "", "package-lock.json of the built assets")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: licenses [-npm package-lock.json] PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *lock); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// component is a dependency that is part of the program.
type component struct {
	name, version string
	license       string // SPDX expression
}

// run must be called in the root of the repository.
func run(w io.Writer, program, lock string) error {
	build, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	components, err := goModules(build)
	if err != nil {
		return err
	}
	if lock != "" {
		packages, err := npmPackages(lock)
		if err != nil {
			return err
		}
		components = append(components, packages...)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range components {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.name, c.version, c.license)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return report(w, components)
}

// report fails if a component's license is not allowed.
func report(w io.Writer, components []component) error {
	rejected := slices.DeleteFunc(slices.Clone(components), allowed)
	for _, c := range rejected {
		fmt.Fprintf(w, "not allowed: %s %s: %q\n", c.name, c.version, c.license)
	}
	if len(rejected) > 0 {
		return fmt.Errorf("%d of %d components have a license that is not allowed: see tools/licenses/main.go", len(rejected), len(components))
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
func goModules(build *debug.BuildInfo) ([]component, error) {
	modules := []component{{name: "std", version: strings.TrimPrefix(build.GoVersion, "go"), license: "BSD-3-Clause"}}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, component{name: m.Path, version: m.Version})
	}
	libraries, err := goLibraries()
	if err != nil {
		return nil, err
	}
	// A library is a module or a directory in one with a license of its own.
	for _, l := range libraries {
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
	return modules, nil
}

// goLibraries runs go-licenses, which identifies licenses by their text.
func goLibraries() ([]component, error) {
	path, err := exec.Command("go", "tool", "-C", "tools", "-n", "go-licenses").Output()
	if err != nil {
		return nil, fmt.Errorf("build go-licenses: %w", err)
	}
	var warnings bytes.Buffer // mostly about URLs that it cannot look up
	report := exec.Command(strings.TrimSpace(string(path)), "report", "palmares/cmd/palmares", "--ignore", "palmares")
	report.Stderr = &warnings
	out, err := report.Output()
	if err != nil {
		return nil, fmt.Errorf("go-licenses: %w\n%s", err, &warnings)
	}
	var libraries []component
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ",") // name, URL and license
		libraries = append(libraries, component{name: fields[0], license: fields[len(fields)-1]})
	}
	slices.SortFunc(libraries, func(a, b component) int { return strings.Compare(a.name+a.license, b.name+b.license) })
	return libraries, nil
}

// npmPackages reads the packages that the built assets consist of.
func npmPackages(lock string) ([]component, error) {
	data, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var file struct {
		Packages map[string]struct {
			Version, License string
			Dev, Optional    bool
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	var packages []component
	for path, p := range file.Packages {
		if path == "" || p.Dev || p.Optional { // build tools, and binaries for one platform
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		packages = append(packages, component{name, p.Version, p.License})
	}
	slices.SortFunc(packages, func(a, b component) int { return strings.Compare(a.name+"@"+a.version, b.name+"@"+b.version) })
	return slices.Compact(packages), nil
}
