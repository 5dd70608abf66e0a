package feed

import (
	"context"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/internal/journal"
)

// writeCategories brings categories and their numbers to what the feed says.
func (p *publication) writeCategories(ctx context.Context) error {
	var rows []*ent.CategoryCreate
	for _, slug := range sortedKeys(p.snap.categories) {
		line, before := p.snap.categories[slug], p.stored.categories[slug]
		switch {
		case before == nil:
			p.report.Categories.Created++
			after := summary(&Category{Slug: slug, Label: line.label})
			if err := p.tell(ctx, journal.CategoryCreated, slug, nil, after); err != nil {
				return err
			}
		case before.Fingerprint != line.fingerprint:
			p.report.Categories.Updated++
			after := summary(&Category{Slug: slug, Label: line.label})
			if err := p.tell(ctx, journal.CategoryUpdated, slug, summary(categoryRecord(before)), after); err != nil {
				return err
			}
		default:
			p.report.Categories.Unchanged++
			if before.ToolCount == line.stats.tools && equal(before.AvgScore, line.stats.mean()) {
				continue
			}
		}
		create := p.tx.Category.Create()
		categoryRow(create, slug, line)
		rows = append(rows, create)
	}
	return upsertCategories(ctx, p.tx, rows)
}

// writeComparisons brings comparisons to what the feed says.
func (p *publication) writeComparisons(ctx context.Context) error {
	differing := map[string]string{}
	for slug, line := range p.snap.comparisons {
		if p.stored.comparisons[slug] != line.fingerprint {
			differing[slug] = line.fingerprint
		}
	}
	p.report.Comparisons.Unchanged = len(p.snap.comparisons) - len(differing)
	return p.changedRecords(ctx, "writing comparisons", []string{typeComparison}, differing, p.writeComparisonBatch)
}

func (p *publication) writeComparisonBatch(ctx context.Context, records []record) error {
	slugs := make([]string, len(records))
	for i, rec := range records {
		slugs[i] = rec.recordSlug()
	}
	stored, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).All(ctx)
	if err != nil {
		return err
	}
	before := map[string]*ent.Comparison{}
	for _, row := range stored {
		before[row.ID] = row
	}
	rows := make([]*ent.ComparisonCreate, len(records))
	for i, rec := range records {
		rows[i] = p.tx.Comparison.Create()
		comparisonRow(rows[i], rec.(*Comparison), p.snap.comparisons[slugs[i]])
		if was := before[slugs[i]]; was == nil {
			p.report.Comparisons.Created++
			err = p.tell(ctx, journal.ComparisonCreated, slugs[i], nil, summary(rec))
		} else {
			p.report.Comparisons.Updated++
			err = p.tell(ctx, journal.ComparisonUpdated, slugs[i], summary(comparisonRecord(was)), summary(rec))
		}
		if err != nil {
			return err
		}
	}
	return upsertComparisons(ctx, p.tx, rows)
}

func (p *publication) removeComparisons(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.comparisons, p.stored.comparisons), upsertBatch, func(slugs []string) error {
		rows, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).Order(comparison.ByID()).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p.report.Comparisons.Removed++
			if err := p.tell(ctx, journal.ComparisonRemoved, row.ID, summary(comparisonRecord(row)), nil); err != nil {
				return err
			}
		}
		_, err = p.tx.Comparison.Delete().Where(comparison.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

func (p *publication) removeCategories(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.categories, p.stored.categories), upsertBatch, func(slugs []string) error {
		for _, slug := range slugs {
			p.report.Categories.Removed++
			before := summary(categoryRecord(p.stored.categories[slug]))
			if err := p.tell(ctx, journal.CategoryRemoved, slug, before, nil); err != nil {
				return err
			}
		}
		_, err := p.tx.Category.Delete().Where(category.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

func equal(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
