package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
)

// earlierPrices are the prices of a tool before it was retired or removed.
type earlierPrices struct {
	last    *lastPrice
	changes []record.PriceChange // oldest entry of the journal first
}

// lastPrice is the last known price of a tool.
type lastPrice struct {
	Pricing   string `json:"pricing"`
	Price     string `json:"price"`
	UpdatedAt string `json:"updated_at"`
}

// readEarlierPrices reads the prices of the feed's active tools that were retired or
// removed at any time. The journal is never pruned, so it has the whole life of a
// tool; the tables do not.
func (p *publication) readEarlierPrices(ctx context.Context) error {
	p.earlier = map[string]earlierPrices{}
	if p.stored.release == nil {
		return nil
	}
	slugs, err := p.tx.JournalEntry.Query().
		Where(journalentry.EventIn(journal.EventToolRetired, journal.EventToolRemoved)).
		Unique(true).Select(journalentry.FieldSlug).Strings(ctx)
	if err != nil {
		return err
	}
	slugs = slices.DeleteFunc(slugs, func(slug string) bool {
		line := p.snap.Tools[slug]
		return line == nil || line.Retired
	})
	return inBatches(slugs, batchSize, func(slugs []string) error {
		entries, err := p.tx.JournalEntry.Query().Where(journalentry.SlugIn(slugs...), journalentry.KindIn(
			journal.ToolRetired, journal.ToolRemoved, journal.PriceChanged, journal.PriceBackfilled,
		)).Order(journalentry.ByID()).All(ctx)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			known := p.earlier[entry.Slug]
			if err := known.add(entry); err != nil {
				return fmt.Errorf("journal entry %d: %w", entry.ID, err)
			}
			p.earlier[entry.Slug] = known
		}
		return nil
	})
}

// add adds an entry about a price, or about the end of a tool.
func (e *earlierPrices) add(entry *ent.JournalEntry) error {
	if entry.Before == nil {
		return nil // it was added as a retired tool
	}
	if entry.Kind == journal.ToolRetired || entry.Kind == journal.ToolRemoved {
		var last lastPrice
		if err := json.Unmarshal([]byte(*entry.Before), &last); err != nil {
			return err
		}
		if last.Price != "" { // a retired tool has none
			e.last = &last
		}
		return nil
	}
	var before, after priceState
	if err := json.Unmarshal([]byte(*entry.Before), &before); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(*entry.After), &after); err != nil {
		return err
	}
	e.changes = append(e.changes, missingPrices([]record.PriceChange{{
		ChangedAt: after.ChangedAt, Pricing: after.Pricing, Price: after.Price,
		PreviousPricing: before.Pricing, PreviousPrice: before.Price,
	}}, e.changes)...)
	return nil
}

// newPrices returns the price changes that are not stored yet, oldest first:
// those in the feed, and the change since the last import unless the feed's
// history has it. last is the last known price, or nil if the tool was never active.
// current is the change to the current price, or nil if the price has not changed.
func newPrices(t *record.Tool, last *lastPrice, stored []record.PriceChange) (prices []record.PriceChange, current *record.PriceChange) {
	// A feed lists the newest change first; a stable sort retains the order of
	// changes on the same day.
	history := slices.Clone(t.PriceHistory)
	slices.Reverse(history)
	byDay := func(a, b record.PriceChange) int { return strings.Compare(a.ChangedAt, b.ChangedAt) }
	slices.SortStableFunc(history, byDay)
	prices = missingPrices(history, stored)
	if last == nil || (last.Pricing == t.Pricing && last.Price == t.Price) {
		return prices, nil
	}
	current = &record.PriceChange{
		ChangedAt: t.UpdatedAt, Pricing: t.Pricing, Price: t.Price,
		PreviousPricing: last.Pricing, PreviousPrice: last.Price,
	}
	// The newest known change is the current one if it leads to the current
	// price, and either happened since the last import, or is new in the feed
	// and starts at the previous price.
	all := slices.Concat(stored, prices)
	slices.SortStableFunc(all, byDay)
	if end := len(all) - 1; end >= 0 && all[end].Pricing == t.Pricing && all[end].Price == t.Price {
		newest := all[end]
		sameStep := newest.PreviousPricing == current.PreviousPricing && newest.PreviousPrice == current.PreviousPrice
		if newest.ChangedAt >= last.UpdatedAt || (sameStep && slices.Contains(prices, newest)) {
			return prices, &newest
		}
	}
	return append(prices, missingPrices([]record.PriceChange{*current}, all)...), current
}

// missingPrices returns the changes that are not among the known ones, each once.
func missingPrices(changes, known []record.PriceChange) (missing []record.PriceChange) {
	seen := map[record.PriceChange]bool{}
	for _, change := range known {
		seen[change] = true
	}
	for _, change := range changes {
		if !seen[change] {
			seen[change] = true
			missing = append(missing, change)
		}
	}
	return missing
}

// checkFits rejects a history that has grown too long for a line of a feed,
// because every export must be importable.
func checkFits(t *record.Tool, history []record.PriceChange, number int, source feed.Source) error {
	if len(history) == len(t.PriceHistory) {
		return nil // it was read from one line
	}
	whole := *t
	whole.PriceHistory = history
	if len(feed.Line(&whole)) <= feed.MaxLine {
		return nil
	}
	return feed.NewError(source, number, t, "price_history", "together with the stored price changes, the record exceeds the line limit of 1 MiB; shorten its sections")
}

// recordPrices records earlier changes and then the current one, even if the history
// already has it.
func (p *publication) recordPrices(ctx context.Context, t *record.Tool, prices []record.PriceChange, current *record.PriceChange) error {
	p.report.PriceChanges += len(prices)
	for _, price := range prices {
		if current != nil && price == *current {
			continue
		}
		if err := p.recordPrice(ctx, journal.PriceBackfilled, journal.EventPriceBackfilled, t, price); err != nil {
			return err
		}
	}
	if current == nil {
		return nil
	}
	return p.recordPrice(ctx, journal.PriceChanged, journal.EventPriceChanged, t, *current)
}

// priceState is one side of a price change in the journal.
type priceState struct {
	Pricing   string `json:"pricing"`
	Price     string `json:"price"`
	ChangedAt string `json:"changed_at,omitzero"`
}

func (p *publication) recordPrice(ctx context.Context, kind, event string, t *record.Tool, price record.PriceChange) error {
	category, former := p.categoriesOf(t.Slug)
	return p.record(ctx, journal.Entry{
		Kind: kind, Event: event, Slug: t.Slug, Category: category, OtherCategory: former,
		Before: record.Encode(priceState{Pricing: price.PreviousPricing, Price: price.PreviousPrice}),
		After:  record.Encode(priceState{Pricing: price.Pricing, Price: price.Price, ChangedAt: price.ChangedAt}),
	})
}
