package commands

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"palmares/ent"
	"palmares/ent/release"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/files"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/disk"
	"palmares/internal/core/store"
	"palmares/internal/server"
)

// Import publishes a feed as a new release.
type Import struct {
	File   string `arg:"" help:"Path of the feed, a file (plain or gzip) or a folder; - for standard input."`
	DryRun bool   `help:"Show what would change without importing."`
	Force  bool   `help:"Import a feed that is older than the catalog, or that removes or retires more than a fifth of the active tools."`
}

// Run imports a feed and prints what changed.
func (c *Import) Run(ctx context.Context, cfg store.Config, term Terminal) error {
	source, err := folder.OpenFeed(ctx, c.File, term.In)
	if err != nil {
		return err
	}
	defer source.Close()
	cfg.ForImport = true
	db, err := server.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()

	bar := &progress{w: term.Err, bar: IsTerminal(term.Err)}
	report, err := publish.Import(ctx, db, source, publish.Options{Force: c.Force, DryRun: c.DryRun, Progress: bar.update})
	bar.end(err == nil)
	if err != nil {
		return importError(err, term.Err)
	}
	if err := printReport(term.Out, report); err != nil {
		// Do not fail: the import succeeded and must not be repeated.
		fmt.Fprintln(term.Err, "palmares: the import succeeded, but the report cannot be written")
	}
	return nil
}

// printReport writes a report as a table.
func printReport(w io.Writer, r *publish.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tcreated\tupdated\tunchanged\tretired\tremoved\t")
	row := func(name string, c publish.Counts, retired string) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%d\t\n", name, c.Created, c.Updated, c.Unchanged, retired, c.Removed)
	}
	row("categories", r.Categories, "-")
	row("tools", r.Tools, strconv.Itoa(r.Tools.Retired))
	row("comparisons", r.Comparisons, "-")
	if err := table.Flush(); err != nil {
		return err
	}
	release := fmt.Sprintf("%d, of %s", r.Release, r.FeedDate)
	switch {
	case r.Release == 0:
		release = "none, nothing changed"
	case r.DryRun:
		release = "would be " + release + " (dry run: nothing was imported)"
	}
	_, err := fmt.Fprintf(w, "price changes: %d\nrelease: %s\n", r.PriceChanges, release)
	return err
}

// importError prints the errors in a feed and adds to other errors whether anything
// changed.
func importError(err error, w io.Writer) error {
	var invalid *feed.ValidationError
	if errors.As(err, &invalid) {
		fmt.Fprintln(w, invalid)
		return errors.New("nothing was changed: the feed is invalid")
	}
	return nothingChanged(err, ": import the feed again; nothing changes if the first import succeeded")
}

