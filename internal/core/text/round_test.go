package text

import (
	"math"
	"testing"
)

// Halves are rounded away from zero, also those that binary fractions cannot represent.
func TestRound(t *testing.T) {
	for number, want := range map[float64]float64{
		-40.625: -40.63, 40.625: 40.63, 1.005: 1.01, -1.005: -1.01, 2.675: 2.68, 8.124: 8.12, -8.124: -8.12, 0: 0, -0.004: 0,
	} {
		if got := Round(number); got != want || math.Signbit(got) != (want < 0) {
			t.Errorf("%v: got %v, want %v", number, got, want)
		}
	}
}
