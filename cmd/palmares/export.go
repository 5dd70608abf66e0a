package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"palmares/internal/feed"
	"palmares/internal/feed/synth"
)

type exportCommand struct {
	File string `arg:"" optional:"" help:"Where to write it, compressed if it ends in .gz; standard output by default."`
}

// Run writes the catalog as a feed.
func (c *exportCommand) Run(ctx context.Context, s *settings, term terminal) error {
	db, err := openStore(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckMigrated(ctx); err != nil {
		return err
	}
	return writeFeed(c.File, term.out, func(w io.Writer) error { return feed.Export(ctx, db, w) })
}

type generateCommand struct {
	File     string `arg:"" optional:"" help:"Where to write it, compressed if it ends in .gz; standard output by default."`
	Tools    int    `help:"How many active tools." default:"5000"`
	Seed     uint64 `help:"The same seed gives the same feed." default:"1"`
	Revision int    `help:"The catalog after so many rounds of edits, each changing a twentieth of the tools." default:"0"`
}

// Validate is called by the parser.
func (c *generateCommand) Validate() error {
	switch {
	case c.Tools < 1 || c.Tools > 10_000_000:
		return fmt.Errorf("--tools: %d is not from 1 to 10000000", c.Tools)
	case c.Revision < 0 || c.Revision > 10_000:
		return fmt.Errorf("--revision: %d is not from 0 to 10000", c.Revision)
	}
	return nil
}

// Run writes a synthetic feed.
func (c *generateCommand) Run(term terminal) error {
	return writeFeed(c.File, term.out, func(w io.Writer) error {
		return synth.Write(w, synth.Options{Tools: c.Tools, Seed: c.Seed, Revision: c.Revision})
	})
}

// writeFeed writes to standard output or, all or nothing, to a file.
func writeFeed(name string, stdout io.Writer, write func(io.Writer) error) (err error) {
	if name == "" || name == "-" {
		return write(stdout)
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".palmares-")
	if err != nil {
		return fmt.Errorf("%s: %s", name, fileProblem(err))
	}
	defer func() {
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if strings.HasSuffix(name, ".gz") {
		compressed := gzip.NewWriter(file)
		if err := write(compressed); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return fmt.Errorf("%s: %s", name, fileProblem(err))
		}
	} else if err := write(file); err != nil {
		return err
	}
	// A feed that is published is not a secret; temporary files are.
	if err := file.Chmod(0o644); err != nil {
		return fmt.Errorf("%s: %s", name, fileProblem(err))
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("%s: %s", name, fileProblem(err))
	}
	return os.Rename(file.Name(), name)
}
