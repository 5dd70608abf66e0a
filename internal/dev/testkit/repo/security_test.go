package repo_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// SECURITY.md names tests for each of the ten risks, and all of them exist.
func TestRisksHaveTests(t *testing.T) {
	root := repo.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	check.OK(t, err)
	rows := regexp.MustCompile(`(?m)^\| (API\d+) .*$`).FindAllStringSubmatch(string(text), -1)
	check.Must(t, len(rows), 10, "risks in SECURITY.md")
	for i, row := range rows {
		check.Equal(t, row[1], fmt.Sprint("API", i+1))
		named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(row[0], -1)
		if len(named) == 0 {
			t.Errorf("%s: got no test, want one", row[1])
		}
		for _, test := range named {
			if !declares(t, root, test[1], test[2]) {
				t.Errorf("%s: got no test %s in %s, want it", row[1], test[2], test[1])
			}
		}
	}
}

// declares reports whether a package has a test.
func declares(t *testing.T, root, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, path.Clean(dir), "*_test.go"))
	check.OK(t, err)
	declaration := regexp.MustCompile(`(?m)^func ` + name + `\(\w+ \*testing\.[TF]\) `)
	for _, file := range files {
		source, err := os.ReadFile(file)
		check.OK(t, err)
		if declaration.Match(source) {
			return true
		}
	}
	return false
}
