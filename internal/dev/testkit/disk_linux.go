package testkit

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// MountSmallDisk mounts a file system of a limited size. Only root may.
func MountSmallDisk(size int) (dir string, unmount func(), err error) {
	// Not in a test's own directory, which other users, such as that of a
	// database server, may not enter.
	if dir, err = os.MkdirTemp("", "palmares-disk-"); err != nil {
		return "", nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		_ = os.Remove(dir)
		return "", nil, err
	}
	return dir, func() {
		_ = syscall.Unmount(dir, 0)
		_ = os.Remove(dir)
	}, nil
}

// ReadOnly makes a disk of SmallDisk read-only.
func ReadOnly(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
