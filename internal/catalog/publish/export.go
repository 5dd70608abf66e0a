package publish

import (
	"context"
	"io"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// Export writes a release of the catalog as a feed, the newest one if asOf is 0.
// The records of each type are ordered by slug, so that the same catalog gives
// the same bytes with every database.
func Export(ctx context.Context, s *store.Store, w io.Writer, asOf int) error {
	var out *feed.Writer
	err := Records(ctx, s, asOf, func(header record.Header) error {
		out = feed.NewWriter(w, header.UpdatedAt)
		return nil
	}, func(rec record.Record) error {
		out.Write(rec)
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// Records calls begin with the header of a release, and each with its records, in the
// order of an export.
func Records(ctx context.Context, s *store.Store, asOf int, begin func(record.Header) error, each func(record.Record) error) error {
	return s.Snapshot(ctx, func(db *ent.Client, release *ent.Release) (err error) {
		if release == nil {
			return ErrEmptyCatalog
		}
		if asOf != 0 {
			if err := store.CheckReadable(asOf, release); err != nil {
				return err
			}
			if release, err = db.Release.Get(ctx, asOf); err != nil {
				return err
			}
		}
		if err := begin(record.Header{Format: record.FormatVersion, UpdatedAt: release.FeedDate}); err != nil {
			return err
		}
		for _, part := range []func(context.Context, *ent.Client, int, func(record.Record) error) error{
			categories, tools, comparisons, retired,
		} {
			if err := part(ctx, db, release.ID, each); err != nil {
				return err
			}
		}
		return nil
	})
}

func categories(ctx context.Context, db *ent.Client, release int, each func(record.Record) error) error {
	rows, err := db.Category.Query().Where(store.Categories.At(release)).Order(category.ByID()).All(ctx)
	for _, row := range rows {
		if err := each(record.FromRow[record.Category](row)); err != nil {
			return err
		}
	}
	return err
}

func tools(ctx context.Context, db *ent.Client, release int, each func(record.Record) error) error {
	return inPages(func(after string) ([]*ent.Tool, error) {
		return db.Tool.Query().Where(store.Tools.At(release), tool.RetiredAtIsNil(), tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).
			WithSections(func(q *ent.SectionQuery) { q.Where(store.Sections.At(release)).Order(section.ByPosition()) }).
			WithPriceChanges(func(q *ent.PriceChangeQuery) {
				q.Where(store.PriceChanges.At(release)).Order(pricechange.ByChangedAt(entsql.OrderDesc()), pricechange.ByID(entsql.OrderDesc()))
			}).
			All(ctx)
	}, func(row *ent.Tool) (string, error) {
		rec := record.FromRow[record.Tool](row)
		for _, s := range row.Edges.Sections {
			rec.Sections = append(rec.Sections, *record.FromRow[record.Section](s))
		}
		for _, c := range row.Edges.PriceChanges {
			rec.PriceHistory = append(rec.PriceHistory, *record.FromRow[record.PriceChange](c))
		}
		return row.ID, each(rec)
	})
}

func comparisons(ctx context.Context, db *ent.Client, release int, each func(record.Record) error) error {
	return inPages(func(after string) ([]*ent.Comparison, error) {
		return db.Comparison.Query().Where(store.Comparisons.At(release), comparison.IDGT(after)).Order(comparison.ByID()).Limit(pageSize).All(ctx)
	}, func(row *ent.Comparison) (string, error) { return row.ID, each(record.FromRow[record.Comparison](row)) })
}

func retired(ctx context.Context, db *ent.Client, release int, each func(record.Record) error) error {
	return inPages(func(after string) ([]*ent.Tool, error) {
		return db.Tool.Query().Where(store.Tools.At(release), tool.RetiredAtNotNil(), tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).All(ctx)
	}, func(row *ent.Tool) (string, error) { return row.ID, each(record.FromRow[record.Retired](row)) })
}
