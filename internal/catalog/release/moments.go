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

// ScoreChange is the score of a tool from one day on.
type ScoreChange struct {
	Day   string
	Score *float64
}

// Moments returns one entry for each day on which the price or the score of a tool
// changed, at most limit. It combines two sources: the price history, which also has
// changes before the first import, and the scores of the journal. The last entry is
// always the tool's current state.
func (r *Release) Moments(t *Tool, scores []ScoreChange, limit int) []Moment {
	type change struct {
		day   string
		score *ScoreChange
		price *PriceChange
	}
	var changes []change
	for _, c := range scores {
		changes = append(changes, change{day: c.Day, score: &c})
	}
	now := Moment{Pricing: t.Pricing, Price: t.Price}
	for _, c := range slices.Backward(r.PricesOf(t.Slug)) {
		if len(changes) == len(scores) { // the oldest
			now.Pricing, now.Price = c.PreviousPricing, c.PreviousPrice
		}
		changes = append(changes, change{day: c.ChangedAt, price: c})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.day, b.day) })
	var moments []Moment
	for i, c := range changes {
		now.At = c.day
		if c.price != nil {
			now.Pricing, now.Price = c.price.Pricing, c.price.Price
		}
		if c.score != nil {
			now.Score = c.score.Score
		}
		if i == len(changes)-1 || changes[i+1].day != c.day {
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
