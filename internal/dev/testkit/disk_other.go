//go:build !linux

package testkit

import "testing"

// SmallDisk mounts a file system that is soon full, where that is possible.
func SmallDisk(t testing.TB, _ int) string {
	t.Helper()
	CannotRun(t, "a small disk can only be mounted on Linux")
	return ""
}

// ForPostgres is never reached without a SmallDisk.
func ForPostgres(testing.TB, string) {}

// ReadOnly is never reached without a SmallDisk.
func ReadOnly(testing.TB, string) {}
