// Prepare does for the tests what they do not do themselves: it installs missing
// programs, builds the programs that tests start, and starts PostgreSQL, so that a
// problem is one sentence instead of many failed tests.
//
//	prepare         for make test
//	prepare -full   for make test-full, which needs more programs
package main

import (
	"flag"
	"fmt"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
)

func main() {
	full := flag.Bool("full", false, "also install the programs that make test-full needs")
	flag.Parse()
	testkit.Main("prepare", func(t testing.TB) {
		needs := []testkit.Need{testkit.PostgreSQL}
		if *full {
			needs = append(needs, testkit.Needs...)
		}
		for _, need := range needs {
			check.OK(t, need.Install())
		}
		fmt.Println("building the programs that tests start")
		for _, name := range []string{"palmares", "stripe-mock", "toxiproxy"} {
			check.OK(t, testkit.BuildProgram(repo.Root(t), name))
		}
		fmt.Println("starting PostgreSQL")
		testkit.ServerURL(t)
	})
}
