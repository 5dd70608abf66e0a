package graph

import (
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
		PreviousPricing: model.Pricing(c.PreviousPricing),
		PreviousPrice:   c.PreviousPrice, PreviousAmount: before.Amount,
		BillingPeriod: model.BillingPeriod(after.Billing), PreviousBillingPeriod: model.BillingPeriod(before.Billing),
		MonthlyPrice: orNull(&after.Monthly), PreviousMonthlyPrice: orNull(&before.Monthly),
	}
	if direction, percent := pricing.Compare(before, after); direction != "" {
		change.Direction, change.Percent = (*model.PriceDirection)(&direction), percent
	}
	return change
}