// nothingChanged adds to an error that nothing was changed, or the advice if the
// transaction may have been committed.
func nothingChanged(err error, advice string) error {
	var databaseErr *store.Error
	switch {
	case errors.As(err, &databaseErr) && databaseErr.CommitUnknown:
		return fmt.Errorf("%w%s", err, advice)
	case errors.Is(err, context.Canceled):
		return errInterrupted
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

var errInterrupted = errors.New("nothing was changed: interrupted")

// Export writes a release as a feed or as other files.
type Export struct {
	File   string `arg:"" optional:"" help:"Path of the feed, compressed if it ends in .gz. Default: standard output. With --format, path of the database, or of the folder for Parquet files."`
	To     string `help:"Write a folder with a file for each record instead." placeholder:"DIR"`
	Format string `help:"Write a SQLite database or Parquet files with the history instead: sqlite or parquet." enum:",sqlite,parquet" default:"" placeholder:"FORMAT"`
	AsOf   *int   `help:"Number of the release to export, as shown by palmares releases. Default: the newest." placeholder:"NUMBER" min:"1"`
}

// Validate is called by kong.
func (c *Export) Validate() error {
	if c.File != "" && c.To != "" {
		return errors.New("--to: name a file or a folder, not both")
	}
	if c.Format != "" && c.File == "" {
		return fmt.Errorf("--format: name the file or folder to write, as in palmares export --format %s NAME", c.Format)
	}
	return nil
}

func (c *Export) Run(ctx context.Context, db *store.Store, readme Readme, term Terminal) error {
	asOf := valueOf(c.AsOf)
	if c.To != "" {
		return folder.Error(c.To, exportFolder(ctx, db, c.To, asOf, readme))
	}
	if c.Format != "" {
		return disk.Error(c.File, c.exportFiles(ctx, db, asOf))
	}
	return writeFeed(c.File, term.Out, func(w io.Writer) error { return publish.Export(ctx, db, w, asOf) })
}

// exportFiles writes the files of a release beside their place, and moves them there once
// they are complete.
func (c *Export) exportFiles(ctx context.Context, db *store.Store, asOf int) error {
	sqlite, target := c.Format == "sqlite", c.File
	if sqlite {
		target = filepath.Dir(target)
	} else if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // readable like exported feeds
		return err
	}
	folder, err := os.MkdirTemp(target, ".palmares-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	written, err := files.Write(ctx, db, asOf, folder, files.Kinds{SQLite: sqlite, Parquet: !sqlite}, nil)
	if err != nil {
		return err
	}
	for _, f := range written {
		from, to := filepath.Join(folder, f.Name), filepath.Join(target, f.Name)
		if sqlite {
			to = c.File
		}
		if err := cmp.Or(os.Chmod(from, feedMode), os.Rename(from, to)); err != nil {
			return err
		}
	}
	return nil
}

// Generate writes a synthetic feed.
type Generate struct {
	File     string `arg:"" optional:"" help:"Path of the feed, compressed if it ends in .gz. Default: standard output."`
	Tools    int    `help:"Number of active tools (${default})." default:"5000" min:"1" max:"10000000"`
	Seed     uint64 `help:"Random seed; the same seed gives the same feed (${default})." default:"1"`
	Revision int    `help:"Number of rounds of edits, each changing a twentieth of the tools (${default})." default:"0" min:"0" max:"10000"`
}

func (c *Generate) Run(ctx context.Context, term Terminal) error {
	return writeFeed(c.File, term.Out, func(w io.Writer) error {
		return synth.Write(ctx, w, synth.Options{Tools: c.Tools, Seed: c.Seed, Revision: c.Revision})
	})
}

// Releases lists all releases.
type Releases struct{}

// Run lists all releases, including those that can no longer be read.
func (Releases) Run(ctx context.Context, db *store.Store, term Terminal) error {
	all, err := db.Read.Release.Query().Order(ent.Desc(release.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	return printTable(term.Out, "release\tfeed date\tpublished\ttools\tretired\tcomparisons\treadable", all, func(r *ent.Release) string {
		readable := "yes"
		if r.ID < all[0].HistoryFrom {
			readable = "no"
		}
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%d\t%s", r.ID, r.FeedDate, formatTime(&r.ImportedAt), r.ToolsTotal, r.ToolsRetired, r.ComparisonsTotal, readable)
	})
}

// History groups the commands about earlier releases.
type History struct {
	Prune historyPrune `cmd:"" help:"Remove the history before a release, to free space."`
}

type historyPrune struct {
	Before *int `required:"" help:"Number of the oldest release to keep, as shown by palmares releases." placeholder:"NUMBER" min:"1"`
	Yes    bool `help:"Skip the confirmation prompt."`
}

// Run removes the history once the operator has confirmed what will be lost.
func (c *historyPrune) Run(ctx context.Context, db *store.Store, term Terminal) error {
	if !c.Yes {
		plan, err := publish.PlanPruning(ctx, db.Read.Release, *c.Before)
		if err != nil {
			return nothingChanged(err, "; run palmares releases to see whether the history was pruned")
		}
		prompt := fmt.Sprintf("%s will no longer be readable. This cannot be undone.\n%s can still be read.\nType yes to continue: ",
			formatReleases(plan.First, plan.Last), formatReleases(plan.Oldest, plan.Newest))
		if err := confirm(ctx, term, prompt); err != nil {
			return err
		}
	}
	done, err := publish.Prune(ctx, db, *c.Before)
	if err != nil {
		return nothingChanged(err, "; run palmares releases to see whether the history was pruned")
	}
	_, err = fmt.Fprintf(term.Out, "%s: history removed (%d rows).\n%s can still be read.\n",
		formatReleases(done.First, done.Last), done.Rows, formatReleases(done.Oldest, done.Newest))
	return err
}

// formatReleases formats a range of releases at the start of a sentence.
func formatReleases(first, last *ent.Release) string {
	if first.ID == last.ID {
		return fmt.Sprintf("Release %d (%s)", first.ID, first.FeedDate)
	}
	return fmt.Sprintf("Releases %d (%s) to %d (%s)", first.ID, first.FeedDate, last.ID, last.FeedDate)
}

// feedMode makes exported feeds readable for everyone, unlike temporary files.
const feedMode = 0o644

// writeFeed writes to standard output or a file. A regular file is replaced
// once the new one is complete; a device or a pipe is written directly.
func writeFeed(name string, stdout io.Writer, write func(io.Writer) error) error {
	var err error
	switch {
	case name == "" || name == "-":
		name = "standard output"
		err = write(stdout)
	case disk.IsSpecial(name):
		file, openErr := os.OpenFile(name, os.O_WRONLY, 0)
		if openErr != nil {
			return disk.Error(name, openErr)
		}
		err = errors.Join(write(file), file.Close())
	default:
		target, linkErr := filepath.EvalSymlinks(name)
		if linkErr != nil {
			target = name
		}
		err = disk.Replace(target, func(file *os.File) error {
			if !strings.HasSuffix(target, ".gz") {
				return errors.Join(write(file), file.Chmod(feedMode))
			}
			compressed := gzip.NewWriter(file)
			return errors.Join(write(compressed), compressed.Close(), file.Chmod(feedMode))
		})
	}
	var output *feed.OutputError
	if errors.As(err, &output) {
		err = output.Cause
	}
	return disk.Error(name, err)
}
