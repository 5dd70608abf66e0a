package site

import "math"

// meterWidth returns the width of a score's bar in percent.
func meterWidth(score *float64) float64 { return math.Round(*score*100) / 10 }

// The bands of scores, from which colors are derived.
const (
	excellentScore = 8
	goodScore      = 7
	fairScore      = 5
	highestScore   = 10
)

// band returns the class of a score from 0 (worst) to 10 (best).
func band(score *float64) string {
	switch {
	case score == nil:
		return "none"
	case *score >= excellentScore:
		return "excellent"
	case *score >= goodScore:
		return "good"
	case *score >= fairScore:
		return "fair"
	}
	return "poor"
}

// ageBand returns the class of an obsolescence, where 10 is the worst.
func ageBand(obsolescence *float64) string {
	if obsolescence == nil {
		return band(nil)
	}
	inverse := highestScore - *obsolescence
	return band(&inverse)
}
