package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/disk"
	"palmares/internal/core/store"
	"palmares/internal/server"
)

// Diff prints what an import would change.
type Diff struct {
	File    string `arg:"" help:"Path of the feed, a file (plain or gzip) or a folder; - for standard input."`
	Against string `help:"Compare with this feed instead of the database." placeholder:"PATH"`
	Format  string `help:"Format of the output: ${enum} (${default})." enum:"markdown,json" default:"markdown"`
}

// Validate is called by kong.
func (c *Diff) Validate() error {
	if c.File == "-" && c.Against == "-" {
		return errors.New("--against: only one feed can be read from standard input")
	}
	return nil
}

// Run compares a feed with the catalog, which it does not change. It needs no
// database if there is another feed to compare with, or nothing was imported yet.
func (c *Diff) Run(ctx context.Context, cfg store.Config, term Terminal) error {
	source, err := folder.OpenFeed(ctx, c.File, term.In)
	if err != nil {
		return err
	}
	defer source.Close()
	db, closeDB, err := c.openBase(ctx, cfg, term)
	if err != nil {
		return err
	}
	defer closeDB()
	bar := &progress{w: term.Err, bar: true}
	var update func(stage string, done, total int64)
	if IsTerminal(term.Err) {
		update = bar.update
	}
	diff, err := publish.Compare(ctx, db, source, update)
	bar.end(err == nil)
	if err != nil {
		return diffError(err, c.File, term)
	}
	if c.Against != "" { // the numbers of the temporary database mean nothing
		diff.Release, diff.Base.Release, diff.Base.Feed = 0, 0, c.Against
	}
	if c.Format == "json" {
		return writeJSON(term.Out, diff)
	}
	return disk.Error("standard output", WriteMarkdown(term.Out, diff))
}

// openBase opens the catalog to compare with. A missing embedded database is not
// created: the catalog is empty.
func (c *Diff) openBase(ctx context.Context, cfg store.Config, term Terminal) (db *store.Store, closeDB func(), err error) {
	cfg.ForImport = true
	if c.Against == "" {
		_, err := os.Stat(store.File(cfg.DataDir))
		if cfg.DatabaseURL != "" || !errors.Is(err, fs.ErrNotExist) {
			db, err := store.OpenMigrated(ctx, cfg)
			return db, func() { _ = db.Close() }, err
		}
		return openTemporary(ctx)
	}
	base, err := folder.OpenFeed(ctx, c.Against, term.In)
	if err != nil {
		return nil, nil, err
	}
	defer base.Close()
	if db, closeDB, err = openTemporary(ctx); err != nil {
		return nil, nil, err
	}
	if _, err = publish.Import(ctx, db, base, publish.Options{}); err != nil {
		closeDB()
		return nil, nil, diffError(err, c.Against, term)
	}
	return db, closeDB, nil
}

// openTemporary opens an empty embedded database, which is deleted when it is closed.
func openTemporary(ctx context.Context) (*store.Store, func(), error) {
	dir, err := os.MkdirTemp("", "palmares-diff-")
	if err != nil {
		return nil, nil, disk.Error("temporary folder", err)
	}
	db, err := server.Open(ctx, store.Config{DataDir: dir, ForImport: true})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// diffError prints the errors in a feed.
func diffError(err error, file string, term Terminal) error {
	var invalid *feed.ValidationError
	if errors.As(err, &invalid) {
		fmt.Fprintln(term.Err, invalid)
		return fmt.Errorf("%s: the feed is invalid", disk.Printable(file))
	}
	return err
}

func writeJSON(w io.Writer, value any) error {
	data, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return disk.Error("standard output", err)
}
