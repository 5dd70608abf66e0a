package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os/signal"
	"syscall"

	"palmares/cmd/palmares/commands"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/ops/tracing"
	"palmares/internal/server"
)

type serveCommand struct {
	Demo bool `help:"Publish the demo catalog and its earlier editions if the database is empty."`
}

// Run serves until ctx ends and all requests in flight are finished.
func (c *serveCommand) Run(ctx context.Context, s *settings, term commands.Terminal) error {
	log, buffer := newLogger(term.Err)
	if buffer != nil {
		defer buffer.Flush()
	}
	traces, err := tracing.New(ctx, version, log)
	if err != nil {
		return err
	}
	if traces != nil {
		defer traces.Close()
		log = tracing.WithTraceIDs(log)
	}
	setDefaultLogger(log)
	// A misspelled name may be why the rest fails.
	if len(s.unknown) > 0 {
		log.WarnContext(ctx, "unknown environment variables", "names", s.unknown, "advice", "correct their names; palmares --help lists all settings")
	}
	cfg := s.server(log)
	cfg.Traces, cfg.Demo = traces, c.Demo
	served, err := server.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer served.Close()
	if missing := s.missingFacts(); len(missing) > 0 && !c.Demo {
		level := slog.LevelWarn
		if server.IsPrivate(served.PublicURL()) { // the law requires them of public sites
			level = slog.LevelInfo
		}
		log.Log(ctx, level, "about page incomplete", "missing", missing)
	}
	served.PrintBanner(term.Out)
	return served.Run(ctx)
}

// newLogger logs text to a terminal, and buffered JSON lines to anything else. The
// buffer is nil on a terminal.
func newLogger(w io.Writer) (*slog.Logger, *middleware.LogBuffer) {
	if commands.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	buffer := middleware.NewLogBuffer(w)
	return slog.New(slog.NewJSONHandler(buffer, nil)), buffer
}

// setDefaultLogger sets the logger of code that has none, and discards what the HTTP
// clients of the standard library log: webhook receivers could write anything there, as
// often as they like. Servers have their own ErrorLog.
func setDefaultLogger(l *slog.Logger) {
	slog.SetDefault(l)
	log.SetOutput(io.Discard)
}

type mcpCommand struct{}

// Run serves one client over standard input and output, which carry nothing but
// messages of the protocol. It needs no network.
func (mcpCommand) Run(ctx context.Context, cfg server.Config, db *store.Store, term commands.Terminal) error {
	cfg, err := cfg.Resolved()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // otherwise a client that closes standard output kills the process
	return server.ServeAgent(ctx, cfg, db, term.In, term.Out)
}
