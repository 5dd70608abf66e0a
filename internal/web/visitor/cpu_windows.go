package visitor

import (
	"syscall"
	"time"
)

// processTime returns the CPU time of this process.
func processTime() time.Duration {
	const thisProcess = ^syscall.Handle(0)
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(thisProcess, &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	const unit = 100 * time.Nanosecond
	of := func(t syscall.Filetime) time.Duration {
		return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * unit
	}
	return of(kernel) + of(user)
}
