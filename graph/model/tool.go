package model

import (
	"palmares/ent/schema"
	"palmares/internal/catalog/release"
)

// Tool is an active tool. Fields that look the same in the catalog are those of
// release.Tool and release.Details; the others are declared here.
type Tool struct {
	*release.Tool

	ID            string
	CategorySlug  string
	Icp           Icp
	IcpCode       string
	Pricing       Pricing
	PriceAmount   float64
	BillingPeriod BillingPeriod
	MonthlyPrice  *float64
	Score         *float64
	Verifiability *float64
	Obsolescence  *float64

	// What is stored elsewhere, if it is selected.
	Category       *Category
	PriceHistory   []*PriceChange
	History        []*ToolMoment
	Verdict        *string
	ReviewSections []string
	Embeddings     *EmbeddingsDocument
}

// Tagline returns the tagline in a language.
func (t *Tool) Tagline(language Language) string {
	if t.Translations == nil {
		return t.Tool.Tagline
	}
	return language.text(t.Tool.Tagline, t.Translations.En.Tagline)
}

// Sources returns where the tool's data was checked.
func (t *Tool) Sources() (sources []*schema.Source) {
	if t.Tool.Sources != nil {
		for i := range *t.Tool.Sources {
			sources = append(sources, &(*t.Tool.Sources)[i])
		}
	}
	return sources
}

// IsNode and IsComparedTool mark the interfaces that Tool implements.
func (Tool) IsNode()         {}
func (Tool) IsComparedTool() {}
