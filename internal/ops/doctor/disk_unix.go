//go:build linux || darwin || freebsd

package doctor

import "syscall"

// freeSpace returns the bytes that an unprivileged user can still write.
func freeSpace(dir string) (free int64, known bool) {
	var disk syscall.Statfs_t
	if syscall.Statfs(dir, &disk) != nil {
		return 0, false
	}
	return int64(disk.Bavail) * int64(disk.Bsize), true
}
