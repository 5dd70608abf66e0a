// Withpostgres runs a command with a temporary PostgreSQL server, whose URL is in
// TEST_DATABASE_URL. If the variable is already set, it uses that server.
// Missing programs are installed first if possible.
//
//	withpostgres -tools go test -race ./...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"palmares/internal/dev/testkit"
)

func main() {
	durable := flag.Bool("durable", false, "write to disk like a production server, for benchmarks")
	tools := flag.Bool("tools", false, "also install the other programs that tests use, and migrate a template database")
	flag.Parse()
	code, err := run(*durable, *tools, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(code)
}

func run(durable, tools bool, command []string) (int, error) {
	if len(command) == 0 {
		return 2, errors.New("usage: withpostgres [-durable] [-tools] COMMAND [ARGUMENTS]")
	}
	if tools {
		for _, need := range testkit.Needs {
			if _, err := need.Ensure(); err != nil {
				return 1, err
			}
		}
	}
	if os.Getenv(testkit.URLVariable) == "" {
		stop, err := startCluster(durable)
		if err != nil {
			return 1, err
		}
		defer stop()
	}
	if tools {
		drop, err := testkit.MakeTemplate(context.Background())
		if err != nil {
			return 1, err
		}
		defer func() { _ = drop() }()
	}
	printNotes, err := testkit.CollectNotes()
	if err != nil {
		return 1, err
	}
	defer printNotes()

	// Ctrl-C reaches the command directly; we only clean up after it.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	go func() {
		<-ctx.Done()
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}()
	var exit *exec.ExitError
	switch err := cmd.Wait(); {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil
	case err != nil:
		return 1, err
	}
	return 0, nil
}

func startCluster(durable bool) (stop func(), err error) {
	bin, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		return nil, err
	}
	var options []string
	if !durable {
		options = []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
	}
	cluster, err := testkit.StartCluster(context.Background(), bin, options...)
	if err != nil {
		return nil, err
	}
	return cluster.Stop, os.Setenv(testkit.URLVariable, cluster.URL)
}
