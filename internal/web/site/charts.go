package site

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"palmares/internal/web/chart"
)

// meterWidth returns the width of a score's bar in percent.
func meterWidth(score *float64) float64 { return chart.Round(*score * 10) }

// The bands of scores, from which colors are derived.
const (
	excellentScore = 8
	goodScore      = 7
	fairScore      = 5
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
	inverse := 10 - *obsolescence
	return band(&inverse)
}

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
		height := chart.Round(float64(b.Count) / float64(largest) * histogramHeight)
		h.Bars = append(h.Bars, histogramBar{b, float64(i * (barWidth + barGap)), histogramTop + histogramHeight - height, height})
		h.Any = h.Any || b.Count > 0
	}
	return h
}

// Middle returns the x coordinate of the bar's labels.
func (b histogramBar) Middle() float64 { return b.X + barWidth/2 }

// sparkline is a small line of a value over time, in steps, since values stay
// until the next change.
type sparkline struct {
	Path string // of an SVG, or "" without values
	Y    float64
}

// Dimensions of a sparkline in SVG units.
const (
	sparkWidth  = 64.0
	sparkTop    = 4.0
	sparkHeight = 16.0
)

func newSparkline(samples []sample, until string) sparkline {
	if len(samples) == 0 {
		return sparkline{}
	}
	first, end := samples[0].at, samples[len(samples)-1].at
	if now, err := time.Parse(time.DateOnly, until); err == nil && now.After(end) {
		end = now
	}
	lowest, highest := samples[0].value, samples[0].value
	for _, s := range samples {
		lowest, highest = min(lowest, s.value), max(highest, s.value)
	}
	// The last step is long enough to be seen.
	length := cmp.Or(float64(end.Sub(first)), 1) * 1.1
	var line strings.Builder
	var y float64
	for i, s := range samples {
		x := chart.Round(float64(s.at.Sub(first)) / length * sparkWidth)
		y = sparkTop + sparkHeight/2
		if highest > lowest {
			y = chart.Round(sparkTop + sparkHeight*(highest-s.value)/(highest-lowest))
		}
		if i == 0 {
			fmt.Fprintf(&line, "M0 %g", y)
		} else {
			fmt.Fprintf(&line, "H%gV%g", x, y)
		}
	}
	fmt.Fprintf(&line, "H%g", sparkWidth)
	return sparkline{line.String(), y}
}
