package commands

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/release"
	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
)

type Releases struct{}

// Run lists all releases, including those that can no longer be read.
func (Releases) Run(ctx context.Context, db *store.Store, term Terminal) error {
	if err := db.CheckMigrated(ctx); err != nil {
		return err
	}
	all, err := db.Read.Release.Query().Order(release.ByID(entsql.OrderDesc())).All(ctx)
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

type History struct {
	Prune historyPrune `cmd:"" help:"Remove the history before a release, to free space."`
}

type historyPrune struct {
	Before *int `required:"" help:"Number of the oldest release to keep, as shown by palmares releases." placeholder:"NUMBER"`
	Yes    bool `help:"Skip the confirmation prompt."`
}

// Validate is called by kong.
func (c *historyPrune) Validate() error { return checkReleaseNumber("--before", c.Before) }

// checkReleaseNumber returns an error for a number that no release can have.
func checkReleaseNumber(flag string, number *int) error {
	if number != nil && *number < 1 {
		return fmt.Errorf("%s: must be at least 1 (got %d)", flag, *number)
	}
	return nil
}

// Run removes the history once the operator has confirmed what will be lost.
func (c *historyPrune) Run(ctx context.Context, db *store.Store, term Terminal) error {
	if err := db.CheckMigrated(ctx); err != nil {
		return err
	}
	if !c.Yes {
		plan, err := feed.PlanPruning(ctx, db, *c.Before)
		if err != nil {
			return nothingChanged(err, "; run palmares releases to see whether the history was pruned")
		}
		prompt := fmt.Sprintf("%s will no longer be readable. This cannot be undone.\n%s can still be read.\nType yes to continue: ",
			formatReleases(plan.First, plan.Last), formatReleases(plan.Oldest, plan.Newest))
		if err := confirm(ctx, term, prompt); err != nil {
			return err
		}
	}
	done, err := feed.Prune(ctx, db, *c.Before)
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
