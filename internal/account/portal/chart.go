package portal

import "math"

// chart is bars in a box of its own units, made to any width by the browser.
type chart struct {
	Width, Height, Base int
	Top                 int // the number at the upper edge
	Bars                []bar
}

type bar struct {
	X, Y, Width, Height float64
	Day                 dayUse
}

const (
	barWidth  = 16
	barGap    = 5
	barsHigh  = 160
	roomAbove = 12
	roomBelow = 20
)

// draw makes a bar of each day. One request is seen beside a thousand.
func draw(days []dayUse) chart {
	top := 1
	for _, day := range days {
		top = max(top, day.Requests)
	}
	top = roundUp(top)
	c := chart{Width: len(days) * (barWidth + barGap), Height: roomAbove + barsHigh + roomBelow, Base: roomAbove + barsHigh, Top: top}
	for i, day := range days {
		height := float64(day.Requests) / float64(top) * barsHigh
		if day.Requests > 0 {
			height = max(height, 2)
		}
		height = math.Round(height*10) / 10
		c.Bars = append(c.Bars, bar{X: float64(i * (barWidth + barGap)), Y: float64(c.Base) - height, Width: barWidth, Height: height, Day: day})
	}
	return c
}

// roundUp is the next of 1, 2, 5, 10, 20, 50 and so on.
func roundUp(n int) int {
	for step := 1; ; step *= 10 {
		for _, round := range []int{step, 2 * step, 5 * step} {
			if n <= round {
				return round
			}
		}
	}
}
