package site

import (
	"context"
	"fmt"
	"time"

	"palmares/internal/catalog/pricing"
)

type pricesView struct {
	Feed       feedInfo
	Changes    eventList
	Categories []category
	Releases   []releasePrices  `json:"-"`
	Periods    []pricesOfPeriod `json:"-"` // a summary
	Older      string           `json:"-"`
	catalog    eventCatalog
}

type releasePrices struct {
	release
	Items []priceItem
}

// priceItem is a tool with a new price.
type priceItem struct {
	Name, URL, Category                    string
	Before, After                          string // prices
	BeforePricing, AfterPricing, ChangedAt string
	Direction, Percent                     string // "" if the prices cannot be compared
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
func (v *pricesView) load(ctx context.Context, s *Site, r *request) error {
	if err := v.count(ctx, s, r); err != nil {
		return err
	}
	if err := v.find(ctx, s, r); err != nil {
		return err
	}
	return v.catalog.load(ctx, s, r, v.Changes.Nodes)
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
			if string(e.direction()) == direction {
				v.Changes.Nodes = append(v.Changes.Nodes, e)
			}
		}
		v.Changes.PageInfo = found.PageInfo
		if !found.PageInfo.HasNextPage || len(v.Changes.Nodes) >= pricesPerPage || batch == maxPriceBatches {
			return nil
		}
		variables := map[string]any{"after": found.PageInfo.EndCursor}
		if category := r.Param("category"); category != "" {
			variables["category"] = category
		}
		var more struct{ Changes eventList }
		if err := s.execute(ctx, r.asOf, "morePrices", variables, &more); err != nil {
			return err
		}
		found = more.Changes
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

// direction returns how the price of a tool changed, or "" if that is unknown.
func (e *event) direction() string {
	direction, _ := pricing.Compare(pricing.Read(fmt.Sprint(e.Before["price"])), pricing.Read(fmt.Sprint(e.After["price"])))
	return direction
}

func (v *pricesView) prepare(r *request) error {
	for i := range v.Changes.Nodes {
		e := &v.Changes.Nodes[i]
		item := priceItem{
			Name: v.catalog.name(e), URL: v.catalog.link(r, e), Category: labelOf(v.Categories, e.Category),
			Before: textIn(e.Before, "price"), After: textIn(e.After, "price"), ChangedAt: textIn(e.After, "changed_at"),
		}
		if before, after := textIn(e.Before, "pricing"), textIn(e.After, "pricing"); before != after {
			item.BeforePricing, item.AfterPricing = before, after
		}
		direction, percent := pricing.Compare(pricing.Read(item.Before), pricing.Read(item.After))
		item.Direction = direction
		if percent != nil && *percent != 0 {
			item.Percent = r.lang.Percent(*percent)
		}
		if len(v.Releases) == 0 || v.Releases[len(v.Releases)-1].Number != e.Release {
			v.Releases = append(v.Releases, releasePrices{release: v.catalog.release(e)})
		}
		last := &v.Releases[len(v.Releases)-1]
		last.Items = append(last.Items, item)
	}
	if v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	return nil
}
