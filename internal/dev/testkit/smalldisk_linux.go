package testkit

import (
	"fmt"
	"os"
	"syscall"
)

// MountSmallDisk is SmallDisk for a program that is no test. Only root can.
func MountSmallDisk(size int) (dir string, unmount func(), err error) {
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
