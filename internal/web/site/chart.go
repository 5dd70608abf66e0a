package site

import (
	"fmt"
	"math"
)

// meter is a score as a bar of a hundred units.
type meter struct {
	Known bool
	Long  float64
}

func newMeter(score *float64) meter {
	if score == nil {
		return meter{}
	}
	return meter{true, math.Round(*score*100) / 10}
}

// bin is how many tools have a score in a range.
type bin struct {
	From, To float64
	Count    int
}

// Range is the scores that count in a bin.
func (b bin) Range() string {
	if b.To >= 10 {
		return fmt.Sprintf("%g to %g", b.From, b.To)
	}
	return fmt.Sprintf("%g to under %g", b.From, b.To)
}

// histogram is a bar for each bin, in a box of its own units.
type histogram struct {
	Bars []histogramBar
	Any  bool
}

type histogramBar struct {
	bin
	X, Y, High float64
}

// The box of a histogram.
const (
	binWidth      = 30
	binGap        = 6
	histogramHigh = 120.0
	histogramTop  = 16.0 // room for the number above a bar
)

func drawHistogram(bins []bin) histogram {
	most := 1
	for _, b := range bins {
		most = max(most, b.Count)
	}
	var h histogram
	for i, b := range bins {
		high := math.Round(float64(b.Count)/float64(most)*histogramHigh*10) / 10
		h.Bars = append(h.Bars, histogramBar{b, float64(i * (binWidth + binGap)), histogramTop + histogramHigh - high, high})
		h.Any = h.Any || b.Count > 0
	}
	return h
}

// Middle is where a bar's labels stand.
func (b histogramBar) Middle() float64 { return b.X + binWidth/2 }
