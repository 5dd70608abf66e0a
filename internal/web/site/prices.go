package site

import (
	"context"
	"time"
)

type pricesView struct {
	Feed       feedInfo
	Changes    eventList
	Categories []category
	Editions   []editionEvents  `json:"-"`
	Periods    []pricesOfPeriod `json:"-"` // a summary
	Older      string           `json:"-"`
}

// pricesOfPeriod is how many prices rose and fell.
type pricesOfPeriod struct{ Days, Up, Down int }

const (
	pricesPerPage = 50
	// maxPriceBatches limits how many price changes one page reads to find those
	// in one direction, which the journal cannot select.
	maxPriceBatches = 5

	monthDays, quarterDays = 30, 90
)

// load counts the recent changes, and reads on until a page of changes in the
// selected direction is full.
func (v *pricesView) prepare(ctx context.Context, s *Site, r *request) error {
	if err := v.count(ctx, s, r); err != nil {
		return err
	}
	if err := v.find(ctx, s, r); err != nil {
		return err
	}
	table, err := s.newEventTable(ctx, r, v.Changes.Nodes)
	if v.Editions = table.Editions; v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	return err
}

func (v *pricesView) find(ctx context.Context, s *Site, r *request) error {
	direction := r.Param("direction")
	if direction == "" {
		return nil
	}
	found := v.Changes
	v.Changes.Nodes = nil
	for batch := 0; ; batch++ {
		for _, e := range found.Nodes {
			if newPriceChange(r.lang, textIn(e.Before, "price"), textIn(e.After, "price")).Direction == direction {
				v.Changes.Nodes = append(v.Changes.Nodes, e)
			}
		}
		v.Changes.PageInfo = found.PageInfo
		if !found.PageInfo.HasNextPage || len(v.Changes.Nodes) >= pricesPerPage || batch == maxPriceBatches {
			return nil
		}
		variables := map[string]any{"types": []any{priceChanged}}
		if category := r.Param("category"); category != "" {
			variables["category"] = category
		}
		more, err := s.moreChanges(ctx, r, found.PageInfo.EndCursor, variables)
		if err != nil {
			return err
		}
		found = more
	}
}

func (v *pricesView) count(ctx context.Context, s *Site, r *request) error {
	newest, err := time.Parse(time.DateOnly, v.Feed.UpdatedAt)
	if err != nil {
		return nil //nolint:nilerr // nothing has been published
	}
	before := func(days int) string { return newest.AddDate(0, 0, -days).Format(time.DateOnly) }
	variables := map[string]any{"month": before(monthDays), "quarter": before(quarterDays)}
	if category := r.Param("category"); category != "" {
		variables["categories"] = []any{category}
	}
	type counts []struct{ Count int }
	var result struct{ MonthUp, MonthDown, QuarterUp, QuarterDown counts }
	if err := s.execute(ctx, r.asOf, "priceSummary", variables, &result); err != nil {
		return err
	}
	sum := func(all counts) (total int) {
		for _, c := range all {
			total += c.Count
		}
		return total
	}
	v.Periods = []pricesOfPeriod{{monthDays, sum(result.MonthUp), sum(result.MonthDown)}, {quarterDays, sum(result.QuarterUp), sum(result.QuarterDown)}}
	return nil
}
