package site

import (
	"context"
	"time"

	"palmares/internal/catalog/pricing"
	catalog "palmares/internal/catalog/release"
)

type pricesView struct {
	Feed       feedInfo
	Changes    eventList
	Categories categoryList
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

// prepare counts the recent changes, and reads on until a page of changes in the
// selected direction is full.
func (v *pricesView) prepare(ctx context.Context, s *Site, r *request) (err error) {
	v.count(r)
	if err := v.find(ctx, s, r); err != nil {
		return err
	}
	v.Editions, err = s.byEdition(ctx, r, v.Changes.Nodes)
	if v.Changes.PageInfo.HasNextPage {
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
			if found, _ := pricing.Compare(pricing.Read(textIn(e.Before, "price")), pricing.Read(textIn(e.After, "price"))); found == direction {
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

// count counts how many prices rose and fell.
func (v *pricesView) count(r *request) {
	newest, err := time.Parse(time.DateOnly, v.Feed.UpdatedAt)
	if err != nil {
		return // nothing has been published
	}
	category := r.Param("category")
	chosen := catalog.Where(func(t *catalog.Tool) bool { return category == "" || t.Category == category })
	for _, days := range []int{monthDays, quarterDays} {
		since, counts := newest.AddDate(0, 0, -days).Format(time.DateOnly), map[string]int{}
		r.shown.CountPriceChanges(catalog.Filter{chosen}, func(c *catalog.PriceChange) bool {
			if c.ChangedAt >= since {
				counts[c.Direction]++
			}
			return false
		}, nil, false)
		v.Periods = append(v.Periods, pricesOfPeriod{days, counts[pricing.Up], counts[pricing.Down]})
	}
}
