package graph

import (
	"context"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/release"
)

// addHistory adds how the prices and scores of tools changed.
func (r *reader) addHistory(ctx context.Context, tools []*model.Tool) error {
	changes, err := r.journalOf(mapSlice(tools, func(t *model.Tool) string { return t.Slug })).ScoreChanges(ctx)
	scores := map[string][]release.ScoreChange{}
	for _, c := range changes {
		scores[c.Slug] = append(scores[c.Slug], release.ScoreChange{Day: c.Day, Score: c.Score})
	}
	for _, t := range tools {
		moments := r.release.Moments(t.Tool, scores[t.Slug], document.MaxPageSize)
		t.History = mapSlice(moments, func(m release.Moment) *model.ToolMoment {
			return &model.ToolMoment{At: m.At, Pricing: model.Pricing(m.Pricing), Price: m.Price, Score: m.Score}
		})
	}
	return err
}

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
