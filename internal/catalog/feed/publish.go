package feed

import (
	"context"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/internal/catalog/journal"
)

// writeCategories brings categories and their numbers to what the feed says.
func (p *publication) writeCategories(ctx context.Context) error {
	differing := map[string]string{}
	for _, slug := range sortedKeys(p.snap.categories) {
		line, stored := p.snap.categories[slug], p.stored.categories[slug]
		if stored == nil || stored.fingerprint != line.fingerprint {
			differing[slug] = line.fingerprint
		} else if err := p.updateNumbers(ctx, slug, stored, line); err != nil {
			return err
		}
	}
	p.report.Categories.Unchanged = len(p.snap.categories) - len(differing)
	return p.changedRecords(ctx, "writing categories", []string{typeCategory}, differing, p.writeCategoryBatch)
}

func (p *publication) writeCategoryBatch(ctx context.Context, records []record) error {
	before, err := bySlug(records, func(slugs []string) ([]*ent.Category, error) {
		return p.tx.Category.Query().Where(category.IDIn(slugs...)).All(ctx)
	}, func(row *ent.Category) string { return row.ID })
	if err != nil {
		return err
	}
	rows := make([]*ent.CategoryCreate, len(records))
	for i, rec := range records {
		slug := rec.recordSlug()
		rows[i] = p.tx.Category.Create()
		categoryRow(rows[i], rec.(*Category), p.snap.categories[slug])
		if was := before[slug]; was == nil {
			p.report.Categories.Created++
			err = p.tell(ctx, journal.Entry{Kind: journal.CategoryCreated, Slug: slug, After: summary(rec)})
		} else {
			p.report.Categories.Updated++
			err = p.tell(ctx, journal.Entry{Kind: journal.CategoryUpdated, Slug: slug, Before: summary(categoryRecord(was)), After: summary(rec)})
		}
		if err != nil {
			return err
		}
	}
	return upsertCategories(ctx, p.tx, rows)
}

// updateNumbers is for a category that is the same but for its tools.
func (p *publication) updateNumbers(ctx context.Context, slug string, stored *storedCategory, line *categoryLine) error {
	mean := line.stats.mean()
	if stored.toolCount == line.stats.tools && equal(stored.avgScore, mean) {
		return nil
	}
	update := p.tx.Category.UpdateOneID(slug).SetToolCount(line.stats.tools)
	if mean == nil {
		update.ClearAvgScore()
	} else {
		update.SetAvgScore(*mean)
	}
	return update.Exec(ctx)
}

// bySlug reads the stored side of some records.
func bySlug[Row any](records []record, query func(slugs []string) ([]Row, error), slugOf func(Row) string) (map[string]Row, error) {
	slugs := make([]string, len(records))
	for i, rec := range records {
		slugs[i] = rec.recordSlug()
	}
	rows, err := query(slugs)
	stored := make(map[string]Row, len(rows))
	for _, row := range rows {
		stored[slugOf(row)] = row
	}
	return stored, err
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
	before, err := bySlug(records, func(slugs []string) ([]*ent.Comparison, error) {
		return p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).All(ctx)
	}, func(row *ent.Comparison) string { return row.ID })
	if err != nil {
		return err
	}
	var pairs []comparisonChange
	rows := make([]*ent.ComparisonCreate, len(records))
	for i, rec := range records {
		slug := rec.recordSlug()
		rows[i] = p.tx.Comparison.Create()
		after := rec.(*Comparison)
		comparisonRow(rows[i], after, p.snap.comparisons[slug])
		if was := before[slug]; was == nil {
			p.report.Comparisons.Created++
			pairs = append(pairs, comparisonChange{kind: journal.ComparisonCreated, after: after})
		} else {
			p.report.Comparisons.Updated++
			pairs = append(pairs, comparisonChange{kind: journal.ComparisonUpdated, before: comparisonRecord(was), after: after})
		}
	}
	if err := p.tellComparisons(ctx, pairs); err != nil {
		return err
	}
	return upsertComparisons(ctx, p.tx, rows)
}

// listByCategory writes anew which comparisons each category has.
func (p *publication) listByCategory(ctx context.Context) error {
	if _, err := p.tx.ComparisonCategory.Delete().Exec(ctx); err != nil {
		return err
	}
	_, err := p.tx.ExecContext(ctx, `INSERT INTO comparison_categories (category_slug, comparison_slug)
		SELECT a.category_slug, c.slug FROM comparisons c JOIN tools a ON a.slug = c.tool_a_slug WHERE c.published
		UNION SELECT b.category_slug, c.slug FROM comparisons c JOIN tools b ON b.slug = c.tool_b_slug WHERE c.published`)
	return err
}

func (p *publication) removeComparisons(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.comparisons, p.stored.comparisons), upsertBatch, func(slugs []string) error {
		rows, err := p.tx.Comparison.Query().Where(comparison.IDIn(slugs...)).Order(comparison.ByID()).All(ctx)
		if err != nil {
			return err
		}
		var pairs []comparisonChange
		for _, row := range rows {
			p.report.Comparisons.Removed++
			pairs = append(pairs, comparisonChange{kind: journal.ComparisonRemoved, before: comparisonRecord(row)})
		}
		if err := p.tellComparisons(ctx, pairs); err != nil {
			return err
		}
		_, err = p.tx.Comparison.Delete().Where(comparison.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

func (p *publication) removeCategories(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.categories, p.stored.categories), upsertBatch, func(slugs []string) error {
		rows, err := p.tx.Category.Query().Where(category.IDIn(slugs...)).Order(category.ByID()).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p.report.Categories.Removed++
			if err := p.tell(ctx, journal.Entry{Kind: journal.CategoryRemoved, Slug: row.ID, Before: summary(categoryRecord(row))}); err != nil {
				return err
			}
		}
		_, err = p.tx.Category.Delete().Where(category.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
