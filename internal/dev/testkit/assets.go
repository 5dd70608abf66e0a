package testkit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Assets builds the explorer and the API reference as `make assets` does,
// unless they are there and fresh, and returns their folder. What a test runs
// was compiled before: it has them only if they were there then.
func Assets(t testing.TB) string {
	t.Helper()
	if _, err := Node.Ensure(); err != nil {
		t.Fatal(err)
	}
	room := filepath.Join(Root(t), "internal", "web", "workbench")
	lock, err := os.Open(filepath.Join(room, "web", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // and let go of it
	if err := holdAlone(lock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "assets")
	cmd.Dir = Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make assets: %v\n%s", err, out)
	}
	return filepath.Join(room, "built")
}

// Root is the repository's: tests run in the folder of their package.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// FindRoot is Root for what is no test.
func FindRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = parent
	}
}
