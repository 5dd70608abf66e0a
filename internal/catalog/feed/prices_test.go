package feed

import (
	"fmt"
	"testing"
)

// step is a change between two prices in euros a month.
func step(day string, from, to int) PriceChange {
	return PriceChange{
		ChangedAt: day, Pricing: "payant", Price: fmt.Sprintf("%d €/mois", to),
		PreviousPricing: "payant", PreviousPrice: fmt.Sprintf("%d €/mois", from),
	}
}

// TestNewPrices checks whether an import records the price change it detects,
// from 10 to 20 on 2026-11-05, or finds it in the feed's history.
func TestNewPrices(t *testing.T) {
	detected := step("2026-11-05", 10, 20)
	for _, c := range []struct {
		name           string
		stored, listed []PriceChange
		want           []PriceChange
		current        PriceChange
	}{
		{"not in the history", nil, nil, []PriceChange{detected}, detected},
		{"listed with its own date", nil, []PriceChange{step("2026-11-03", 10, 20)},
			[]PriceChange{step("2026-11-03", 10, 20)}, step("2026-11-03", 10, 20)},
		{"listed late, dated before the last import", nil, []PriceChange{step("2026-10-20", 10, 20)},
			[]PriceChange{step("2026-10-20", 10, 20)}, step("2026-10-20", 10, 20)},
		{"listed as two steps", nil, []PriceChange{step("2026-11-04", 15, 20), step("2026-11-03", 10, 15)},
			[]PriceChange{step("2026-11-03", 10, 15), step("2026-11-04", 15, 20)}, step("2026-11-04", 15, 20)},
		{"stored before the price changed", []PriceChange{step("2026-11-05", 10, 20)}, nil, nil, step("2026-11-05", 10, 20)},
		{"the same step long ago, and its reversal", nil, []PriceChange{step("2021-01-01", 20, 10), step("2020-01-01", 10, 20)},
			[]PriceChange{step("2020-01-01", 10, 20), step("2021-01-01", 20, 10), detected}, detected},
		{"an old step to the same price", []PriceChange{step("2020-01-01", 5, 20)}, nil, []PriceChange{detected}, detected},
		{"a change and its reversal on one day", []PriceChange{detected, step("2026-11-05", 20, 10)}, nil, nil, detected},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := &Tool{Pricing: "payant", Price: "20 €/mois", UpdatedAt: "2026-11-05", PriceHistory: c.listed}
			last := &lastPrice{Pricing: "payant", Price: "10 €/mois", UpdatedAt: "2026-11-01"}
			got, current := newPrices(now, last, c.stored)
			if fmt.Sprint(got) != fmt.Sprint(c.want) || current == nil || *current != c.current {
				t.Errorf("got  %v, current %v\nwant %v, current %v", got, current, c.want, c.current)
			}
		})
	}
}
