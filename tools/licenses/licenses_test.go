package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"palmares/tools/must"
)

func TestAllowed(t *testing.T) {
	for license, want := range map[string]bool{
		"MIT": true, "Unknown": false, "": false, "GPL-3.0": false, "MPL-2.0": false,
		"(GPL-3.0 OR MIT)": true, "GPL-3.0 AND MIT": false, "Apache-2.0 AND MIT": true,
	} {
		if got := allowed(license); got != want {
			t.Errorf("%q: got %v, want %v", license, got, want)
		}
	}
	var out bytes.Buffer
	err := must.Try(func() { report(&out, []component{{name: "a", license: "MIT"}, {name: "b", license: "GPL-3.0"}}) })
	if err == nil || !strings.Contains(out.String(), "not allowed: b") {
		t.Errorf("got %v and %q, want an error about b", err, &out)
	}
}

// The program has only allowed licenses.
func TestProgram(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	program := filepath.Join(t.TempDir(), "palmares")
	must.Run(exec.Command("go", "build", "-o", program, "./cmd/palmares"))
	var out bytes.Buffer
	report(&out, append(goModules(program), npmPackages(filepath.Join("internal", "web", "apidocs", "web", "package-lock.json"))...))
	for _, want := range []string{"\nstd ", "\ngithub.com/lib/pq ", "\nmodernc.org/sqlite ", "\ngraphiql "} {
		if !strings.Contains("\n"+out.String(), want) {
			t.Errorf("got %s, want %q", &out, want)
		}
	}
}
