package site

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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

// steps is a price over time, which jumps from one day to the next.
type steps struct {
	Line              string // an SVG path
	Corners           []corner
	Top               string // the dearest price
	First, Last       string // days
	Width, High, Base float64
}

type corner struct {
	X, Y      float64
	At, Price string
}

// The box of the steps, and the room for labels in it.
const (
	stepsWidth = 640.0
	stepsHigh  = 160.0
	stepsTop   = 34.0
	stepsRoom  = 34.0 // below
	stepsEnd   = 0.04 // of the width: what lasts to the last day is still seen
)

// drawSteps shows what a tool cost over time. Prices of another period than
// today's cannot stand beside it: they are in the table alone. There is
// nothing to draw of a price that never changed.
func drawSteps(history []moment, period, until string) *steps {
	type point struct {
		at     time.Time
		amount float64
		moment moment
	}
	var points []point
	for _, m := range history {
		amount, per, ok := amountOf(m.Price)
		at, err := time.Parse(time.DateOnly, m.At)
		if !ok || err != nil || per != period {
			continue
		}
		if len(points) > 0 && points[len(points)-1].amount == amount {
			continue // the score changed, not the price
		}
		points = append(points, point{at, amount, m})
	}
	if len(points) < 2 {
		return nil
	}
	first, last := points[0].at, points[len(points)-1].at
	end, err := time.Parse(time.DateOnly, until)
	if err != nil || end.Before(last) {
		end = last
	}
	if least := time.Duration(float64(last.Sub(first)) * stepsEnd); end.Sub(last) < least {
		end = last.Add(least)
	}
	top, dearest := -1.0, ""
	for _, p := range points {
		if p.amount > top {
			top, dearest = p.amount, p.moment.Price
		}
	}
	s := &steps{Top: dearest, First: points[0].moment.At, Last: until, Width: stepsWidth, High: stepsTop + stepsHigh + stepsRoom, Base: stepsTop + stepsHigh}
	x := func(at time.Time) float64 {
		return tenth(float64(at.Sub(first)) / float64(end.Sub(first)) * stepsWidth)
	}
	y := func(amount float64) float64 { return tenth(s.Base - amount/max(top, 0.01)*stepsHigh) }
	var line strings.Builder
	for i, p := range points {
		if i == 0 {
			fmt.Fprintf(&line, "M%g %g", x(p.at), y(p.amount))
		} else {
			fmt.Fprintf(&line, "H%gV%g", x(p.at), y(p.amount))
		}
		s.Corners = append(s.Corners, corner{x(p.at), y(p.amount), p.moment.At, p.moment.Price})
	}
	fmt.Fprintf(&line, "H%g", stepsWidth)
	s.Line = line.String()
	return s
}

func tenth(n float64) float64 { return math.Round(n*10) / 10 }

// amountOf reads a price, `<amount> €/<period>`.
func amountOf(price string) (amount float64, period string, ok bool) {
	number, period, found := strings.Cut(price, " €/")
	amount, err := strconv.ParseFloat(strings.Replace(number, ",", ".", 1), 64)
	return amount, period, found && err == nil
}
