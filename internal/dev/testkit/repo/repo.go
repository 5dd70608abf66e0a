// Package repo finds files of the repository for tests. It imports no other package
// of ours, so that all tests can use it.
package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Find returns the nearest folder with a go.mod.
func Find() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("not in the repository: no go.mod in this folder or above it")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// sourceFolders have all Go code of the program and its tools.
var sourceFolders = []string{"auth", "cmd", "ent", "graph", "internal", "rest"}

// Read makes files inputs of Go's test cache, which does not see what a
// test's subprocesses read: without it, a cached result would hide a change. It
// reads folders of the repository, by default all that have Go code.
func Read(t testing.TB, folders ...string) {
	t.Helper()
	if len(folders) == 0 {
		folders = sourceFolders
	}
	for _, folder := range folders {
		// Opening a folder is enough: the cache compares its entries.
		err := filepath.WalkDir(filepath.Join(Root(t), folder), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
