package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// catalog is the stored catalog, reduced to what a comparison with a snapshot
// needs.
type catalog struct {
	release     *ent.Release // nil before the first import
	categories  map[string]*ent.Category
	tools       map[string]storedTool // active and retired
	documents   map[string]string     // metadata of the embeddings documents
	comparisons map[string]string     // fingerprints
}

type storedTool struct {
	fingerprint, historyHash, sectionsHash string
	retired                                bool
	category                               string // shares memory with the category's row
}

func readCatalog(ctx context.Context, tx *ent.Tx) (*catalog, error) {
	c := &catalog{
		categories:  map[string]*ent.Category{},
		tools:       map[string]storedTool{},
		documents:   map[string]string{},
		comparisons: map[string]string{},
	}
	var err error
	if c.release, err = store.NewestRelease(ctx, tx.Release); err != nil {
		return nil, err
	}
	categories, err := tx.Category.Query().All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range categories {
		c.categories[row.ID] = row
	}
	err = inPages(func(after string) ([]*ent.Tool, error) {
		return tx.Tool.Query().Where(tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).
			Select(tool.FieldID, tool.FieldFingerprint, tool.FieldHistoryHash,
				tool.FieldSectionsHash, tool.FieldRetiredAt, tool.FieldCategorySlug).All(ctx)
	}, func(row *ent.Tool) (string, error) {
		c.tools[row.ID] = storedTool{
			row.Fingerprint, row.HistoryHash, row.SectionsHash, isRetired(row), c.categories[row.CategorySlug].ID,
		}
		return row.ID, nil
	})
	if err != nil {
		return nil, err
	}
	members, err := tx.Tool.Query().Where(tool.InEmbeddings(true)).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range members {
		c.documents[row.ID] = record.DocumentMetadata(record.FromRow[record.Tool](row))
	}
	err = inPages(func(after string) ([]*ent.Comparison, error) {
		return tx.Comparison.Query().Where(comparison.IDGT(after)).Order(comparison.ByID()).Limit(pageSize).
			Select(comparison.FieldID, comparison.FieldFingerprint).All(ctx)
	}, func(row *ent.Comparison) (string, error) {
		c.comparisons[row.ID] = row.Fingerprint
		return row.ID, nil
	})
	return c, err
}

// pageSize is how many rows are read at once, reviews included.
const pageSize = 500

// inPages calls each for every row. query returns the page after a slug.
func inPages[Row any](query func(after string) ([]Row, error), each func(Row) (slug string, err error)) error {
	for after := ""; ; {
		rows, err := query(after)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if after, err = each(row); err != nil {
				return err
			}
		}
		if len(rows) < pageSize {
			return nil
		}
	}
}

func isRetired(row *ent.Tool) bool { return row.RetiredAt != "" }

// checkPlausible returns an ImplausibleError for a feed that looks old or truncated.
func (c *catalog) checkPlausible(snap *feed.Snapshot) error {
	if c.release != nil && snap.Header.UpdatedAt < c.release.FeedDate {
		return &ImplausibleError{fmt.Sprintf("the feed's date, %s, is older than the catalog's, %s; use --force to import it anyway",
			snap.Header.UpdatedAt, c.release.FeedDate)}
	}
	active, lost := 0, 0
	for slug, stored := range c.tools {
		if stored.retired {
			continue
		}
		active++
		if line := snap.Tools[slug]; line == nil || line.Retired {
			lost++
		}
	}
	if lost*5 > active {
		return &ImplausibleError{fmt.Sprintf("the feed would remove or retire %d of %d active tools, more than a fifth; use --force to import it anyway",
			lost, active)}
	}
	return nil
}

// missingFrom returns the stored slugs that the feed no longer has, sorted.
func missingFrom[L, S any](feed map[string]L, stored map[string]S) []string {
	missing := map[string]bool{}
	for slug := range stored {
		if _, found := feed[slug]; !found {
			missing[slug] = true
		}
	}
	return sortedKeys(missing)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
