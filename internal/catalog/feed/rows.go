package feed

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	"palmares/ent/tool"
	"palmares/internal/core/text"
)

// Between records and rows: the two shapes of the same catalog.

// maxNameKey is well within what an index entry of either database can hold.
const maxNameKey = 400

func categoryRow(create *ent.CategoryCreate, c *Category, line *categoryLine) {
	create.SetID(c.Slug).SetLabel(c.Label).SetFingerprint(line.fingerprint).
		SetToolCount(line.stats.tools).SetNillableAvgScore(line.stats.mean())
}

func categoryRecord(row *ent.Category) *Category {
	return &Category{Slug: row.ID, Label: row.Label}
}

func toolRow(create *ent.ToolCreate, t *Tool, line *toolLine, historyHash string) {
	amount, period, _ := parsePrice(t.Price)
	create.SetID(t.Slug).SetName(t.Name).SetNameKey(text.SortKey(t.Name, maxNameKey)).
		SetCategorySlug(t.Category).SetNillableScore(t.Score).SetUntested(t.Score == nil).
		SetDomain(t.Domain).SetIcp(tool.Icp(t.ICP)).
		SetPricing(tool.Pricing(t.Pricing)).SetPrice(t.Price).SetPriceAmount(amount).SetPricePeriod(period).
		SetNillableVerifiability(t.Verifiability).SetNillableObsolescence(t.Obsolescence).
		SetTagline(t.Tagline).SetCanonicalURL(t.CanonicalURL).SetNillableAvisURL(t.AvisURL).
		SetAlternativesURL(t.AlternativesURL).SetUpdatedAt(t.UpdatedAt).
		SetSearchText(text.Fold(t.Name + "\n" + t.Tagline)).
		SetTier(int(t.Tier)).SetMainstream(t.Mainstream).
		SetSectionsHash(line.sectionsHash).SetHistoryHash(historyHash).SetInEmbeddings(line.inEmbeddings).
		SetFingerprint(line.fingerprint)
}

func retiredRow(create *ent.ToolCreate, r *Retired, line *toolLine) {
	create.SetID(r.Slug).SetName(r.Name).SetNameKey(text.SortKey(r.Name, maxNameKey)).
		SetCategorySlug(r.Category).SetNillableScore(r.Score).SetUntested(r.Score == nil).
		SetRetiredReason(tool.RetiredReason(r.Reason)).SetRetiredAt(r.RetiredAt).SetRetiredNote(r.Note).
		SetFingerprint(line.fingerprint)
}

func isRetired(row *ent.Tool) bool { return row.RetiredAt != "" }

// toolRecord is a row without its sections and history, which are rows of
// their own: see toolState and Export.
func toolRecord(row *ent.Tool) *Tool {
	return &Tool{
		Slug: row.ID, Name: row.Name, Domain: row.Domain, Category: row.CategorySlug,
		ICP: string(row.Icp), Pricing: string(row.Pricing), Price: row.Price,
		Score: row.Score, Verifiability: row.Verifiability, Tagline: row.Tagline,
		CanonicalURL: row.CanonicalURL, AvisURL: row.AvisURL, AlternativesURL: row.AlternativesURL,
		UpdatedAt: row.UpdatedAt, Tier: Tier(row.Tier), Mainstream: row.Mainstream, Obsolescence: row.Obsolescence,
	}
}

func retiredRecord(row *ent.Tool) *Retired {
	return &Retired{
		Slug: row.ID, Name: row.Name, Category: row.CategorySlug, Score: row.Score,
		Reason: string(row.RetiredReason), RetiredAt: row.RetiredAt, Note: row.RetiredNote,
	}
}

// toolState is a stored tool as the journal tells it; nil for none.
func toolState(row *ent.Tool) []byte {
	switch {
	case row == nil:
		return nil
	case isRetired(row):
		return summary(retiredRecord(row))
	}
	return encode(toolSummary{Tool: toolRecord(row), SectionsHash: row.SectionsHash})
}

func comparisonRow(create *ent.ComparisonCreate, c *Comparison, line *comparisonLine) {
	create.SetID(c.Slug).SetTitle(c.Title).
		SetToolASlug(c.ToolA).SetToolBSlug(c.ToolB).SetWinnerSlug(c.Winner).SetWinnerNote(c.WinnerNote).
		SetPublished(bool(c.Published)).SetUpdatedAt(c.UpdatedAt).SetCanonicalURL(c.CanonicalURL).
		SetFingerprint(line.fingerprint)
}

func comparisonRecord(row *ent.Comparison) *Comparison {
	return &Comparison{
		Slug: row.ID, Title: row.Title, ToolA: row.ToolASlug, ToolB: row.ToolBSlug,
		Winner: row.WinnerSlug, WinnerNote: row.WinnerNote, Published: Published(row.Published),
		UpdatedAt: row.UpdatedAt, CanonicalURL: row.CanonicalURL,
	}
}

func priceChangeRow(create *ent.PriceChangeCreate, toolSlug string, c PriceChange) {
	create.SetToolSlug(toolSlug).SetChangedAt(c.ChangedAt).SetDigest(c.digest()).
		SetPricing(pricechange.Pricing(c.Pricing)).SetPrice(c.Price).
		SetPreviousPricing(pricechange.PreviousPricing(c.PreviousPricing)).SetPreviousPrice(c.PreviousPrice)
}

func priceChangeRecord(row *ent.PriceChange) PriceChange {
	return PriceChange{
		ChangedAt: row.ChangedAt, Pricing: string(row.Pricing), Price: row.Price,
		PreviousPricing: string(row.PreviousPricing), PreviousPrice: row.PreviousPrice,
	}
}

func upsertCategories(ctx context.Context, tx *ent.Tx, rows []*ent.CategoryCreate) error {
	return inBatches(rows, upsertBatch, func(batch []*ent.CategoryCreate) error {
		return tx.Category.CreateBulk(batch...).OnConflict(replace(category.FieldID, category.Columns)...).Exec(ctx)
	})
}

func upsertTools(ctx context.Context, tx *ent.Tx, rows []*ent.ToolCreate) error {
	return inBatches(rows, upsertBatch, func(batch []*ent.ToolCreate) error {
		return tx.Tool.CreateBulk(batch...).OnConflict(replace(tool.FieldID, tool.Columns)...).Exec(ctx)
	})
}

func upsertComparisons(ctx context.Context, tx *ent.Tx, rows []*ent.ComparisonCreate) error {
	return inBatches(rows, upsertBatch, func(batch []*ent.ComparisonCreate) error {
		return tx.Comparison.CreateBulk(batch...).OnConflict(replace(comparison.FieldID, comparison.Columns)...).Exec(ctx)
	})
}

// replace makes an insert overwrite the row that has its key already, in every
// column: one that the new row leaves out is null again.
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
