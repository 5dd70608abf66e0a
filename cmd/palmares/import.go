package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"palmares/internal/feed"
)

type importCommand struct {
	File   string `arg:"" help:"The feed, plain or gzip; - for standard input."`
	DryRun bool   `help:"Only tell what would change."`
	Force  bool   `help:"Import an older feed, or one that drops more than a fifth of the tools."`
}

// Run imports a feed and prints what changed.
func (c *importCommand) Run(ctx context.Context, s *settings, term terminal) error {
	source, err := openFeed(c.File, term.in)
	if err != nil {
		return err
	}
	defer source.Close()
	db, err := openMigrated(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()

	bar := newProgress(term.err)
	report, err := feed.Import(ctx, db, source, feed.Options{Force: c.Force, DryRun: c.DryRun, Progress: bar.update})
	bar.end()
	var faults *feed.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(term.err, faults)
		return errors.New("the feed is wrong: nothing was changed")
	}
	if err != nil {
		return fmt.Errorf("%w: nothing was changed", err)
	}
	return report.Print(term.out)
}

// openFeed opens a feed that can be read more than once: what is not a file,
// such as a pipe, is copied to one that nobody else sees.
func openFeed(name string, stdin *os.File) (io.ReadSeekCloser, error) {
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
	defer file.Close()
	return spool(file)
}

func spool(from io.Reader) (io.ReadSeekCloser, error) {
	file, err := os.CreateTemp("", "palmares-feed-")
	if err != nil {
		return nil, fmt.Errorf("cannot keep the feed in a temporary file: %s", fileProblem(err))
	}
	_ = os.Remove(file.Name()) // it lives on until it is closed
	if _, err := io.Copy(file, from); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot keep the feed in a temporary file: %s", fileProblem(err))
	}
	return file, nil
}

// fileProblem says what is wrong with a file, without the system's call names.
func fileProblem(err error) string {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "may not be opened"
	case errors.As(err, &path):
		return path.Err.Error()
	}
	return err.Error()
}

// embedded is a feed that is part of the program.
func embedded(data []byte) io.ReadSeeker { return bytes.NewReader(data) }
