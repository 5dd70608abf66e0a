package release

import (
	"maps"
	"math"
	"slices"

	"palmares/internal/core/text"
)

// Figures count tools, and describe their scores and prices per month.
type Figures struct {
	Count          int
	Scores, Prices Values
}

func newFigures() *Figures {
	return &Figures{Scores: Values{counts: map[float64]int{}}, Prices: Values{counts: map[float64]int{}}}
}

// add adds a tool or, with a difference of -1, removes it.
func (f *Figures) add(t *Tool, difference int) {
	f.Count += difference
	f.Scores.add(t.Score, difference)
	f.Prices.add(t.MonthlyPrice, difference)
}

// Values is a set of numbers that may repeat. Numbers are counted instead of
// added up, so that removing one leaves no rounding error.
type Values struct {
	Count  int
	counts map[float64]int
	sorted []float64 // the distinct numbers; nil if out of date
}

func (v *Values) add(number float64, difference int) {
	if math.IsNaN(number) {
		return
	}
	v.Count += difference
	before := v.counts[number]
	if v.counts[number] = before + difference; before+difference == 0 {
		delete(v.counts, number)
	}
	if before == 0 || before+difference == 0 {
		v.sorted = nil
	}
}

// ordered returns the distinct numbers in order.
func (v *Values) ordered() []float64 {
	if v.sorted == nil && v.Count > 0 {
		v.sorted = slices.Sorted(maps.Keys(v.counts))
	}
	return v.sorted
}

// Min returns the smallest number, or nil if there is none.
func (v *Values) Min() *float64 {
	if v.Count == 0 {
		return nil
	}
	return &v.ordered()[0]
}

// Max returns the largest number, or nil if there is none.
func (v *Values) Max() *float64 {
	if v.Count == 0 {
		return nil
	}
	return &v.ordered()[len(v.ordered())-1]
}

// Mean returns the mean, or nil if there are no numbers.
func (v *Values) Mean() *float64 {
	sum := 0.0
	for _, number := range v.ordered() {
		sum += number * float64(v.counts[number])
	}
	return text.Mean(sum, v.Count)
}

// Median returns the middle number or, if there are two, their mean. It returns nil
// if there are no numbers.
func (v *Values) Median() *float64 {
	if v.Count == 0 {
		return nil
	}
	return text.Mean(v.at((v.Count-1)/2)+v.at(v.Count/2), 2)
}

// at returns the number at a position of the sorted set.
func (v *Values) at(position int) float64 {
	for _, number := range v.ordered() {
		if position -= v.counts[number]; position < 0 {
			return number
		}
	}
	return math.NaN()
}
