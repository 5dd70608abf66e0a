package feed

import (
	"context"
	"errors"
	"io"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/core/store"
)

// ErrEmptyCatalog is an export before the first import.
var ErrEmptyCatalog = errors.New("the catalog is empty: nothing has been imported yet")

// Export writes the catalog as a feed, each type in the order of its slugs:
// the same catalog gives the same bytes on every database.
func Export(ctx context.Context, s *store.Store, w io.Writer) error {
	return s.Snapshot(ctx, func(tx *ent.Tx, release *ent.Release) error {
		if release == nil {
			return ErrEmptyCatalog
		}
		out := NewWriter(w, release.FeedDate)
		for _, part := range []func(context.Context, *ent.Tx, *Writer) error{
			exportCategories, exportTools, exportComparisons, exportRetired,
		} {
			if err := part(ctx, tx, out); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}

func exportCategories(ctx context.Context, tx *ent.Tx, out *Writer) error {
	rows, err := tx.Category.Query().Order(category.ByID()).All(ctx)
	for _, row := range rows {
		out.Write(categoryRecord(row))
	}
	return err
}

func exportTools(ctx context.Context, tx *ent.Tx, out *Writer) error {
	query := func(after string) ([]*ent.Tool, error) {
		return tx.Tool.Query().Where(tool.RetiredAtIsNil(), tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).
			WithSections(func(q *ent.SectionQuery) { q.Order(section.ByPosition()) }).
			WithPriceChanges(func(q *ent.PriceChangeQuery) {
				q.Order(pricechange.ByChangedAt(entsql.OrderDesc()), pricechange.ByID(entsql.OrderDesc()))
			}).
			All(ctx)
	}
	return inPages(query, func(row *ent.Tool) string {
		rec := toolRecord(row)
		for _, s := range row.Edges.Sections {
			rec.Sections = append(rec.Sections, Section{s.Section, s.Text})
		}
		for _, c := range row.Edges.PriceChanges {
			rec.PriceHistory = append(rec.PriceHistory, priceChangeRecord(c))
		}
		out.Write(rec)
		return row.ID
	})
}

func exportComparisons(ctx context.Context, tx *ent.Tx, out *Writer) error {
	query := func(after string) ([]*ent.Comparison, error) {
		return tx.Comparison.Query().Where(comparison.IDGT(after)).Order(comparison.ByID()).Limit(pageSize).All(ctx)
	}
	return inPages(query, func(row *ent.Comparison) string {
		out.Write(comparisonRecord(row))
		return row.ID
	})
}

func exportRetired(ctx context.Context, tx *ent.Tx, out *Writer) error {
	query := func(after string) ([]*ent.Tool, error) {
		return tx.Tool.Query().Where(tool.RetiredAtNotNil(), tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).All(ctx)
	}
	return inPages(query, func(row *ent.Tool) string {
		out.Write(retiredRecord(row))
		return row.ID
	})
}
