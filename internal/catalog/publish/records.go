package publish

import (
	"context"
	"maps"
	"reflect"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// inBatches calls do with at most size items at a time.
func inBatches[T any](items []T, size int, do func([]T) error) error {
	for batch := range slices.Chunk(items, size) {
		if err := do(batch); err != nil {
			return err
		}
	}
	return nil
}

// archive copies rows to the history before they change.
func (p *publication) archive(ctx context.Context, table store.Versioned, slugs []string) error {
	return table.CopyToHistory(ctx, p.tx, p.dialect, p.number, slugs)
}

// storedRows reads the rows of the records that are already in the catalog.
func storedRows[S, Row any](records []record.Record, stored map[string]S, query func(slugs []string) ([]Row, error), slugOf func(Row) string) (map[string]Row, error) {
	var slugs []string
	for _, rec := range records {
		if _, exists := stored[rec.RecordSlug()]; exists {
			slugs = append(slugs, rec.RecordSlug())
		}
	}
	found := map[string]Row{}
	if len(slugs) == 0 {
		return found, nil
	}
	rows, err := query(slugs)
	for _, row := range rows {
		found[slugOf(row)] = row
	}
	return found, err
}

// replace makes an insert overwrite all columns of an existing row. Columns that the
// new row does not set become null.
func replace(key string, columns []string) []entsql.ConflictOption {
	return []entsql.ConflictOption{
		entsql.ConflictColumns(key),
		entsql.ResolveWith(func(row *entsql.UpdateSet) {
			for _, column := range columns {
				if column != key {
					row.SetExcluded(column)
				}
			}
		}),
	}
}

// writeCategories creates and updates categories. A category whose statistics alone
// changed gets no journal entry.
func (p *publication) writeCategories(ctx context.Context) error {
	var rows []*ent.CategoryCreate
	var slugs []string
	for _, slug := range sortedKeys(p.snap.Categories) {
		line, stored := p.snap.Categories[slug], p.stored.categories[slug]
		entry := journal.Entry{Slug: slug, Category: slug, After: record.Summary(line.Record)}
		switch {
		case stored == nil:
			p.report.Categories.Created++
			entry.Kind, entry.Event = journal.CategoryCreated, journal.EventCategoryCreated
		case stored.Fingerprint != line.Fingerprint:
			p.report.Categories.Updated++
			before := record.FromRow[record.Category](stored)
			entry.Kind, entry.Before = journal.CategoryUpdated, record.Summary(before)
			if !record.SameInEvents(before, line.Record) {
				entry.Event = journal.EventCategoryUpdated
			}
		default:
			p.report.Categories.Unchanged++
			if stored.ToolCount == line.Scores.Tools && reflect.DeepEqual(stored.AvgScore, line.Scores.Mean()) {
				continue
			}
		}
		if entry.Kind != "" {
			if err := p.record(ctx, entry); err != nil {
				return err
			}
		}
		row := p.tx.Category.Create().SetID(slug).SetFingerprint(line.Fingerprint).SetSinceRelease(p.number).
			SetToolCount(line.Scores.Tools).SetNillableAvgScore(line.Scores.Mean())
		record.ToRow(row.Mutation(), line.Record)
		rows, slugs = append(rows, row), append(slugs, slug)
	}
	if err := p.archive(ctx, store.Categories, slugs); err != nil {
		return err
	}
	return inBatches(rows, batchSize, func(rows []*ent.CategoryCreate) error {
		return p.tx.Category.CreateBulk(rows...).OnConflict(replace(category.FieldID, category.Columns)...).Exec(ctx)
	})
}

func (p *publication) removeCategories(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.Categories, p.stored.categories), batchSize, func(slugs []string) error {
		for _, slug := range slugs {
			p.report.Categories.Removed++
			if err := p.record(ctx, journal.Entry{
				Kind: journal.CategoryRemoved, Event: journal.EventCategoryRemoved, Slug: slug, Category: slug,
				Before: record.Summary(record.FromRow[record.Category](p.stored.categories[slug])),
			}); err != nil {
				return err
			}
		}
		if err := p.archive(ctx, store.Categories, slugs); err != nil {
			return err
		}
		_, err := p.tx.Category.Delete().Where(category.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

func (p *publication) writeComparisons(ctx context.Context) error {
	changed := map[string]string{}
	for slug, line := range p.snap.Comparisons {
		if p.stored.comparisons[slug] != line.Fingerprint {
			changed[slug] = line.Fingerprint
		}
	}
	p.report.Comparisons.Unchanged = len(p.snap.Comparisons) - len(changed)
	return p.writeChanged(ctx, "writing comparisons", []string{record.TypeComparison}, changed, p.writeComparisonBatch)
}

func (p *publication) writeComparisonBatch(ctx context.Context, records []record.Record) error {
	before, err := storedRows(records, p.stored.comparisons, func(slugs []string) ([]*ent.Comparison, error) {
		return p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).All(ctx)
	}, func(row *ent.Comparison) string { return row.ID })
	if err != nil {
		return err
	}
	changes := make([]comparisonChange, len(records))
	rows := make([]*ent.ComparisonCreate, len(records))
	for i, rec := range records {
		slug := rec.RecordSlug()
		rows[i] = p.tx.Comparison.Create().SetID(slug).SetFingerprint(p.snap.Comparisons[slug].Fingerprint).SetSinceRelease(p.number)
		record.ToRow(rows[i].Mutation(), rec)
		changes[i] = comparisonChange{kind: journal.ComparisonCreated, after: rec.(*record.Comparison)}
		if was := before[slug]; was == nil {
			p.report.Comparisons.Created++
		} else {
			p.report.Comparisons.Updated++
			changes[i].kind, changes[i].before = journal.ComparisonUpdated, record.FromRow[record.Comparison](was)
		}
	}
	if err := p.recordComparisons(ctx, changes); err != nil {
		return err
	}
	if err := p.archive(ctx, store.Comparisons, slices.Collect(maps.Keys(before))); err != nil {
		return err
	}
	return p.tx.Comparison.CreateBulk(rows...).OnConflict(replace(comparison.FieldID, comparison.Columns)...).Exec(ctx)
}

func (p *publication) removeComparisons(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.Comparisons, p.stored.comparisons), batchSize, func(slugs []string) error {
		rows, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).Order(comparison.ByID()).All(ctx)
		if err != nil {
			return err
		}
		var changes []comparisonChange
		for _, row := range rows {
			p.report.Comparisons.Removed++
			changes = append(changes, comparisonChange{kind: journal.ComparisonRemoved, before: record.FromRow[record.Comparison](row)})
		}
		if err := p.recordComparisons(ctx, changes); err != nil {
			return err
		}
		if err := p.archive(ctx, store.Comparisons, slugs); err != nil {
			return err
		}
		_, err = p.tx.Comparison.Delete().Where(comparison.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

// recordRenamedWinners records unchanged comparisons whose winner has a new name,
// which readers see.
func (p *publication) recordRenamedWinners(ctx context.Context) error {
	if len(p.formerNames) == 0 {
		return nil
	}
	affected := map[string]bool{}
	for slug, line := range p.snap.Comparisons {
		if _, renamed := p.formerNames[line.Winner]; renamed && p.stored.comparisons[slug] == line.Fingerprint {
			affected[slug] = true
		}
	}
	return inBatches(sortedKeys(affected), batchSize, func(slugs []string) error {
		rows, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...), comparison.Published(true)).Order(comparison.ByID()).All(ctx)
		if err != nil {
			return err
		}
		var changes []comparisonChange
		for _, row := range rows {
			c := record.FromRow[record.Comparison](row)
			changes = append(changes, comparisonChange{journal.ComparisonUpdated, c, c})
		}
		return p.recordComparisons(ctx, changes)
	})
}

// comparisonChange is a comparison before and after; nil if there is none.
type comparisonChange struct {
	kind          string
	before, after *record.Comparison
}

func (p *publication) recordComparisons(ctx context.Context, changes []comparisonChange) error {
	names, err := p.winnerNames(ctx, changes)
	if err != nil {
		return err
	}
	for _, change := range changes {
		entry := journal.Entry{Kind: change.kind}
		var before, after *record.Comparison // as events show them
		if c := change.before; c != nil {
			name, renamed := p.formerNames[c.Winner]
			if !renamed {
				name = names[c.Winner]
			}
			entry.Before, before = withWinnerName(c, name)
		}
		if c := change.after; c != nil {
			entry.After, after = withWinnerName(c, names[c.Winner])
		}
		entry.Event = comparisonEvent(before, after)
		published := after != nil && bool(after.Published)
		if entry.Event == "" && published && change.before.Winner != change.after.Winner {
			entry.Event = journal.EventComparisonUpdated // the winners have the same name
		}
		if after == nil || entry.Event == journal.EventComparisonRemoved {
			entry.Slug = before.Slug
			entry.Category, entry.OtherCategory = p.stored.tools[before.ToolA].category, p.stored.tools[before.ToolB].category
		} else {
			entry.Slug = after.Slug
			entry.Category, _ = p.categoriesOf(after.ToolA)
			entry.OtherCategory, _ = p.categoriesOf(after.ToolB)
		}
		if err := p.record(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// withWinnerName returns a comparison encoded for the journal, and as events show
// it: with the winner's name in place of its slug.
func withWinnerName(c *record.Comparison, name string) (stored []byte, shown *record.Comparison) {
	named := *c
	named.Winner = name
	return record.Encode(struct {
		*record.Comparison
		WinnerName string `json:"winner_name"`
	}{c, name}), &named
}

// comparisonEvent returns the event type for a change, or "" if readers, who only
// see published comparisons, would not notice it.
func comparisonEvent(before, after *record.Comparison) string {
	was, is := before != nil && bool(before.Published), after != nil && bool(after.Published)
	switch {
	case is && !was:
		return journal.EventComparisonPublished
	case was && !is:
		return journal.EventComparisonRemoved
	case is && !record.SameInEvents(before, after):
		return journal.EventComparisonUpdated
	}
	return ""
}

// winnerNames returns the current names of all winners, by slug.
func (p *publication) winnerNames(ctx context.Context, changes []comparisonChange) (map[string]string, error) {
	names := map[string]string{}
	for _, change := range changes {
		for _, c := range []*record.Comparison{change.before, change.after} {
			if c != nil {
				names[c.Winner] = ""
			}
		}
	}
	rows, err := p.tx.Tool.Query().Where(tool.IDIn(sortedKeys(names)...)).Select(tool.FieldID, tool.FieldName).All(ctx)
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}
