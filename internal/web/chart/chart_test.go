package chart

import (
	"reflect"
	"testing"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		values   []float64
		fromZero bool
		grid     []float64
	}{
		{[]float64{1, 9}, true, []float64{0, 5, 10}},
		{[]float64{-3, 3}, true, []float64{-4, -2, 0, 2, 4}},
		{[]float64{41, 48}, false, []float64{40, 42, 44, 46, 48}},
		{[]float64{5, 5}, true, []float64{0, 2, 4, 6}},
		{[]float64{1, 1, 1}, false, []float64{0, 1}},
		{[]float64{0, 0}, false, []float64{0, 1}},
		{[]float64{-2, -2}, false, []float64{-2, -1, 0}},
		{[]float64{0.5, 0.5}, false, []float64{0, 0.2, 0.4, 0.6000000000000001}},
		{[]float64{4, 8}, false, []float64{0, 2, 4, 6, 8}},
		{[]float64{2, 3}, false, []float64{2, 3}},
		{[]float64{2, 2.5}, false, []float64{2, 2.2, 2.4000000000000004, 2.6000000000000005}},
	} {
		if _, grid := Scale(c.values, c.fromZero); !reflect.DeepEqual(grid, c.grid) {
			t.Errorf("%v: got %v, want %v", c.values, grid, c.grid)
		}
	}
}
