package testkit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// NPM installs what the lock file in dir asks for, unless it is there.
func NPM(t testing.TB, dir string) {
	t.Helper()
	if _, err := Node.Ensure(); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // and let go of it
	// The tests of other packages may want the same at the same time.
	if err := holdAlone(lock); err != nil {
		t.Fatal(err)
	}
	if installed(dir, lock) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", dir, err, out)
	}
}

// holdAlone waits until no other process, and no other caller, holds the file.
func holdAlone(file *os.File) error {
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// installed tells whether what is there is what the lock file asks for.
func installed(dir string, lock *os.File) bool {
	there, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")) // written last
	wanted, also := lock.Stat()
	return err == nil && also == nil && !there.ModTime().Before(wanted.ModTime())
}
