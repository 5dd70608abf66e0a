package feed

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
)

// Options of an import.
type Options struct {
	Force  bool // take an older feed, or one that drops many tools
	DryRun bool // only tell what would change
	// Progress, if set, is told how many of the feed's bytes a stage has read.
	Progress func(stage string, done, total int64)
}

// errDryRun takes everything back at the end of a dry run.
var errDryRun = errors.New("dry run")

// errFeedMoved is told when a later reading meets another feed than the first.
var errFeedMoved = errors.New("the feed changed while it was being read")

// Import publishes a feed: the whole of it, or on any error nothing. The
// error is *Faults for a wrong feed, *Refusal for an unwanted one.
func Import(ctx context.Context, s *store.Store, source io.ReadSeeker, opts Options) (*Report, error) {
	in := &input{source: source, progress: opts.Progress}
	reader, err := in.open("checking")
	if err != nil {
		return nil, err
	}
	snap, err := takeSnapshot(ctx, reader)
	if err != nil {
		return nil, err
	}
	report := &Report{FeedDate: snap.header.UpdatedAt, DryRun: opts.DryRun}
	err = s.Exclusive(ctx, func(tx *ent.Tx) error {
		stored, err := readCatalog(ctx, tx)
		if err != nil {
			return err
		}
		if !opts.Force {
			if err := stored.refuse(snap); err != nil {
				return err
			}
		}
		pub := &publication{tx: tx, feed: in, snap: snap, stored: stored, report: report, renamed: map[string]string{}}
		if err := pub.run(ctx); err != nil {
			return err
		}
		switch {
		case opts.DryRun:
			return errDryRun
		case report.Release == 0:
			return nil
		}
		if err := pub.listByCategory(ctx); err != nil {
			return err
		}
		if err := s.Analyze(ctx, tx); err != nil {
			return err
		}
		if err := s.CountOn(ctx, tx, journalentry.Table); err != nil {
			return err
		}
		return s.Announce(ctx, tx, report.Release)
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	if report.Release > 0 && !opts.DryRun {
		s.Tidy(ctx)
	}
	return report, nil
}

// publication is one import at work inside its transaction.
type publication struct {
	tx      *ent.Tx
	feed    *input
	snap    *snapshot
	stored  *catalog
	report  *Report
	journal *journal.Writer   // nil until something changes
	renamed map[string]string // tools by slug, with the names they had
}

// run brings the catalog to the feed, floor by floor: what is referred to is
// written before and deleted after what refers to it.
func (p *publication) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.writeCategories,
		p.writeTools,
		p.writeComparisons,
		p.tellRenamedWinners,
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
		if err := p.begin(ctx); err != nil { // a new date alone is a release, too
			return err
		}
	}
	if p.journal == nil {
		return nil
	}
	if err := p.tellRelease(ctx); err != nil {
		return err
	}
	return p.journal.Flush(ctx)
}

// begin stamps the release at the first change, so that a feed without any
// makes none.
func (p *publication) begin(ctx context.Context) error {
	if p.journal != nil {
		return nil
	}
	number := 1
	if p.stored.release != nil {
		number = p.stored.release.ID + 1
	}
	t := p.snap.totals
	err := p.tx.Release.Create().SetID(number).SetFeedDate(p.snap.header.UpdatedAt).
		SetToolsTotal(t.active.tools).SetToolsTested(t.active.tested).SetNillableToolsAvgScore(t.active.mean()).
		SetToolsRetired(t.retired).SetComparisonsTotal(t.published).
		Exec(ctx)
	if err != nil {
		return fmt.Errorf("stamp release %d: %w", number, err)
	}
	p.report.Release = number
	p.journal = journal.NewWriter(p.tx, number)
	return nil
}

// tell writes a change down.
func (p *publication) tell(ctx context.Context, entry journal.Entry) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	return p.journal.Add(ctx, entry)
}

// tellRelease writes down that there is a release, and what is in it: the
// last entry, so that whoever has read it has read the others.
func (p *publication) tellRelease(ctx context.Context) error {
	t := p.snap.totals
	return p.tell(ctx, journal.Entry{Kind: journal.CatalogPublished, Event: journal.EventCatalogPublished, After: encode(struct {
		UpdatedAt    string         `json:"updated_at"`
		ToolsTotal   int            `json:"tools_total"`
		ToolsRetired int            `json:"tools_retired"`
		Comparatifs  int            `json:"comparatifs_total"`
		Events       map[string]int `json:"events"`
	}{p.snap.header.UpdatedAt, t.active.tools, t.retired, t.published, p.journal.Told()})})
}

// changedRecords reads the feed again for the records of some types, and
// gives those that differ to write, a batch at a time. The next batch is read
// while the database takes the last.
func (p *publication) changedRecords(ctx context.Context, stage string, types []string, differing map[string]string, write func(context.Context, []record) error) error {
	if len(differing) == 0 {
		return nil
	}
	reader, err := p.feed.open(stage)
	if err != nil {
		return err
	}
	batches := make(chan []record, 1)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		defer close(batches)
		return readAgain(ctx, reader, types, differing, batches)
	})
	both.Go(func() error {
		for batch := range batches {
			if err := write(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	return both.Wait()
}

// readAgain sends the differing records on, and fails if the feed is not the
// one that was checked.
func readAgain(ctx context.Context, r io.Reader, types []string, differing map[string]string, batches chan<- []record) error {
	var batch []record
	size := 0
	send := func() error {
		select {
		case batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	seen := 0
	again := scanner{types: types, faults: &Faults{}}
	again.visit = func(_ int, rec record, sound bool) error {
		fingerprint, wanted := differing[rec.recordSlug()]
		if !wanted {
			return nil
		}
		if seen++; !sound || digest(summary(rec)) != fingerprint {
			return errFeedMoved
		}
		batch, size = append(batch, rec), size+again.size
		if len(batch) < upsertBatch && size < batchBytes {
			return nil
		}
		return send()
	}
	if err := again.scan(ctx, r); err != nil {
		return err
	}
	if again.faults.err() != nil || seen != len(differing) {
		return errFeedMoved
	}
	return send()
}
