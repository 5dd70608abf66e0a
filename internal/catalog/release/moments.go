package release

import (
	"cmp"
	"math"
	"slices"
)

// Moment is the price and the score of a tool from one day on. The score is nil if it
// is not known.
type Moment struct {
	At, Pricing, Price string
	Score              *float64
}

// Moments returns one entry for each day on which the price or the score of a tool
// changed, at most limit. It combines two sources: the price history, which also has
// changes before the first import, and changes of the score from the journal, which
// have no price unless the tool was created. The last entry is always the tool's
// current state.
func (r *Release) Moments(t *Tool, scores []Moment, limit int) []Moment {
	type change struct {
		Moment
		scored bool
	}
	var changes []change
	for _, c := range scores {
		changes = append(changes, change{c, true})
	}
	for _, c := range slices.Backward(r.PricesOf(t.Slug)) {
		changes = append(changes, change{Moment: Moment{At: c.ChangedAt, Pricing: c.Pricing, Price: c.Price}})
	}
	// The sort is stable: on the same day, price changes follow the journal.
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.At, b.At) })
	var moments []Moment
	var now Moment
	for i, c := range changes {
		now.At = c.At
		if c.Price != "" {
			now.Pricing, now.Price = c.Pricing, c.Price
		}
		if c.scored {
			now.Score = c.Score
		}
		lastOfDay := i == len(changes)-1 || changes[i+1].At != c.At
		if lastOfDay && now.Price != "" {
			moments = addMoment(moments, now)
		}
	}
	current := Moment{At: max(t.UpdatedAt, now.At), Pricing: t.Pricing, Price: t.Price}
	if !math.IsNaN(t.Score) {
		current.Score = &t.Score
	}
	moments = addMoment(moments, current)
	return moments[max(0, len(moments)-limit):]
}

// addMoment skips an entry without a change and replaces one of the same day.
func addMoment(moments []Moment, next Moment) []Moment {
	if len(moments) > 0 {
		last := moments[len(moments)-1]
		sameScore := last.Score == next.Score || last.Score != nil && next.Score != nil && *last.Score == *next.Score
		switch {
		case last.Pricing == next.Pricing && last.Price == next.Price && sameScore:
			return moments
		case last.At == next.At:
			return addMoment(moments[:len(moments)-1], next)
		}
	}
	return append(moments, next)
}
