package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/tools/must"
)

// code is a package whose tests notice some changes.
var code = map[string]string{
	"go.mod": "module sample\n\ngo 1.26\n",
	"rules/rules.go": `package rules

const limit = 3

// Allowed has every kind of change.
func Allowed(n int, names ...string) (ok bool, left int) {
	if n < 0 || len(names) > 2 &&
		names[0] == "" {
		return false, 0
	}
	for _, name := range names {
		switch {
		case name == "skip":
			continue
		}
		n++
	}
	return n <= limit, limit - n
}

func ignored(n int) int { return n + 1 }
`,
	"rules/rules_test.go": `package rules

import "testing"

func TestAllowed(t *testing.T) {
	if ok, left := Allowed(3); !ok || left != 0 {
		t.Error(ok, left)
	}
	if ok, left := Allowed(2, "a", "skip"); !ok || left != 0 {
		t.Error(ok, left)
	}
	if ok, _ := Allowed(4); ok {
		t.Error(ok)
	}
}
`,
}

// All mutants of a file compile together, and those that the tests notice are killed.
func TestMutants(t *testing.T) {
	root := t.TempDir()
	for name, text := range code {
		file := filepath.Join(root, name)
		must.Do(os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(os.WriteFile(file, []byte(text), 0o644))
	}
	sample := target{name: "sample", files: []string{"rules/rules.go"}, only: regexp.MustCompile("^Allowed$"), suites: []suite{{"rules", "."}}}
	found := sample.run(root)
	var killed, survived []string
	for _, m := range found {
		if m.survived {
			survived = append(survived, m.change)
		} else {
			killed = append(killed, m.change)
		}
	}
	for _, want := range []string{"!(n < 0)", "!(n <= limit)", "n < limit", "limit + n", "another limit", "without n++", "without continue", "zero instead of return n <= limit, limit - n"} {
		if !slices.Contains(killed, want) {
			t.Errorf("got %q killed, want %s", killed, want)
		}
	}
	for _, want := range []string{"n <= 0", `names[0] == ""`, "len(names) >= 2"} {
		if !slices.ContainsFunc(survived, func(change string) bool { return strings.Contains(change, want) }) {
			t.Errorf("got %q survived, want %s", survived, want)
		}
	}

	reasons := map[string]string{"rules/rules.go Allowed: n <= 0": "the same", "rules/rules.go Allowed: without n++": "old", "other.go f: x": "not of these files"}
	problems := compare(found, sample.files, reasons)
	for _, want := range []string{"listed, but killed or no longer there: rules/rules.go Allowed: without n++", "survived, without a test or a reason: rules/rules.go Allowed: len(names) >= 2"} {
		if !slices.Contains(problems, want) {
			t.Errorf("got %q, want %s", problems, want)
		}
	}
	if text := strings.Join(problems, "\n"); strings.Contains(text, "n <= 0") || strings.Contains(text, "other.go") {
		t.Errorf("got %s, want nothing about listed survivors and other files", text)
	}
}
