package portal

import "testing"

func TestChart(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 5, 9: 10, 11: 20, 12345: 20000, 50000: 50000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d is rounded up to %d", n, got)
		}
	}
	days := []dayUse{{Requests: 0}, {Requests: 1}, {Requests: 1000}}
	drawn := draw(days)
	if drawn.Bars[0].Height != 0 || drawn.Bars[1].Height < 2 || drawn.Bars[2].Height != barsHigh || drawn.Bars[2].Y != roomAbove {
		t.Errorf("drawn: %+v", drawn)
	}
}
