package files

import (
	"math"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
)

// The rows of the tables other than those of tools. The tags name the columns, as GraphQL
// does in camel case.

type releaseRow struct {
	Number int32 `column:"number"`
	Date   Date  `column:"date"`
}

type categoryRow struct {
	Slug      string   `column:"slug"`
	Label     string   `column:"label"`
	LabelEn   *string  `column:"label_en"`
	ToolCount int32    `column:"tool_count"`
	AvgScore  *float64 `column:"avg_score"`
}

type comparisonRow struct {
	Slug         string  `column:"slug"`
	Title        string  `column:"title"`
	TitleEn      *string `column:"title_en"`
	ToolASlug    string  `column:"tool_a_slug"`
	ToolBSlug    string  `column:"tool_b_slug"`
	WinnerSlug   string  `column:"winner_slug"`
	WinnerNote   string  `column:"winner_note"`
	WinnerNoteEn *string `column:"winner_note_en"`
	UpdatedAt    Date    `column:"updated_at"`
	CanonicalURL string  `column:"canonical_url"`
}

type priceRow struct {
	ToolSlug              string   `column:"tool_slug"`
	Position              int32    `column:"position"` // place among the changes of the tool, from 0
	ChangedAt             Date     `column:"changed_at"`
	Pricing               string   `column:"pricing,dict"`
	Price                 string   `column:"price,dict"`
	Amount                float64  `column:"amount"`
	BillingPeriod         string   `column:"billing_period,dict"`
	MonthlyPrice          *float64 `column:"monthly_price"`
	PreviousPricing       string   `column:"previous_pricing,dict"`
	PreviousPrice         string   `column:"previous_price,dict"`
	PreviousAmount        float64  `column:"previous_amount"`
	PreviousBillingPeriod string   `column:"previous_billing_period,dict"`
	PreviousMonthlyPrice  *float64 `column:"previous_monthly_price"`
	Direction             *string  `column:"direction,dict"`
	Percent               *float64 `column:"percent"`
}

type reviewRow struct {
	ToolSlug string `column:"tool_slug"`
	Position int32  `column:"position"`
	Section  string `column:"section,dict"`
	Text     string `column:"text"`
}

func newCategory(row *ent.Category) categoryRow {
	return categoryRow{
		Slug: row.ID, Label: row.Label, LabelEn: unlessZero(row.Translations.En.Label), ToolCount: int32(row.ToolCount), AvgScore: row.AvgScore, //nolint:gosec // fits into memory
	}
}

func newComparison(row *ent.Comparison) comparisonRow {
	return comparisonRow{
		Slug: row.ID, Title: row.Title, TitleEn: unlessZero(row.Translations.En.Title),
		ToolASlug: row.ToolASlug, ToolBSlug: row.ToolBSlug, WinnerSlug: row.WinnerSlug,
		WinnerNote: row.WinnerNote, WinnerNoteEn: unlessZero(row.Translations.En.WinnerNote),
		UpdatedAt: dateOf(row.UpdatedAt), CanonicalURL: row.CanonicalURL,
	}
}

func newPrice(row *ent.PriceChange, position int) priceRow {
	before, after := pricing.Read(row.PreviousPrice), pricing.Read(row.Price)
	direction, percent := pricing.Compare(before, after)
	return priceRow{
		ToolSlug: row.ToolSlug, Position: int32(position), ChangedAt: dateOf(row.ChangedAt), //nolint:gosec // limited by the length of a line, 1 MiB
		Pricing: string(row.Pricing), Price: row.Price, Amount: after.Amount, BillingPeriod: after.Billing, MonthlyPrice: number(after.Monthly),
		PreviousPricing: string(row.PreviousPricing), PreviousPrice: row.PreviousPrice, PreviousAmount: before.Amount,
		PreviousBillingPeriod: before.Billing, PreviousMonthlyPrice: number(before.Monthly),
		Direction: unlessZero(direction), Percent: percent,
	}
}

func newReview(row *ent.Section) reviewRow {
	return reviewRow{row.ToolSlug, int32(row.Position), row.Section, row.Text} //nolint:gosec // limited by the length of a line, 1 MiB
}

// number returns a number that may be NaN, which stands for none.
func number(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}

func unlessZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
