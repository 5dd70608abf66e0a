package testkit

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// SmallDisk mounts a file system that is soon full, for the length of a test.
func SmallDisk(t testing.TB, size int) string {
	t.Helper()
	// Not below the test's own folder, which only its owner may enter: a
	// database server is somebody else.
	dir, err := os.MkdirTemp("", "palmares-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		CannotRun(t, "a small disk can only be mounted by root")
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// ForPostgres hands a folder to the user whom a cluster of ours runs as.
func ForPostgres(t testing.TB, dir string) {
	t.Helper()
	uid, gid, err := somebody()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
}

// ReadOnly lets nobody write any more to a disk that SmallDisk mounted.
func ReadOnly(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
