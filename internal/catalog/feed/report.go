package feed

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Report is what an import did, or would do.
type Report struct {
	Categories, Tools, Comparisons Counts
	PriceChanges                   int
	Release                        int // 0 when nothing changed
	FeedDate                       string
	DryRun                         bool
}

// Counts of one type of record.
type Counts struct {
	Created, Updated, Unchanged, Retired, Removed int
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tcreated\tupdated\tunchanged\tretired\tremoved\t")
	for _, row := range []struct {
		name   string
		counts Counts
	}{{"categories", r.Categories}, {"tools", r.Tools}, {"comparisons", r.Comparisons}} {
		c := row.counts
		retired := "-"
		if row.name == "tools" {
			retired = strconv.Itoa(c.Retired)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%d\t\n", row.name, c.Created, c.Updated, c.Unchanged, retired, c.Removed)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "price changes: %d\nrelease: %s\n", r.PriceChanges, r.releaseText())
	return err
}

func (r *Report) releaseText() string {
	switch {
	case r.Release == 0:
		return "none, nothing changed"
	case r.DryRun:
		return fmt.Sprintf("would be %d, of %s (dry run: nothing was imported)", r.Release, r.FeedDate)
	}
	return fmt.Sprintf("%d, of %s", r.Release, r.FeedDate)
}
