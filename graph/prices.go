package graph

import (
	"math"

	"palmares/graph/model"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/release"
)

// priceChange converts a price change, with its prices as numbers.
func priceChange(c *release.PriceChange) *model.PriceChange {
	after, before := pricing.Read(c.Price), pricing.Read(c.PreviousPrice)
	change := &model.PriceChange{
		ChangedAt: c.ChangedAt,
		Pricing:   model.Pricing(c.Pricing), Price: c.Price, Amount: after.Amount,
		PreviousPricing: model.Pricing(c.PreviousPricing), PreviousPrice: c.PreviousPrice, PreviousAmount: before.Amount,
		BillingPeriod: model.BillingPeriod(after.Billing), PreviousBillingPeriod: model.BillingPeriod(before.Billing),
		MonthlyPrice: orNull(&after.Monthly), PreviousMonthlyPrice: orNull(&before.Monthly),
	}
	if direction, percent := pricing.Compare(before, after); direction != "" {
		change.Direction, change.Percent = (*model.PriceDirection)(&direction), percent
	}
	return change
}

// orNull returns nil for NaN.
func orNull(number *float64) *float64 {
	if math.IsNaN(*number) || math.IsInf(*number, 0) {
		return nil
	}
	return number
}
