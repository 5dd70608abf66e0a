package main

import (
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/term"

	"palmares/internal/core/middleware"
)

// newLogger writes lines for people on a terminal and JSON for machines, which
// takes them gathered.
func newLogger(w io.Writer) (*slog.Logger, *middleware.Lines) {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	lines := middleware.NewLines(w)
	return slog.New(slog.NewJSONHandler(lines, nil)), lines
}

// useMemory trades memory that is there for time: what is alive is little
// beside the cache, and collecting it over and over costs a tenth of the
// answers. What the operator says goes first.
func useMemory(s *settings) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(s.CacheMB)<<20 + besideCache)
	}
}

// besideCache is what the program may take beside its cache before it
// collects more eagerly.
const besideCache = 100 << 20
