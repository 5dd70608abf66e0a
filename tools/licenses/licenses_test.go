package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAllowed(t *testing.T) {
	for c, want := range map[component]bool{
		{name: "a", license: "MIT"}:                true,
		{name: "a", license: "Unknown"}:            false,
		{name: "a", license: ""}:                   false,
		{name: "a", license: "GPL-3.0"}:            false,
		{name: "a", license: "(GPL-3.0 OR MIT)"}:   true,
		{name: "a", license: "GPL-3.0 AND MIT"}:    false,
		{name: "a", license: "Apache-2.0 AND MIT"}: true,
		{name: "a", license: "MPL-2.0"}:            false,
	} {
		if got := allowed(c); got != want {
			t.Errorf("%q: got %v, want %v", c.license, got, want)
		}
	}
	var out bytes.Buffer
	if err := report(&out, []component{{name: "a", license: "MIT"}, {name: "b", license: "GPL-3.0"}}); err == nil || !strings.Contains(out.String(), "not allowed: b") {
		t.Errorf("got %v and %q, want an error about b", err, &out)
	}
}

// The program has only allowed licenses.
func TestProgram(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	program := filepath.Join(t.TempDir(), "palmares")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/palmares").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := run(&out, program, filepath.Join("internal", "web", "apidocs", "web", "package-lock.json")); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"\nstd ", "\ngithub.com/lib/pq ", "\nmodernc.org/sqlite ", "\ngraphiql "} {
		if !strings.Contains("\n"+out.String(), want) {
			t.Errorf("got %s, want %q", &out, want)
		}
	}
}
