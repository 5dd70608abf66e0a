package graph

import (
	"math"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/text"
)

// priceChange converts a price change, with its prices as numbers.
func priceChange(row *ent.PriceChange) *model.PriceChange {
	after, before := readPrice(row.Price), readPrice(row.PreviousPrice)
	change := &model.PriceChange{
		ChangedAt: row.ChangedAt,
		Pricing:   model.Pricing(row.Pricing), Price: row.Price, Amount: after.amount,
		PreviousPricing: model.Pricing(row.PreviousPricing), PreviousPrice: row.PreviousPrice, PreviousAmount: before.amount,
		BillingPeriod: after.period, PreviousBillingPeriod: before.period,
		MonthlyPrice: orNull(after.monthly), PreviousMonthlyPrice: orNull(before.monthly),
	}
	if direction, percent := ComparePrices(row.PreviousPrice, row.Price); direction != "" {
		change.Direction, change.Percent = &direction, percent
	}
	return change
}

// ComparePrices returns the direction and percentage of a price change, as in
// PriceChange. The direction is "" if the prices cannot be compared.
func ComparePrices(from, to string) (direction model.PriceDirection, change *float64) {
	before, after, ok := readPrice(from).comparable(readPrice(to))
	if !ok {
		return "", nil
	}
	return directionOf(before, after), percent(before, after)
}

// parsedPrice is a parsed price. monthly is NaN if there is no monthly price.
type parsedPrice struct {
	amount, monthly float64
	unit            string // the period as the price spells it
	period          model.BillingPeriod
}

func readPrice(text string) parsedPrice {
	amount, unit, _ := pricing.Parse(text) // the import checked it
	billing := pricing.Period(unit)
	return parsedPrice{amount, pricing.Monthly(amount, billing), unit, model.BillingPeriod(billing)}
}

// comparable returns both prices for the same period, if they have one.
func (p parsedPrice) comparable(other parsedPrice) (from, to float64, ok bool) {
	switch {
	case !math.IsNaN(p.monthly) && !math.IsNaN(other.monthly):
		return p.monthly, other.monthly, true
	case p.unit == other.unit, p.period == other.period && p.period != model.BillingPeriodOther && p.period != model.BillingPeriodUse:
		return p.amount, other.amount, true
	}
	return 0, 0, false
}

func directionOf(from, to float64) model.PriceDirection {
	switch {
	case to > from:
		return model.PriceDirectionUp
	case to < from:
		return model.PriceDirectionDown
	}
	return model.PriceDirectionSame
}

// percent returns the difference as a percentage of the first value, or nil if that
// value is 0.
func percent(from, to float64) *float64 {
	if from == 0 {
		return nil
	}
	return orNull(text.Round((to - from) / from * 100))
}

// orNull returns nil for NaN.
func orNull(number float64) *float64 {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil
	}
	return &number
}
