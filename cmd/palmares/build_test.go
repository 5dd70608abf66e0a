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

// The same sources give the same static binary in any folder. Web assets are not
// rebuilt.
func TestBuildIsReproducible(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are built on Linux")
	}
	t.Parallel()
	var hashes []string
	from := filepath.Join("..", "..")
	for _, folder := range []string{"a", filepath.Join("another", "folder", "further", "down")} {
		dir := filepath.Join(t.TempDir(), folder)
		copySources(t, from, dir)
		from = dir // the original may change meanwhile
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
			t.Errorf("the binary contains the path %s", dir)
		}
		hashes = append(hashes, fmt.Sprintf("%x", sha256.Sum256(program)))
		checkStatic(t, filepath.Join(dir, "bin", "palmares"))
	}
	if hashes[0] != hashes[1] {
		t.Errorf("got different binaries, want the same: %v", hashes)
	}
}

// checkStatic checks that a binary needs no loader and no shared libraries.
func checkStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the binary needs a loader, want none")
		}
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("got shared libraries %v, %v, want none", libraries, err)
	}
}

// copySources copies the files that a build reads.
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
