package publish

import (
	"fmt"
	"testing"

	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

// step is a change between two prices in euros a month.
func step(day string, from, to int) record.PriceChange {
	return record.PriceChange{
		ChangedAt: day, Pricing: "payant", Price: fmt.Sprintf("%d €/mois", to),
		PreviousPricing: "payant", PreviousPrice: fmt.Sprintf("%d €/mois", from),
	}
}

// TestNewPrices checks whether an import records the price change it detects,
// from 10 to 20 on 2026-11-05, or finds it in the feed's history.
func TestNewPrices(t *testing.T) {
	detected := step("2026-11-05", 10, 20)
	otherPricing := step("2026-10-20", 10, 20)
	otherPricing.PreviousPricing = "freemium"
	for _, c := range []struct {
		name           string
		stored, listed []record.PriceChange
		want           []record.PriceChange
		current        record.PriceChange
	}{
		{"not in the history", nil, nil, []record.PriceChange{detected}, detected},
		{"listed with its own date", nil, []record.PriceChange{step("2026-11-03", 10, 20)},
			[]record.PriceChange{step("2026-11-03", 10, 20)}, step("2026-11-03", 10, 20)},
		{"listed late, dated before the last import", nil, []record.PriceChange{step("2026-10-20", 10, 20)},
			[]record.PriceChange{step("2026-10-20", 10, 20)}, step("2026-10-20", 10, 20)},
		{"listed as two steps", nil, []record.PriceChange{step("2026-11-04", 15, 20), step("2026-11-03", 10, 15)},
			[]record.PriceChange{step("2026-11-03", 10, 15), step("2026-11-04", 15, 20)}, step("2026-11-04", 15, 20)},
		{"stored before the price changed", []record.PriceChange{step("2026-11-05", 10, 20)}, nil, nil, step("2026-11-05", 10, 20)},
		{"the same step long ago, and its reversal", nil, []record.PriceChange{step("2021-01-01", 20, 10), step("2020-01-01", 10, 20)},
			[]record.PriceChange{step("2020-01-01", 10, 20), step("2021-01-01", 20, 10), detected}, detected},
		{"an old step to the same price", []record.PriceChange{step("2020-01-01", 5, 20)}, nil, []record.PriceChange{detected}, detected},
		{"listed on the day of the last import", nil, []record.PriceChange{step("2026-11-01", 15, 20)},
			[]record.PriceChange{step("2026-11-01", 15, 20)}, step("2026-11-01", 15, 20)},
		{"listed late, from another price", nil, []record.PriceChange{step("2026-10-20", 15, 20)},
			[]record.PriceChange{step("2026-10-20", 15, 20), detected}, detected},
		{"listed late, with another kind of pricing before", nil, []record.PriceChange{otherPricing},
			[]record.PriceChange{otherPricing, detected}, detected},
		{"stored long ago as the same step", []record.PriceChange{step("2026-10-20", 10, 20)}, nil, []record.PriceChange{detected}, detected},
		{"listed in another order than by day", nil, []record.PriceChange{step("2026-11-03", 10, 15), step("2026-11-04", 15, 20)},
			[]record.PriceChange{step("2026-11-03", 10, 15), step("2026-11-04", 15, 20)}, step("2026-11-04", 15, 20)},
		{"listed before what is stored", []record.PriceChange{step("2026-11-04", 15, 20)}, []record.PriceChange{step("2026-11-03", 10, 15)},
			[]record.PriceChange{step("2026-11-03", 10, 15)}, step("2026-11-04", 15, 20)},
		{"a change and its reversal on one day", []record.PriceChange{detected, step("2026-11-05", 20, 10)}, nil, nil, detected},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := &record.Tool{Pricing: "payant", Price: "20 €/mois", UpdatedAt: "2026-11-05", PriceHistory: c.listed}
			last := &lastPrice{Pricing: "payant", Price: "10 €/mois", UpdatedAt: "2026-11-01"}
			got, current := newPrices(now, last, c.stored)
			check.True(t, fmt.Sprint(got) == fmt.Sprint(c.want) && current != nil && *current == c.current, "got  %v, current %v\nwant %v, current %v", got, current, c.want, c.current)
		})
	}
}

// The journal has the last price and the price changes of a tool before it was retired.
func TestEarlierPrices(t *testing.T) {
	entry := func(kind, before, after string) *ent.JournalEntry {
		return &ent.JournalEntry{Kind: kind, Before: &before, After: &after}
	}
	const ten, twenty = `{"pricing":"payant","price":"10 €/mois"}`, `{"pricing":"payant","price":"20 €/mois","changed_at":"2026-11-05"}`
	var e earlierPrices
	for _, entry := range []*ent.JournalEntry{
		{Kind: journal.ToolRetired}, // it was never active
		entry(journal.PriceChanged, ten, twenty),
		entry(journal.PriceBackfilled, ten, twenty), // the same change again
		entry(journal.ToolRetired, `{"price":"20 €/mois","updated_at":"2026-11-06"}`, `{}`),
		entry(journal.ToolRemoved, `{"reason":"mort"}`, `{}`), // a retired tool has no price
	} {
		check.OK(t, e.add(entry))
	}
	check.Equal(t, fmt.Sprint(e.changes), fmt.Sprint([]record.PriceChange{step("2026-11-05", 10, 20)}), "changes: %v", e.changes)
	check.MustTrue(t, e.last != nil, "got last price %v, want that of the active tool", e.last)
	check.Equal(t, e.last.Price, "20 €/mois", "last price %v", e.last)
	check.Equal(t, e.last.UpdatedAt, "2026-11-06", "last price %v", e.last)
	check.OK(t, e.add(entry(journal.ToolRemoved, `{"price":"30 €/mois"}`, `{}`)))
	check.Equal(t, e.last.Price, "30 €/mois", "last price %v", e.last)
	for _, broken := range []*ent.JournalEntry{
		entry(journal.ToolRetired, `{`, `{}`), entry(journal.PriceChanged, `{`, `{}`), entry(journal.PriceChanged, `{}`, `{`),
	} {
		if e.add(broken) == nil {
			t.Errorf("%s, %s: got no error, want one", *broken.Before, *broken.After)
		}
	}
}
