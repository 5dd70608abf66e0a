package files

import (
	"math"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
)

// The rows of the tables that are not records. The tags name the columns, as GraphQL does
// in camel case.

type releaseRow struct {
	Number int32 `column:"number"`
	Date   Date  `column:"date"`
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
