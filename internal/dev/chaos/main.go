// Chaos breaks what palmares stands on, part by part, under a steady load, and
// tells what readers saw of it: three real servers behind nginx, PostgreSQL,
// Redis and a receiver of webhooks, all on loopback. It prints a table and the
// goals, and fails when one is not met.
//
//	make chaos
//	make chaos SHORT=1
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	short := flag.Bool("short", false, "faults of two or three seconds, as the tests run them")
	only := flag.String("only", "", "faults whose names contain one of these words, separated by commas")
	logs := flag.String("logs", "", "folder to keep the servers' logs in")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: chaos [-short] [-only WORDS] [-logs DIR] PALMARES")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	met, err := run(ctx, os.Stdout, flag.Arg(0), *logs, wants{short: *short, only: *only})
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	if !met {
		os.Exit(1)
	}
}

// wants is which form of it was asked for.
type wants struct {
	short   bool
	untimed bool // goals of time are not judged
	only    string
}

func (w wants) fault(name string) bool {
	for word := range strings.SplitSeq(w.only, ",") {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// run goes through the faults, prints what came of them, and tells whether
// every goal was met.
func run(ctx context.Context, out io.Writer, binary, logs string, w wants) (met bool, err error) {
	palmares, err := filepath.Abs(binary)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "palmares-chaos-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx and PostgreSQL are other users
		return false, err
	}
	if logs == "" {
		logs = dir
	}
	var all []*outcome
	for _, part := range []func(context.Context, place, wants) ([]*outcome, error){together, fullDisk, midnight} {
		outcomes, err := part(ctx, place{palmares: palmares, dir: dir, logs: logs}, w)
		if err != nil {
			return false, err
		}
		all = append(all, outcomes...)
	}
	if err := printTable(out, all); err != nil {
		return false, err
	}
	return printGoals(out, all, !w.untimed), nil
}
