package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// ProgramsVariable is the environment variable with the folder of the programs that
// tests start. The Makefile builds them before the tests. Without it, the first test
// that needs a program builds it.
const ProgramsVariable = "TEST_PROGRAMS"

// programs are the Go programs that tests start, by the name of their file. Those of
// other projects are tools of a module in a folder of its own, so that their
// dependencies do not become ours.
var programs = map[string]struct{ folder, path string }{
	"palmares":    {".", "./cmd/palmares"},
	"stripe-mock": {"internal/dev/testkit/stripemock", "github.com/stripe/stripe-mock"},
	"toxiproxy":   {"internal/dev/testkit/toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server"},
}

var builds sync.Map // a function that returns the error of the build, by path

// Program returns the path of a program for tests to start.
func Program(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(ProgramsVariable)
	path := filepath.Join(dir, name)
	if dir == "" {
		repo.Read(t) // Go's test cache does not see what the build reads
		path = filepath.Join(repo.Root(t), "bin", "test", name)
		root := repo.Root(t)
		build, _ := builds.LoadOrStore(path, sync.OnceValue(func() error { return BuildProgram(root, name) }))
		check.OK(t, build.(func() error)())
	}
	// Go's test cache compares the files that a test opens, not those that it runs.
	file := check.Try(os.Open(path)).OK(t)
	check.OK(t, file.Close())
	return path
}

// BuildProgram builds a program in bin/test of the repository.
func BuildProgram(root, name string) error {
	return replaceFile(filepath.Join(root, "bin", "test", name), func(file string) error {
		// Without debugging information, it links in half the time. Without the
		// revision, a commit does not change it.
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, programs[name].path)
		cmd.Dir = filepath.Join(root, programs[name].folder)
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, bytes.TrimSpace(out))
		}
		return nil
	})
}

// replaceFile writes a file, in one process at a time, and moves it into place when it
// is complete: Linux does not start a program that a process has open for writing. If
// the content is the same, the file stays as it is, because Go's test cache compares
// modification times.
func replaceFile(path string, write func(file string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := Lock(lock); err != nil {
		return err
	}
	file := path + ".new"
	if err := write(file); err != nil {
		return err
	}
	written, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if existing, err := os.ReadFile(path); err == nil && bytes.Equal(existing, written) {
		return nil
	}
	return os.Rename(file, path)
}
