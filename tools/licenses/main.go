// Licenses lists every Go module and npm package in the program with its license, and
// fails on a license that is not allowed. `make audit` runs it.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"palmares/tools/must"
)

// permissive licenses require only that their text is included.
var permissive = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0",
	"Python-2.0", "Unicode-DFS-2016", "Unlicense", "Zlib"}

func main() {
	lock := flag.String("npm", "", "package-lock.json of the built assets")
	flag.Parse()
	must.Main("licenses", func() { report(os.Stdout, append(goModules(flag.Arg(0)), npmPackages(*lock)...)) })
}

// component is a dependency that is part of the program.
type component struct {
	name, version string
	license       string // SPDX expression
}

// report prints the components, and fails if a license is not allowed.
func report(w io.Writer, components []component) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rejected := 0
	for _, c := range components {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.name, c.version, c.license)
	}
	must.Do(table.Flush())
	for _, c := range components {
		if !allowed(c.license) {
			fmt.Fprintf(w, "not allowed: %s %s: %q\n", c.name, c.version, c.license)
			rejected++
		}
	}
	if rejected > 0 {
		must.Fail("%d of %d components have a license that is not allowed: see tools/licenses/main.go", rejected, len(components))
	}
}

func allowed(expression string) bool {
	for choice := range strings.SplitSeq(strings.Trim(expression, "()"), " OR ") {
		if !slices.ContainsFunc(strings.Split(choice, " AND "), func(license string) bool { return !slices.Contains(permissive, license) }) {
			return true
		}
	}
	return false
}

// goModules returns the modules linked into a program, and the standard
// library. go.mod has many more, such as those of tools. It must be called in the root of
// the repository.
func goModules(program string) []component {
	build := must.Get(buildinfo.ReadFile(program))
	modules := []component{{"std", strings.TrimPrefix(build.GoVersion, "go"), "BSD-3-Clause"}}
	for _, m := range build.Deps {
		m = cmp.Or(m.Replace, m)
		modules = append(modules, component{name: m.Path, version: m.Version})
	}
	// go-licenses identifies licenses by their text; cyclonedx-gomod mistakes some. A library
	// is a module or a directory in one with a license of its own.
	tool := strings.TrimSpace(string(must.Run(exec.Command("go", "tool", "-C", "tools", "-n", "go-licenses"))))
	libraries := must.Run(exec.Command(tool, "report", "palmares/cmd/palmares", "--ignore", "palmares"))
	for _, line := range slices.Sorted(strings.Lines(string(libraries))) {
		fields := strings.Split(strings.TrimSpace(line), ",") // name, URL and license
		name, license := fields[0], fields[len(fields)-1]
		var module *component
		for i, m := range modules {
			if (name == m.name || strings.HasPrefix(name, m.name+"/")) && (module == nil || len(m.name) > len(module.name)) {
				module = &modules[i]
			}
		}
		if module != nil && !slices.Contains(strings.Split(module.license, " AND "), license) {
			module.license = strings.TrimPrefix(module.license+" AND "+license, " AND ")
		}
	}
	return modules
}

// npmPackages reads the packages that the built assets consist of.
func npmPackages(lock string) (packages []component) {
	var file struct {
		Packages map[string]struct {
			Version, License string
			Dev, Optional    bool
		}
	}
	must.Do(json.Unmarshal(must.Get(os.ReadFile(lock)), &file))
	for path, p := range file.Packages {
		if path != "" && !p.Dev && !p.Optional { // build tools, and binaries for one platform
			packages = append(packages, component{path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):], p.Version, p.License})
		}
	}
	slices.SortFunc(packages, func(a, b component) int { return strings.Compare(a.name+"@"+a.version, b.name+"@"+b.version) })
	return slices.Compact(packages)
}
