package main

import (
	"context"
	"fmt"
	"io"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
)

type exportCommand struct {
	File string `arg:"" optional:"" help:"Where to write it, compressed if it ends in .gz; standard output by default."`
}

// Run writes the catalog as a feed.
func (c *exportCommand) Run(ctx context.Context, s *settings, term terminal) error {
	db, err := store.Open(ctx, store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir, MustExist: true})
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
func (c *generateCommand) Run(ctx context.Context, term terminal) error {
	return writeFeed(c.File, term.out, func(w io.Writer) error {
		return synth.Write(ctx, w, synth.Options{Tools: c.Tools, Seed: c.Seed, Revision: c.Revision})
	})
}
