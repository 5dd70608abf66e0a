package model

import (
	"math"
	"strings"

	"palmares/ent/schema"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/release"
)

// CatalogTool is a tool of the release, active or retired. Fields that look the same in
// the catalog are those of release.Tool; the others are methods.
type CatalogTool struct {
	*release.Tool
	Siblings *Siblings[*release.Tool]
}

// Tool is an active tool.
type Tool struct{ CatalogTool }

// RetiredTool is a retired tool.
type RetiredTool struct{ CatalogTool }

// IsNode and IsComparedTool mark the interfaces that tools implement.
func (CatalogTool) IsNode()         {}
func (CatalogTool) IsComparedTool() {}

// Tools returns active tools.
func (v *View) Tools(found []*release.Tool) []*Tool {
	siblings := newSiblings(v, found)
	all, tools := make([]Tool, len(found)), make([]*Tool, len(found))
	for i, t := range found {
		all[i] = Tool{CatalogTool{t, siblings}}
		tools[i] = &all[i]
	}
	return tools
}

// RetiredTools returns retired tools.
func (v *View) RetiredTools(found []*release.Tool) []*RetiredTool {
	siblings, tools := newSiblings(v, found), make([]*RetiredTool, len(found))
	for i, t := range found {
		tools[i] = &RetiredTool{CatalogTool{t, siblings}}
	}
	return tools
}

// ComparedTools returns tools that may be active or retired.
func (v *View) ComparedTools(found []*release.Tool) map[*release.Tool]ComparedTool {
	siblings, tools := newSiblings(v, found), make(map[*release.Tool]ComparedTool, len(found))
	for _, t := range found {
		if t.Active() {
			tools[t] = &Tool{CatalogTool{t, siblings}}
		} else {
			tools[t] = &RetiredTool{CatalogTool{t, siblings}}
		}
	}
	return tools
}

// InCatalog returns what active and retired tools have in common.
func (t *CatalogTool) InCatalog() *CatalogTool { return t }

// ID returns the global identifier.
func (t *CatalogTool) ID() string { return t.Siblings.ID(ToolPrefix, t.Slug) }

// CategorySlug returns the slug of the category.
func (t *CatalogTool) CategorySlug() string { return t.Tool.Category }

// Score returns the score; nil if there is none.
func (t *CatalogTool) Score() *float64 { return orNull(&t.Tool.Score) }

// Category returns the category.
func (t *CatalogTool) Category() *Category {
	s := t.Siblings
	return made(s, "category", func() map[string]*Category {
		bySlug := map[string]*Category{}
		var found []*release.Category
		for _, t := range s.Items {
			if _, known := bySlug[t.Category]; !known {
				bySlug[t.Category] = nil
				found = append(found, s.Release.Category(t.Category))
			}
		}
		for _, c := range s.Categories(found) {
			bySlug[c.Slug] = c
		}
		return bySlug
	})[t.CategorySlug()]
}

// Reason returns why the tool was retired.
func (t *RetiredTool) Reason() RetirementReason { return RetirementReason(t.CatalogTool.Reason) }

// Note returns what happened to the tool.
func (t *RetiredTool) Note() string { return t.RetiredNote }

// Icp returns the audience.
func (t *Tool) Icp() Icp { return icps[t.ICP] }

// IcpCode returns the audience as the REST API spells it.
func (t *Tool) IcpCode() string { return t.ICP }

// Pricing returns the pricing model.
func (t *Tool) Pricing() Pricing { return Pricing(t.CatalogTool.Pricing) }

// PriceAmount returns the number in the price.
func (t *Tool) PriceAmount() float64 { return t.Amount }

// BillingPeriod returns the period of the price.
func (t *Tool) BillingPeriod() BillingPeriod { return BillingPeriod(t.Billing) }

// MonthlyPrice returns the price per month; nil if it cannot be converted.
func (t *Tool) MonthlyPrice() *float64 { return orNull(&t.CatalogTool.MonthlyPrice) }

// Verifiability returns how verifiable the claims of the tool are; nil if unknown.
func (t *Tool) Verifiability() *float64 { return orNull(&t.CatalogTool.Verifiability) }

// Obsolescence returns the risk of obsolescence; nil if unknown.
func (t *Tool) Obsolescence() *float64 { return orNull(&t.CatalogTool.Obsolescence) }

// Tagline returns the tagline in a language.
func (t *Tool) Tagline(language Language) string {
	return language.text(t.CatalogTool.Tagline, t.Translations.En.Tagline)
}

// Sources returns where the tool's data was checked.
func (t *Tool) Sources() (sources []*schema.Source) {
	for i := range t.CatalogTool.Sources {
		sources = append(sources, &t.CatalogTool.Sources[i])
	}
	return sources
}

// PriceHistory returns the price changes, newest first.
func (t *Tool) PriceHistory() (changes []*PriceChange) {
	for _, c := range t.Siblings.PricesOf(t.Slug) {
		changes = append(changes, newPriceChange(c))
	}
	return changes
}

// newPriceChange converts a price change, with its prices as numbers.
func newPriceChange(c *release.PriceChange) *PriceChange {
	after, before := pricing.Read(c.Price), pricing.Read(c.PreviousPrice)
	change := &PriceChange{
		ChangedAt: c.ChangedAt,
		Pricing:   Pricing(c.Pricing), Price: c.Price, Amount: after.Amount,
		PreviousPricing: Pricing(c.PreviousPricing), PreviousPrice: c.PreviousPrice, PreviousAmount: before.Amount,
		BillingPeriod: BillingPeriod(after.Billing), PreviousBillingPeriod: BillingPeriod(before.Billing),
		MonthlyPrice: orNull(&after.Monthly), PreviousMonthlyPrice: orNull(&before.Monthly),
	}
	if direction, percent := pricing.Compare(before, after); direction != "" {
		change.Direction, change.Percent = (*PriceDirection)(&direction), percent
	}
	return change
}

// Embeddings returns the embeddings document; nil if the tool has none.
func (t *Tool) Embeddings() *EmbeddingsDocument {
	if !t.InEmbeddings {
		return nil
	}
	return &EmbeddingsDocument{t}
}

// EmbeddingsDocument is the review of a tool in sections.
type EmbeddingsDocument struct{ *Tool }

// IsEmbeddingsChange marks the union that EmbeddingsDocument belongs to.
func (EmbeddingsDocument) IsEmbeddingsChange() {}

// CanonicalURL returns the page of the tool's review, or the tool's own page.
func (d *EmbeddingsDocument) CanonicalURL() string { return d.ReviewURL() }

// Hash identifies the text of all chunks.
func (d *EmbeddingsDocument) Hash() string { return d.SectionsHash }

// icps are the audiences by their code, which GraphQL cannot spell.
var icps = func() map[string]Icp {
	byCode := map[string]Icp{}
	for _, icp := range AllIcp {
		byCode[icp.Code()] = icp
	}
	return byCode
}()

// Code returns the audience as the catalog spells it.
func (i Icp) Code() string { return strings.ReplaceAll(string(i), "_", "-") }

// orNull returns nil for NaN.
func orNull(number *float64) *float64 {
	if math.IsNaN(*number) || math.IsInf(*number, 0) {
		return nil
	}
	return number
}
