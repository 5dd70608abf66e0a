package feed

import (
	"context"
	"slices"
	"strings"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

// newPrices lists, oldest first, the price changes that are not stored yet:
// what the feed tells, and the move since the last import unless the feed
// tells that one itself. The move is also returned by itself; nil for none.
func newPrices(t *Tool, before *ent.Tool, stored []PriceChange) (prices []PriceChange, moved *PriceChange) {
	known := map[PriceChange]bool{}
	for _, change := range stored {
		known[change] = true
	}
	add := func(change PriceChange) {
		if !known[change] {
			known[change] = true
			prices = append(prices, change)
		}
	}
	// A history is told newest first; the stable sort keeps one day's order.
	told := slices.Clone(t.PriceHistory)
	slices.Reverse(told)
	slices.SortStableFunc(told, func(a, b PriceChange) int { return strings.Compare(a.ChangedAt, b.ChangedAt) })
	for _, change := range told {
		add(change)
	}
	if before == nil || isRetired(before) || (string(before.Pricing) == t.Pricing && before.Price == t.Price) {
		return prices, nil
	}
	moved = &PriceChange{
		ChangedAt: t.UpdatedAt, Pricing: t.Pricing, Price: t.Price,
		PreviousPricing: string(before.Pricing), PreviousPrice: before.Price,
	}
	if newest := newestOf(slices.Concat(stored, prices)); newest != nil && newest.tells(*moved, before, prices) {
		return prices, newest
	}
	add(*moved)
	return prices, moved
}

// newestOf is the last of the latest day; nil for none.
func newestOf(history []PriceChange) *PriceChange {
	var newest *PriceChange
	for i := range history {
		if newest == nil || history[i].ChangedAt >= newest.ChangedAt {
			newest = &history[i]
		}
	}
	return newest
}

// tells whether the newest change is how the price came to be what it is: it
// ends there, and it is of after the last import, or was told only now of
// just this step.
func (c PriceChange) tells(moved PriceChange, before *ent.Tool, told []PriceChange) bool {
	ends := c.Pricing == moved.Pricing && c.Price == moved.Price
	return ends && (c.ChangedAt >= before.UpdatedAt || (slices.Contains(told, c) && c.sameStep(moved)))
}

// checkFits refuses a history that has grown so long, over many imports, that
// no feed could tell it: an export must be importable.
func checkFits(t *Tool, history []PriceChange, line int) error {
	if len(history) == len(t.PriceHistory) {
		return nil // it came in one line
	}
	whole := *t
	whole.PriceHistory = history
	if len(Line(&whole)) <= maxLine {
		return nil
	}
	faults := &Faults{}
	faults.add(line, "%s: price_history: with what the catalog already has, the tool no longer fits a line of 1 MiB", label(typeTool, t.Slug))
	return faults
}

// tellPrices writes down what was told of the past and, once, how the price
// moved: also back to where it was before, which the history may have already.
func (p *publication) tellPrices(ctx context.Context, t *Tool, prices []PriceChange, moved *PriceChange) error {
	p.report.PriceChanges += len(prices)
	for _, price := range prices {
		if moved != nil && price == *moved {
			continue
		}
		if err := p.tellPrice(ctx, journal.PriceBackfilled, "", t, price); err != nil {
			return err
		}
	}
	if moved == nil {
		return nil
	}
	return p.tellPrice(ctx, journal.PriceChanged, journal.EventPriceChanged, t, *moved)
}

func (p *publication) tellPrice(ctx context.Context, kind, event string, t *Tool, price PriceChange) error {
	type state struct {
		Pricing   string `json:"pricing"`
		Price     string `json:"price"`
		ChangedAt string `json:"changed_at,omitzero"`
	}
	return p.tell(ctx, journal.Entry{
		Kind: kind, Event: event, Slug: t.Slug, Category: t.Category, OtherCategory: p.movedFrom(t.Slug),
		Before: encode(state{Pricing: price.PreviousPricing, Price: price.PreviousPrice}),
		After:  encode(state{Pricing: price.Pricing, Price: price.Price, ChangedAt: price.ChangedAt}),
	})
}
