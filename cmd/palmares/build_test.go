package main

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The same sources give the same program in whichever folder they are, and it
// needs nothing of the system it runs on. What is built for browsers is taken
// as it is.
func TestBuildIsReproducible(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is shipped is built on Linux")
	}
	t.Parallel()
	var hashes []string
	from := filepath.Join("..", "..")
	for _, folder := range []string{"a", filepath.Join("another", "folder", "further", "down")} {
		dir := filepath.Join(t.TempDir(), folder)
		copySources(t, from, dir)
		from = dir // somebody may be editing the first
		build := exec.Command("make", "build", "ASSETS=", "VERSION=test")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		program, err := os.ReadFile(filepath.Join(dir, "bin", "palmares"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(program), dir) {
			t.Errorf("it names the folder %s", dir)
		}
		hashes = append(hashes, fmt.Sprintf("%x", sha256.Sum256(program)))
		isStatic(t, filepath.Join(dir, "bin", "palmares"))
	}
	if hashes[0] != hashes[1] {
		t.Errorf("two builds differ: %v", hashes)
	}
}

// isStatic sees that no loader and no library is asked for.
func isStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("it needs a loader")
		}
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %v, %v", libraries, err)
	}
}

// copySources copies what a build reads: no repository, and nothing that is
// large and built elsewhere.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "data", "test-output", "testdata"}, entry.Name()) && path != from:
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular(), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
