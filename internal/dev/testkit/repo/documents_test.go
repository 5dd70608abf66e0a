package repo_test

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// SECURITY.md names tests for each of the ten risks, and all of them exist.
func TestRisksHaveTests(t *testing.T) {
	text := read(t, "SECURITY.md")
	rows := regexp.MustCompile(`(?m)^\| (API\d+) .*$`).FindAllStringSubmatch(text, -1)
	check.Must(t, len(rows), 10, "risks in SECURITY.md")
	for i, row := range rows {
		check.Equal(t, row[1], fmt.Sprint("API", i+1))
		checkTests(t, row[0])
	}
}

// docs/testing.md says where each behavior is tested, and all of those tests exist.
func TestBehaviorsHaveTests(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "docs/testing.md"), "| behavior | where |\n|---|---|\n")
	table, _, _ := strings.Cut(text, "\n\n")
	for row := range strings.Lines(table) {
		checkTests(t, strings.TrimSpace(row))
	}
	check.Equal(t, strings.Count(table, "\n") > 20, true, "rows of docs/testing.md")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := check.Try(os.ReadFile(filepath.Join(repo.Root(t), name))).OK(t)
	return string(text)
}

// checkTests checks that a row of a table names tests, or packages with tests, and that
// all of them exist.
func checkTests(t *testing.T, row string) {
	t.Helper()
	named := regexp.MustCompile("`([a-z0-9/]+)(?:\\.((?:Test|Fuzz)\\w+))?`").FindAllStringSubmatch(row, -1)
	check.True(t, len(named) != 0, "%s: got no test, want one", row)
	for _, test := range named {
		if name := cmp.Or(test[2], `Test\w+`); !declares(t, repo.Root(t), test[1], name) {
			t.Errorf("%s: got no test %s in %s, want it", row, name, test[1])
		}
	}
}

// declares reports whether a package has a test.
func declares(t *testing.T, root, dir, name string) bool {
	t.Helper()
	files := check.Try(filepath.Glob(filepath.Join(root, path.Clean(dir), "*_test.go"))).OK(t)
	declaration := regexp.MustCompile(`(?m)^func ` + name + `\(\w+ \*testing\.[TF]\) `)
	for _, file := range files {
		source := check.Try(os.ReadFile(file)).OK(t)
		if declaration.Match(source) {
			return true
		}
	}
	return false
}
