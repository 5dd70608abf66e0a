package text

import (
	"math"
	"palmares/internal/dev/check"
	"testing"
)

// Halves are rounded away from zero, also those that binary fractions cannot represent.
func TestRound(t *testing.T) {
	for number, want := range map[float64]float64{
		-40.625: -40.63, 40.625: 40.63, 1.005: 1.01, -1.005: -1.01, 2.675: 2.68, 8.124: 8.12, -8.124: -8.12, 0: 0, -0.004: 0,
	} {
		got := Round(number)
		check.Equal(t, got, want, number)
		check.Equal(t, math.Signbit(got), want < 0, number)
	}
}
