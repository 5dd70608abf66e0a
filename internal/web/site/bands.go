package site

// band returns the class of a score from 0 (worst) to 10 (best).
func band(score *float64) string {
	switch {
	case score == nil:
		return "none"
	case *score >= 8:
		return "excellent"
	case *score >= 7:
		return "good"
	case *score >= 5:
		return "fair"
	}
	return "poor"
}

// ageBand returns the class of an obsolescence, where 10 is the worst.
func ageBand(obsolescence *float64) string {
	if obsolescence == nil {
		return band(nil)
	}
	inverse := 10 - *obsolescence
	return band(&inverse)
}
