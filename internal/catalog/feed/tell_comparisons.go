package feed

import (
	"context"

	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
)

// comparisonChange is a comparison as it was and is; nil for not there.
type comparisonChange struct {
	kind          string
	before, after *Comparison
}

// toldComparison is a comparison as the journal tells it, with the name that
// readers know its winner by.
type toldComparison struct {
	*Comparison
	WinnerName string `json:"winner_name"`
}

// tellComparisons writes down what became of some comparisons.
func (p *publication) tellComparisons(ctx context.Context, changes []comparisonChange) error {
	names, err := p.winnerNames(ctx, changes)
	if err != nil {
		return err
	}
	for _, change := range changes {
		var before, after *toldComparison
		if c := change.before; c != nil {
			before = &toldComparison{c, names[c.Winner]}
			if was, renamed := p.renamed[c.Winner]; renamed {
				before.WinnerName = was
			}
		}
		if c := change.after; c != nil {
			after = &toldComparison{c, names[c.Winner]}
		}
		if err := p.tell(ctx, p.comparisonEntry(change.kind, before, after)); err != nil {
			return err
		}
	}
	return nil
}

func (p *publication) comparisonEntry(kind string, before, after *toldComparison) journal.Entry {
	entry := journal.Entry{Kind: kind, Event: comparisonEvent(before, after)}
	known, categoryOf := after, p.categoryOf
	if before != nil {
		entry.Before = encode(before)
	}
	if after != nil {
		entry.After = encode(after)
	}
	if after == nil || entry.Event == journal.EventComparisonRemoved {
		known, categoryOf = before, p.categoryBefore // it goes from where it was
	}
	entry.Slug, entry.Category, entry.OtherCategory = known.Slug, categoryOf(known.ToolA), categoryOf(known.ToolB)
	return entry
}

// comparisonEvent is what readers see of a change: only what is published is
// there.
func comparisonEvent(before, after *toldComparison) string {
	was, is := before != nil && bool(before.Published), after != nil && bool(after.Published)
	switch {
	case is && !was:
		return journal.EventComparisonPublished
	case is && was && !sameComparison(before, after):
		return journal.EventComparisonUpdated
	case was && !is:
		return journal.EventComparisonRemoved
	}
	return ""
}

// winnerNames are the names that winners have now.
func (p *publication) winnerNames(ctx context.Context, changes []comparisonChange) (map[string]string, error) {
	wanted := map[string]bool{}
	for _, change := range changes {
		for _, c := range []*Comparison{change.before, change.after} {
			if c != nil {
				wanted[c.Winner] = true
			}
		}
	}
	rows, err := p.tx.Tool.Query().Where(tool.IDIn(sortedKeys(wanted)...)).Select(tool.FieldID, tool.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, nil
}

// tellRenamedWinners tells of comparisons whose record is as it was, but whose
// winner readers know by another name now.
func (p *publication) tellRenamedWinners(ctx context.Context) error {
	if len(p.renamed) == 0 {
		return nil
	}
	renamed := map[string]bool{}
	for slug, line := range p.snap.comparisons {
		if _, is := p.renamed[line.winner]; is && p.stored.comparisons[slug] == line.fingerprint {
			renamed[slug] = true
		}
	}
	return inBatches(sortedKeys(renamed), upsertBatch, func(slugs []string) error {
		rows, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...), comparison.Published(true)).Order(comparison.ByID()).All(ctx)
		if err != nil {
			return err
		}
		var same []comparisonChange
		for _, row := range rows {
			c := comparisonRecord(row)
			same = append(same, comparisonChange{journal.ComparisonUpdated, c, c})
		}
		return p.tellComparisons(ctx, same)
	})
}
