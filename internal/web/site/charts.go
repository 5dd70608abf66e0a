package site

import "math"

func roundToTenth(n float64) float64 { return math.Round(n*10) / 10 }

// meterWidth returns the width of a score's bar in percent.
func meterWidth(score *float64) float64 { return roundToTenth(*score * 10) }

// bin is the number of tools with a score in a range.
type bin struct {
	From, To float64
	Count    int
}

// Last reports whether the bin includes its upper bound.
func (b bin) Last() bool { return b.To >= 10 }

// Band returns the class of the scores in the middle of the bin.
func (b bin) Band() string {
	middle := (b.From + b.To) / 2
	return band(&middle)
}

type histogram struct {
	Bars []histogramBar
	Any  bool
}

type histogramBar struct {
	bin
	X, Y, Height float64
}

// Dimensions of the histogram in SVG units.
const (
	barWidth        = 30
	barGap          = 6
	histogramHeight = 120.0
	histogramTop    = 16.0 // space for the number above a bar
)

func newHistogram(bins []bin) histogram {
	largest := 1
	for _, b := range bins {
		largest = max(largest, b.Count)
	}
	var h histogram
	for i, b := range bins {
		height := roundToTenth(float64(b.Count) / float64(largest) * histogramHeight)
		h.Bars = append(h.Bars, histogramBar{b, float64(i * (barWidth + barGap)), histogramTop + histogramHeight - height, height})
		h.Any = h.Any || b.Count > 0
	}
	return h
}

// Middle returns the x coordinate of the bar's labels.
func (b histogramBar) Middle() float64 { return b.X + barWidth/2 }
