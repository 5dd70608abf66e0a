package main

import (
	"fmt"
	"runtime"
)

// version is set by the linker: see the Makefile.
var version = "development"

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(term terminal) error {
	_, err := fmt.Fprintf(term.out, "palmares %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
