package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"golang.org/x/term"

	"palmares/ent"
	"palmares/ent/release"
	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
)

type releasesCommand struct{}

// Run lists all releases, including those that can no longer be read.
func (releasesCommand) Run(ctx context.Context, db *store.Store, term terminal) error {
	if err := db.CheckMigrated(ctx); err != nil {
		return err
	}
	all, err := db.Read.Release.Query().Order(release.ByID(entsql.OrderDesc())).All(ctx)
	if err != nil {
		return err
	}
	return printTable(term.out, "release\tfeed date\tpublished\ttools\tretired\tcomparisons\treadable", all, func(r *ent.Release) string {
		readable := "yes"
		if r.ID < all[0].HistoryFrom {
			readable = "no"
		}
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%d\t%s", r.ID, r.FeedDate, formatTime(&r.ImportedAt), r.ToolsTotal, r.ToolsRetired, r.ComparisonsTotal, readable)
	})
}

type historyCommand struct {
	Prune historyPruneCommand `cmd:"" help:"Remove the history before a release, to free space."`
}

type historyPruneCommand struct {
	Before *int `required:"" help:"Number of the oldest release to keep, as shown by palmares releases." placeholder:"NUMBER"`
	Yes    bool `help:"Skip the confirmation prompt."`
}

// Validate is called by kong.
func (c *historyPruneCommand) Validate() error { return checkReleaseNumber("--before", c.Before) }

// checkReleaseNumber returns an error for a number that no release can have.
func checkReleaseNumber(flag string, number *int) error {
	if number != nil && *number < 1 {
		return fmt.Errorf("%s: must be at least 1 (got %d)", flag, *number)
	}
	return nil
}

// Run removes the history once the operator has confirmed what will be lost.
func (c *historyPruneCommand) Run(ctx context.Context, db *store.Store, term terminal) error {
	if err := db.CheckMigrated(ctx); err != nil {
		return err
	}
	if !c.Yes {
		plan, err := feed.PlanPruning(ctx, db, *c.Before)
		if err != nil {
			return nothingChanged(err)
		}
		prompt := fmt.Sprintf("%s will no longer be readable. This cannot be undone.\n%s can still be read.\nType yes to continue: ",
			formatReleases(plan.First, plan.Last), formatReleases(plan.Oldest, plan.Newest))
		if err := confirm(ctx, term, prompt); err != nil {
			return err
		}
	}
	done, err := feed.Prune(ctx, db, *c.Before)
	if err != nil {
		return nothingChanged(err)
	}
	_, err = fmt.Fprintf(term.out, "%s: history removed (%d rows).\n%s can still be read.\n",
		formatReleases(done.First, done.Last), done.Rows, formatReleases(done.Oldest, done.Newest))
	return err
}

// nothingChanged adds to an error that nothing was changed, unless the transaction
// may have been committed.
func nothingChanged(err error) error {
	var database *store.Fault
	switch {
	case errors.As(err, &database) && database.CommitUnknown:
		return fmt.Errorf("%w; run palmares releases to see whether the history was pruned", err)
	case errors.Is(err, context.Canceled):
		return errInterrupted
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// formatReleases formats a range of releases at the start of a sentence.
func formatReleases(first, last *ent.Release) string {
	if first.ID == last.ID {
		return fmt.Sprintf("Release %d (%s)", first.ID, first.FeedDate)
	}
	return fmt.Sprintf("Releases %d (%s) to %d (%s)", first.ID, first.FeedDate, last.ID, last.FeedDate)
}

var errNotConfirmed = errors.New("nothing was changed: not confirmed")

// confirm returns an error unless the operator types yes at a terminal.
func confirm(ctx context.Context, t terminal, prompt string) error {
	if !term.IsTerminal(int(t.in.Fd())) {
		return errors.New("nothing was changed: --yes is required without a terminal")
	}
	fmt.Fprint(t.err, prompt)
	// A read from a terminal cannot be interrupted, so it runs in its own goroutine.
	input := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(t.in).ReadString('\n')
		input <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.err)
		return errInterrupted
	case line := <-input:
		if line != "yes" {
			return errNotConfirmed
		}
		return nil
	}
}
