// Package publish imports feeds into the catalog, exports the catalog as a feed and
// prunes its history. An import checks every rule first and then writes in one
// transaction.
//
// An import reads the feed more than once, so that a large one never has to
// fit in memory. The first pass, feed.Check, retains a few bytes for each record, which
// are compared with the stored catalog (catalog.go). Later passes read the records that
// changed (import.go).
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"palmares/ent"
	"palmares/internal/catalog/feed"
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
	// Progress, if set, is called with how much of the source a stage has read, in its
	// bytes or files.
	Progress func(stage string, done, total int64)

	diff *Diff // collects the changes of a dry run, even of an implausible feed
}

// progress returns the progress of a stage, or nil if none is wanted.
func (o Options) progress(stage string) func(done, total int64) {
	if o.Progress == nil {
		return nil
	}
	return func(done, total int64) { o.Progress(stage, done, total) }
}

// errDryRun rolls back the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Import publishes a feed as a new release, or returns an error and changes
// nothing: *feed.ValidationError if the feed is not valid, *ImplausibleError if it needs
// Force.
func Import(ctx context.Context, s *store.Store, source feed.Source, opts Options) (*Report, error) {
	snap, err := feed.Check(ctx, source, opts.progress("checking"), nil)
	if err != nil {
		return nil, err
	}
	report := &Report{FeedDate: snap.Header.UpdatedAt, DryRun: opts.DryRun}
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
		pub := &publication{tx: tx, dialect: s.Dialect(), source: source, opts: opts, snap: snap, stored: stored, report: report, formerNames: map[string]string{}}
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
	historyFrom int // the oldest release that can be read
	source      feed.Source
	opts        Options
	snap        *feed.Snapshot
	stored      *catalog
	report      *Report
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
	if p.stored.release == nil || p.stored.release.FeedDate != p.snap.Header.UpdatedAt {
		if err := p.createRelease(ctx); err != nil { // even if only the date is new
			return err
		}
	}
	if p.journal == nil {
		return nil
	}
	// The release's own entry comes last: a client that has received it has received
	// all others.
	if err := p.record(ctx, journal.Entry{Kind: journal.CatalogPublished, Event: journal.EventCatalogPublished, After: record.Encode(journal.Publication{
		UpdatedAt: p.snap.Header.UpdatedAt, ToolsTotal: p.snap.Active.Tools, ToolsRetired: p.snap.Retired,
		Comparisons: p.snap.Published, Events: p.journal.Counts(),
	})}); err != nil {
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
	if !p.opts.PublishedAt.IsZero() {
		row.SetImportedAt(p.opts.PublishedAt)
	}
	err := row.SetID(p.number).SetHistoryFrom(p.historyFrom).SetFeedDate(p.snap.Header.UpdatedAt).
		SetToolsTotal(p.snap.Active.Tools).SetToolsTested(p.snap.Active.Tested).SetNillableToolsAvgScore(p.snap.Active.Mean()).
		SetToolsRetired(p.snap.Retired).SetComparisonsTotal(p.snap.Published).
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
	if p.opts.diff != nil {
		if err := p.opts.diff.add(entry); err != nil {
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
	batches := make(chan []record.Record, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return readChanged(ctx, p.source, p.opts.progress(stage), feed.Selection{Types: types, Slugs: changed}, batches)
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
func readChanged(ctx context.Context, source feed.Source, progress func(done, total int64), selected feed.Selection, batches chan<- []record.Record) error {
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
	err := feed.ReadSelected(ctx, source, selected, progress, func(rec record.Record, valid bool, bytes int) error {
		fingerprint, wanted := selected.Slugs[rec.RecordSlug()]
		if !wanted {
			return nil
		}
		if seen++; !valid || record.Fingerprint(rec) != fingerprint {
			return errFeedChanged
		}
		batch, size = append(batch, rec), size+bytes
		if len(batch) < batchSize && size < batchBytes {
			return nil
		}
		return send()
	})
	switch invalid := (*feed.ValidationError)(nil); {
	case errors.As(err, &invalid), err == nil && seen != len(selected.Slugs):
		return errFeedChanged
	case err != nil:
		return err
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
