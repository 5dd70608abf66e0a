// Package mean rounds averages the one way that every part of the program
// shows them.
package mean

import "math"

// nudge is far above the error of a sum of scores and far below a hundredth:
// a mean of exactly x.xx5 goes up, as it does on paper, whatever order the
// sum was taken in.
const nudge = 1e-7

// Of is sum/n rounded to two decimals; nil for no values.
func Of(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	rounded := math.Round(sum/float64(n)*100+nudge) / 100
	return &rounded
}
