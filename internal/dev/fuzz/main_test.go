package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// docs/reliability.md lists every target with the CPU time that was spent on it.
func TestFiguresOfAllTargets(t *testing.T) {
	root := repo.Root(t)
	var want []string
	for _, found := range find(t, root) {
		want = append(want, found.String())
	}
	text := check.Try(os.ReadFile(filepath.Join(root, "docs", "reliability.md"))).OK(t)
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(Fuzz[A-Za-z0-9_]*)` in `([^`]*)` \\|.* \\| [0-9]+ s \\|$").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[2]+" "+row[1])
	}
	check.Slices(t, got, want, "targets in docs/reliability.md, want run make fuzz, which prints the table")
	check.True(t, slices.Contains(want, "internal/core/text FuzzWords"), "got %q, want FuzzWords too", want)
}
