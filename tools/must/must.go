// Package must ends a tool at the first error.
package must

import (
	"fmt"
	"os"
	"os/exec"
)

type failure struct{ error }

// Do ends the tool if there is an error.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns a value, and ends the tool if there is an error.
func Get[T any](value T, err error) T {
	Do(err)
	return value
}

// Fail ends the tool.
func Fail(format string, args ...any) { Do(fmt.Errorf(format, args...)) }

// Run runs a command, and returns what it prints to standard output.
func Run(cmd *exec.Cmd) []byte {
	var errs []byte
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		errs = exit.Stderr
	}
	if err != nil {
		Fail("%v: %w\n%s%s", cmd.Args, err, out, errs)
	}
	return out
}

// Main runs a tool, and exits with 1 after an error.
func Main(name string, run func()) {
	if err := Try(run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Try runs a function, and returns the error that ended it.
func Try(run func()) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = found.(failure) // any other panic is a defect
		}
	}()
	run()
	return nil
}
