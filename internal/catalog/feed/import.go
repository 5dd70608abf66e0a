// Package feed imports feeds into the catalog, exports the catalog as a feed and
// prunes its history. An import checks every rule first and then writes in one
// transaction.
//
// An import reads the feed more than once, so that a large one never has to
// fit in memory. The first pass checks everything and retains a few bytes for
// each record (snapshot.go), which are compared with the stored catalog
// (catalog.go). Later passes read the records that changed (import.go).
package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// Options of an import.
type Options struct {
	Force  bool // import an older feed, or one that drops many tools
	DryRun bool // only report what would change
	// PublishedAt is the time of publication; by default, now. The demo sets it
	// for older editions.
	PublishedAt time.Time
	// Progress, if set, is called with the number of the feed's bytes that a
	// stage has read.
	Progress func(stage string, done, total int64)

	diff *Diff // collects the changes of a dry run, even of an implausible feed
}

// errDryRun rolls back the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Import publishes a feed as a new release, or returns an error and changes
// nothing: *ValidationError if the feed is not valid, *ImplausibleError if it needs
// Force.
func Import(ctx context.Context, s *store.Store, feed io.ReadSeeker, opts Options) (*Report, error) {
	in := newSource(feed, opts.Progress)
	reader, err := in.open("checking")
	if err != nil {
		return nil, err
	}
	snap, err := takeSnapshot(ctx, reader, in.origin, nil)
	if err != nil {
		return nil, err
	}
	report := &Report{FeedDate: snap.header.UpdatedAt, DryRun: opts.DryRun}
	err = s.Exclusive(ctx, func(tx *ent.Tx) error {
		stored, err := readCatalog(ctx, tx)
		if err != nil {
			return err
		}
		implausible := stored.checkPlausible(snap)
		if opts.diff != nil {
			opts.diff.start(stored.release, implausible)
		} else if implausible != nil && !opts.Force {
			return implausible
		}
		pub := &publication{tx: tx, dialect: s.Dialect(), publishedAt: opts.PublishedAt, feed: in, snap: snap, stored: stored, report: report, diff: opts.diff, formerNames: map[string]string{}}
		pub.number, pub.historyFrom = 1, 1
		if stored.release != nil {
			pub.number, pub.historyFrom = stored.release.ID+1, stored.release.HistoryFrom
		}
		if err := pub.run(ctx); err != nil {
			return err
		}
		switch {
		case opts.DryRun:
			return errDryRun
		case report.Release == 0:
			return nil
		}
		if err := s.Analyze(ctx, tx); err != nil {
			return err
		}
		if err := pub.indexForSearch(ctx); err != nil {
			return err
		}
		return s.NotifyRelease(ctx, tx, report.Release)
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	return report, nil
}

// publication is an import inside its transaction.
type publication struct {
	tx          *ent.Tx
	dialect     string
	number      int // of the release
	publishedAt time.Time
	historyFrom int // the oldest release that can be read
	feed        *source
	snap        *snapshot
	stored      *catalog
	report      *Report
	diff        *Diff             // nil unless it is wanted
	journal     *journal.Writer   // nil until something changes
	formerNames map[string]string // of renamed tools, by slug
	earlier     map[string]earlierPrices
}

// run writes records before those that refer to them, and deletes records after
// those that refer to them.
func (p *publication) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.writeCategories,
		p.writeTools,
		p.writeComparisons,
		p.recordRenamedWinners,
		p.removeComparisons,
		p.removeTools,
		p.removeCategories,
		p.updateEmbeddings,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if p.stored.release == nil || p.stored.release.FeedDate != p.snap.header.UpdatedAt {
		if err := p.createRelease(ctx); err != nil { // even if only the date is new
			return err
		}
	}
	if p.journal == nil {
		return nil
	}
	// The release's own entry comes last: a client that has received it has received
	// all others.
	if err := p.record(ctx, journal.Entry{Kind: journal.CatalogPublished, Event: journal.EventCatalogPublished, After: record.Encode(struct {
		UpdatedAt    string         `json:"updated_at"`
		ToolsTotal   int            `json:"tools_total"`
		ToolsRetired int            `json:"tools_retired"`
		Comparatifs  int            `json:"comparatifs_total"`
		Events       map[string]int `json:"events"`
	}{p.snap.header.UpdatedAt, p.snap.active.tools, p.snap.retired, p.snap.published, p.journal.Counts()})}); err != nil {
		return err
	}
	return p.journal.Flush(ctx)
}

// createRelease creates the release at the first change, so that a feed without
// changes creates none.
func (p *publication) createRelease(ctx context.Context) error {
	if p.journal != nil {
		return nil
	}
	row := p.tx.Release.Create()
	if !p.publishedAt.IsZero() {
		row.SetImportedAt(p.publishedAt)
	}
	err := row.SetID(p.number).SetHistoryFrom(p.historyFrom).SetFeedDate(p.snap.header.UpdatedAt).
		SetToolsTotal(p.snap.active.tools).SetToolsTested(p.snap.active.tested).SetNillableToolsAvgScore(p.snap.active.mean()).
		SetToolsRetired(p.snap.retired).SetComparisonsTotal(p.snap.published).
		Exec(ctx)
	if err != nil {
		return fmt.Errorf("create release %d: %w", p.number, err)
	}
	p.report.Release = p.number
	p.journal = journal.NewWriter(p.tx, p.number)
	return nil
}

// record adds an entry to the journal.
func (p *publication) record(ctx context.Context, entry journal.Entry) error {
	if err := p.createRelease(ctx); err != nil {
		return err
	}
	if p.diff != nil {
		if err := p.diff.add(entry); err != nil {
			return err
		}
	}
	return p.journal.Add(ctx, entry)
}

const (
	// batchSize is small because the time that the SQLite driver needs to bind
	// a statement grows with the square of its parameters.
	batchSize  = 40
	insertSize = 200 // for rows with few columns
	// batchBytes limits the size of a batch, which may have a few large records.
	batchBytes = 256 << 10
)

// writeChanged reads the feed again for the records of some types, and calls
// write with batches of those whose slug and fingerprint are in changed. It
// reads the next batch while the database writes the previous one.
func (p *publication) writeChanged(ctx context.Context, stage string, types []string, changed map[string]string, write func(context.Context, []record.Record) error) error {
	if len(changed) == 0 {
		return nil
	}
	reader, err := p.feed.open(stage)
	if err != nil {
		return err
	}
	batches := make(chan []record.Record, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return readChanged(ctx, reader, types, changed, batches)
	})
	group.Go(func() error {
		for batch := range batches {
			if err := write(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// readChanged reads the changed records. It fails if the feed is not the one that
// was checked.
func readChanged(ctx context.Context, r io.Reader, types []string, changed map[string]string, batches chan<- []record.Record) error {
	var batch []record.Record
	size, seen := 0, 0
	send := func() error {
		select {
		case batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s := scanner{types: types, errs: &ValidationError{}}
	s.visit = func(_ int, rec record.Record, valid bool) error {
		fingerprint, wanted := changed[rec.RecordSlug()]
		if !wanted {
			return nil
		}
		if seen++; !valid || record.Fingerprint(rec) != fingerprint {
			return errFeedChanged
		}
		batch, size = append(batch, rec), size+s.lineSize
		if len(batch) < batchSize && size < batchBytes {
			return nil
		}
		return send()
	}
	if err := s.scan(ctx, r); err != nil {
		return err
	}
	if s.errs.err() != nil || seen != len(changed) {
		return errFeedChanged
	}
	return send()
}

// Report is what an import changed, or would change.
type Report struct {
	Categories, Tools, Comparisons Counts
	PriceChanges                   int
	Release                        int // 0 if nothing changed
	FeedDate                       string
	DryRun                         bool
}

// Counts are the changes to one type of record.
type Counts struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Retired   int `json:"retired"`
	Removed   int `json:"removed"`
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tcreated\tupdated\tunchanged\tretired\tremoved\t")
	row := func(name string, c Counts, retired string) {
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
