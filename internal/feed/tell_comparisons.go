package feed

import (
	"context"

	"palmares/ent/tool"
	"palmares/internal/journal"
)

// comparisonChange is a comparison as it was and is; nil for not there.
type comparisonChange struct {
	kind          string
	before, after *Comparison
}

// tellComparisons writes down what became of some comparisons, with the names
// that readers know their winners by.
func (p *publication) tellComparisons(ctx context.Context, changes []comparisonChange) error {
	names, err := p.winnerNames(ctx, changes)
	if err != nil {
		return err
	}
	for _, change := range changes {
		known := change.after
		if known == nil {
			known = change.before
		}
		entry := journal.Entry{
			Kind: change.kind, Event: change.event(), Slug: known.Slug,
			Category: p.categoryOf(known.ToolA), OtherCategory: p.categoryOf(known.ToolB),
			Before: comparisonState(change.before, names), After: comparisonState(change.after, names),
		}
		if err := p.tell(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// event is what readers see of a change: only what is published is there.
func (c comparisonChange) event() string {
	was, is := c.before != nil && bool(c.before.Published), c.after != nil && bool(c.after.Published)
	switch {
	case is && !was:
		return journal.EventComparisonPublished
	case is && was:
		return journal.EventComparisonUpdated
	case was:
		return journal.EventComparisonRemoved
	}
	return ""
}

// comparisonState is a comparison as the journal tells it.
func comparisonState(c *Comparison, names map[string]string) []byte {
	if c == nil {
		return nil
	}
	return encode(struct {
		*Comparison
		WinnerName string `json:"winner_name"`
	}{c, names[c.Winner]})
}

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

// categoryOf is where a tool of the feed belongs.
func (p *publication) categoryOf(slug string) string {
	if line := p.snap.tools[slug]; line != nil {
		return line.category
	}
	return ""
}
