package graph

import (
	"maps"
	"math"
	"slices"

	"palmares/internal/core/text"
)

// figures counts tools, and collects their scores and prices per month.
type figures struct {
	count          int
	scores, prices values
}

func newFigures() *figures {
	return &figures{scores: values{counts: map[float64]int{}}, prices: values{counts: map[float64]int{}}}
}

// add adds a tool or, with a difference of -1, removes it.
func (f *figures) add(t *indexedTool, difference int) {
	f.count += difference
	f.scores.add(t.score, difference)
	f.prices.add(t.monthlyPrice, difference)
}

// values is a set of numbers that may repeat. Numbers are counted instead of
// added up, so that removing one leaves no rounding error.
type values struct {
	count  int
	counts map[float64]int
	sorted []float64 // the distinct numbers; nil if out of date
}

func (v *values) add(number float64, difference int) {
	if math.IsNaN(number) {
		return
	}
	v.count += difference
	before := v.counts[number]
	if v.counts[number] = before + difference; before+difference == 0 {
		delete(v.counts, number)
	}
	if before == 0 || before+difference == 0 {
		v.sorted = nil
	}
}

// ordered returns the distinct numbers in order.
func (v *values) ordered() []float64 {
	if v.sorted == nil && v.count > 0 {
		v.sorted = slices.Sorted(maps.Keys(v.counts))
	}
	return v.sorted
}

func (v *values) min() *float64 {
	if v.count == 0 {
		return nil
	}
	return &v.ordered()[0]
}

func (v *values) max() *float64 {
	if v.count == 0 {
		return nil
	}
	return &v.ordered()[len(v.ordered())-1]
}

func (v *values) mean() *float64 {
	sum := 0.0
	for _, number := range v.ordered() {
		sum += number * float64(v.counts[number])
	}
	return text.Mean(sum, v.count)
}

// median returns the middle number or, if there are two, their mean.
func (v *values) median() *float64 {
	if v.count == 0 {
		return nil
	}
	return text.Mean(v.at((v.count-1)/2)+v.at(v.count/2), 2)
}

// at returns the number at a position of the sorted set.
func (v *values) at(position int) float64 {
	for _, number := range v.ordered() {
		if position -= v.counts[number]; position < 0 {
			return number
		}
	}
	return math.NaN()
}
