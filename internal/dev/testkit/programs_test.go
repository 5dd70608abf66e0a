package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"palmares/internal/dev/check"
)

// Several test processes build the same program at once, and start it as soon as it is
// there. Linux refuses to start a file that another process has open for writing.
func TestProgramsStartWhileOthersBuildThem(t *testing.T) {
	const rounds, processes = 200, 4
	program := check.Try(exec.LookPath("true")).OK(t)
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "program")
		var failed [processes]error
		var group sync.WaitGroup
		for i := range processes {
			group.Go(func() {
				// A copy by another process takes the place of the linker.
				failed[i] = replaceFile(path, func(file string) error { return exec.Command("cp", program, file).Run() })
				if failed[i] == nil {
					failed[i] = exec.Command(path).Run()
				}
			})
		}
		group.Wait()
		for _, err := range failed {
			check.OK(t, err, "round %d", round)
		}
	}
}

// A program that did not change keeps its modification time, so that Go can use the
// cached results of the tests that start it.
func TestUnchangedProgramStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bin", "program")
	build := func(content string) os.FileInfo {
		check.OK(t, replaceFile(path, func(file string) error { return os.WriteFile(file, []byte(content), 0o755) }))
		info := check.Try(os.Stat(path)).OK(t)
		return info
	}
	first := build("one")
	again := build("one")
	check.True(t, os.SameFile(first, again), "the same content: got another file, want the first one")
	changed := build("two")
	check.True(t, !os.SameFile(first, changed), "another content: got the first file, want another one")
	failure := fmt.Errorf("no space")
	check.Equal(t, replaceFile(path, func(string) error { return failure }), failure)
	text, err := os.ReadFile(path)
	check.True(t, err == nil && string(text) == "two", "after a failed build: got %q and %v, want the last program", text, err)
}
