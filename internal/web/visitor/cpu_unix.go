//go:build !windows

package visitor

import (
	"syscall"
	"time"
)

// processTime returns the CPU time of this process. Go cannot measure that of a single
// goroutine.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
