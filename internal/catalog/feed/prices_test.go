package feed

import (
	"fmt"
	"testing"

	"palmares/ent"
	"palmares/ent/tool"
)

// step is a change between prices of so many euros a month.
func step(day string, from, to int) PriceChange {
	return PriceChange{
		ChangedAt: day, Pricing: "payant", Price: fmt.Sprintf("%d €/mois", to),
		PreviousPricing: "payant", PreviousPrice: fmt.Sprintf("%d €/mois", from),
	}
}

// TestNewPrices tells when an import records the move that it sees, from 10 to
// 20 on 2026-11-05, and when the feed's own history tells it already.
func TestNewPrices(t *testing.T) {
	seen := step("2026-11-05", 10, 20)
	for _, c := range []struct {
		name         string
		stored, told []PriceChange
		want         []PriceChange
		moved        PriceChange
	}{
		{"nothing is told", nil, nil, []PriceChange{seen}, seen},
		{"it is told, with its own date", nil, []PriceChange{step("2026-11-03", 10, 20)},
			[]PriceChange{step("2026-11-03", 10, 20)}, step("2026-11-03", 10, 20)},
		{"it is told late, of before the last import", nil, []PriceChange{step("2026-10-20", 10, 20)},
			[]PriceChange{step("2026-10-20", 10, 20)}, step("2026-10-20", 10, 20)},
		{"it is told as two steps", nil, []PriceChange{step("2026-11-04", 15, 20), step("2026-11-03", 10, 15)},
			[]PriceChange{step("2026-11-03", 10, 15), step("2026-11-04", 15, 20)}, step("2026-11-04", 15, 20)},
		{"it was told before it came", []PriceChange{step("2026-11-05", 10, 20)}, nil, nil, step("2026-11-05", 10, 20)},
		{"the same step of long ago is told, and its way back", nil, []PriceChange{step("2021-01-01", 20, 10), step("2020-01-01", 10, 20)},
			[]PriceChange{step("2020-01-01", 10, 20), step("2021-01-01", 20, 10), seen}, seen},
		{"an old step ended there", []PriceChange{step("2020-01-01", 5, 20)}, nil, []PriceChange{seen}, seen},
		{"there and back on one day", []PriceChange{seen, step("2026-11-05", 20, 10)}, nil, nil, seen},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := &Tool{Pricing: "payant", Price: "20 €/mois", UpdatedAt: "2026-11-05", PriceHistory: c.told}
			before := &ent.Tool{Pricing: tool.PricingPayant, Price: "10 €/mois", UpdatedAt: "2026-11-01"}
			got, moved := newPrices(now, before, c.stored)
			if fmt.Sprint(got) != fmt.Sprint(c.want) || moved == nil || *moved != c.moved {
				t.Errorf("got  %v, moved %v\nwant %v, moved %v", got, moved, c.want, c.moved)
			}
		})
	}
}
