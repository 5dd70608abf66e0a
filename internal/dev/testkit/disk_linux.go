package testkit

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// MountSmallDisk mounts a file system of a limited size for the length of a
// test. Only root may.
func MountSmallDisk(t testing.TB, size int) (dir string, err error) {
	// Not in a test's own directory, which other users, such as that of a
	// database server, may not enter.
	if dir, err = os.MkdirTemp("", "palmares-disk-"); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	return dir, nil
}

// ReadOnly makes a disk of SmallDisk read-only.
func ReadOnly(t testing.TB, dir string) {
	t.Helper()
	Check(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
}
