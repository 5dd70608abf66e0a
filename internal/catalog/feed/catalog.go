package feed

import (
	"context"
	"fmt"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/internal/core/store"
)

// catalog is what the database holds, as little of it as a comparison needs.
type catalog struct {
	release     *ent.Release // nil before the first import
	categories  map[string]*storedCategory
	tools       map[string]storedTool // active and retired
	comparisons map[string]string     // fingerprints
	active      int
}

type storedCategory struct {
	slug        string // one text for all its tools
	fingerprint string
	toolCount   int
	avgScore    *float64
}

type storedTool struct {
	fingerprint, historyHash, sectionsHash string
	retired, inEmbeddings                  bool
	category                               string
}

func readCatalog(ctx context.Context, tx *ent.Tx) (*catalog, error) {
	c := &catalog{
		categories:  map[string]*storedCategory{},
		tools:       map[string]storedTool{},
		comparisons: map[string]string{},
	}
	var err error
	if c.release, err = store.NewestRelease(ctx, tx.Release); err != nil {
		return nil, err
	}
	err = inPages(func(after string) ([]*ent.Category, error) {
		return tx.Category.Query().Where(category.IDGT(after)).Order(category.ByID()).Limit(pageSize).
			Select(category.FieldID, category.FieldFingerprint, category.FieldToolCount, category.FieldAvgScore).All(ctx)
	}, func(row *ent.Category) string {
		c.categories[row.ID] = &storedCategory{row.ID, row.Fingerprint, row.ToolCount, row.AvgScore}
		return row.ID
	})
	if err != nil {
		return nil, err
	}
	err = inPages(func(after string) ([]*ent.Tool, error) {
		return tx.Tool.Query().Where(tool.IDGT(after)).Order(tool.ByID()).Limit(pageSize).
			Select(tool.FieldID, tool.FieldFingerprint, tool.FieldHistoryHash,
				tool.FieldSectionsHash, tool.FieldRetiredAt, tool.FieldInEmbeddings, tool.FieldCategorySlug).All(ctx)
	}, func(row *ent.Tool) string {
		c.tools[row.ID] = storedTool{row.Fingerprint, row.HistoryHash, row.SectionsHash, isRetired(row), row.InEmbeddings, c.categories[row.CategorySlug].slug}
		if !isRetired(row) {
			c.active++
		}
		return row.ID
	})
	if err != nil {
		return nil, err
	}
	err = inPages(func(after string) ([]*ent.Comparison, error) {
		return tx.Comparison.Query().Where(comparison.IDGT(after)).Order(comparison.ByID()).Limit(pageSize).
			Select(comparison.FieldID, comparison.FieldFingerprint).All(ctx)
	}, func(row *ent.Comparison) string {
		c.comparisons[row.ID] = row.Fingerprint
		return row.ID
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Refusal is a feed that is right in itself but not wanted without --force.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// refuse guards against publishing an old or a cut-off feed by mistake.
func (c *catalog) refuse(snap *snapshot) error {
	if c.release != nil && snap.header.UpdatedAt < c.release.FeedDate {
		return &Refusal{fmt.Sprintf("the feed is of %s, older than the catalog's %s: import it with --force if that is meant",
			snap.header.UpdatedAt, c.release.FeedDate)}
	}
	gone := 0
	for slug, stored := range c.tools {
		if line := snap.tools[slug]; !stored.retired && (line == nil || line.retired) {
			gone++
		}
	}
	if gone*5 > c.active {
		return &Refusal{fmt.Sprintf("the feed would remove or retire %d of %d active tools, more than a fifth: import it with --force if that is meant",
			gone, c.active)}
	}
	return nil
}

// toolMayDiffer tells what a closer look must decide: a tool that is new or
// other than it was, or a feed that tells of prices the catalog may not know.
func (c *catalog) toolMayDiffer(slug string, line *toolLine) bool {
	stored, exists := c.tools[slug]
	return !exists || stored.fingerprint != line.fingerprint || stored.mayGain(line)
}

// mayGain tells that the feed's price history is not just what is stored.
func (t storedTool) mayGain(line *toolLine) bool {
	return line.historyHash != "" && line.historyHash != t.historyHash
}

// missingFrom lists what is stored and not in the feed any more, in order.
func missingFrom[L, S any](feed map[string]L, stored map[string]S) []string {
	gone := map[string]bool{}
	for slug := range stored {
		if _, kept := feed[slug]; !kept {
			gone[slug] = true
		}
	}
	return sortedKeys(gone)
}
