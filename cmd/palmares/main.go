// Palmares serves a catalog of tested AI tools, and imports it from a feed.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"palmares/cmd/palmares/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal starts a graceful shutdown, a second one kills the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], commands.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
