package site

import (
	"fmt"
	"html/template"
	"math"
)

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

// changeBar draws a change to the left or right of a line, as long as its share of the largest
// one.
func changeBar(d delta, largest float64) template.HTML {
	const half = 32.0
	width, class := max(half*d.size/largest, 1), "worse"
	if d.Better {
		class = "better"
	}
	from := half
	if d.Direction == "down" {
		from -= width
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar-of-change %s" viewBox="0 0 %g 12" preserveAspectRatio="none" aria-hidden="true"><path d="M%g 0V12" vector-effect="non-scaling-stroke"/><rect x="%.3g" y="2" width="%.3g" height="8"/></svg>`, class, 2*half, half, from, width)) //nolint:gosec // only numbers
}
