// Withpostgres runs a command with a temporary PostgreSQL server, whose URL is in
// TEST_DATABASE_URL. If the variable is already set, it uses that server.
// Missing programs are installed first if possible. A second run in the same
// checkout waits until the first one ends.
//
//	withpostgres -template go test ./...
package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"palmares/internal/dev/testkit"
)

func main() {
	durable := flag.Bool("durable", false, "write to disk like a production server, for benchmarks")
	template := flag.Bool("template", false, "also create a migrated database for tests to copy")
	tools := flag.Bool("tools", false, "also install the other programs that make test-full uses")
	flag.Parse()
	code := 0
	testkit.Main("withpostgres", func(t testing.TB) {
		if flag.NArg() == 0 {
			t.Fatal("usage: withpostgres [-durable] [-template] [-tools] COMMAND [ARGUMENTS]")
		}
		if *tools {
			for _, need := range testkit.Needs {
				need.Ensure(t)
			}
		}
		checkout := testkit.LockCheckout(t)
		if os.Getenv(testkit.URLVariable) == "" {
			options := []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
			if *durable {
				options = nil
			}
			testkit.Check(t, os.Setenv(testkit.URLVariable, checkout.StartCluster(t, options...).URL))
		}
		if *template {
			testkit.MakeTemplate(t, checkout.Template())
		}
		checkout.CollectNotes(t)
		code = run(t, flag.Args())
	})
	os.Exit(code)
}

// run runs a command and returns its exit code. If this process is interrupted,
// the command ends before the database does; Ctrl-C also reaches it directly.
func run(t testing.TB, command []string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	testkit.Check(t, cmd.Start())
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	err := cmd.Wait()
	close(ended)
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	testkit.Check(t, err)
	return 0
}
