package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
)

type importCommand struct {
	File   string `arg:"" help:"The feed, plain or gzip; - for standard input."`
	DryRun bool   `help:"Only tell what would change."`
	Force  bool   `help:"Import an older feed, or one that drops more than a fifth of the tools."`
}

// Run imports a feed and prints what changed.
func (c *importCommand) Run(ctx context.Context, s *settings, term terminal) error {
	source, err := openFeed(ctx, c.File, term.in)
	if err != nil {
		return err
	}
	defer source.Close()
	s.importing = true
	db, err := openMigrated(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()

	bar := newProgress(term.err)
	report, err := feed.Import(ctx, db, source, feed.Options{Force: c.Force, DryRun: c.DryRun, Progress: bar.update})
	bar.end(err == nil)
	if err != nil {
		return importProblem(err, term.err)
	}
	if err := report.Print(term.out); err != nil {
		// The import itself is done: failing now would only make someone do it again.
		fmt.Fprintln(term.err, "palmares: the import is done, but its report cannot be written")
	}
	return nil
}

// importProblem tells what is wrong and what came of it.
func importProblem(err error, w io.Writer) error {
	var faults *feed.Faults
	var database *store.Fault
	switch {
	case errors.As(err, &faults):
		fmt.Fprintln(w, faults)
		return errors.New("nothing was changed: the feed is wrong")
	case errors.As(err, &database) && database.Unsure:
		return fmt.Errorf("%w: import the feed again, which changes nothing if it is in", err)
	case errors.Is(err, context.Canceled):
		return errInterrupted
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

var errInterrupted = errors.New("nothing was changed: interrupted")

// openFeed opens a feed that can be read more than once: what is not a file,
// such as a pipe, is copied to one that nobody else sees.
func openFeed(ctx context.Context, name string, stdin *os.File) (io.ReadSeekCloser, error) {
	file := stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, fmt.Errorf("%s: %s", name, fileProblem(err))
		}
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s", name, fileProblem(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory", name)
	case info.Mode().IsRegular():
		return file, nil
	}
	return spool(ctx, file)
}

func spool(ctx context.Context, from io.Reader) (io.ReadSeekCloser, error) {
	file, err := os.CreateTemp("", "palmares-feed-")
	if err != nil {
		return nil, fmt.Errorf("cannot keep the feed in a temporary file: %s", fileProblem(err))
	}
	_ = os.Remove(file.Name()) // it lives on until it is closed
	// Nothing wakes a read from a silent pipe, so a signal does not wait for it.
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(file, from)
		copied <- err
	}()
	select {
	case <-ctx.Done():
		return nil, errInterrupted
	case err = <-copied:
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot keep the feed in a temporary file: %s", fileProblem(err))
	}
	return file, nil
}
