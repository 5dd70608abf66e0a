package site

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func roundToTenth(n float64) float64 { return math.Round(n*10) / 10 }

// meterWidth returns the width of a score's bar in percent.
func meterWidth(score *float64) float64 { return roundToTenth(*score * 10) }

// The bands of scores, from which colors are derived.
const (
	excellentScore = 8
	goodScore      = 6.5
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
		height := roundToTenth(float64(b.Count) / float64(largest) * histogramHeight)
		h.Bars = append(h.Bars, histogramBar{b, float64(i * (barWidth + barGap)), histogramTop + histogramHeight - height, height})
		h.Any = h.Any || b.Count > 0
	}
	return h
}

// Middle returns the x coordinate of the bar's labels.
func (b histogramBar) Middle() float64 { return b.X + barWidth/2 }

// priceChart is a step line of a price over time.
type priceChart struct {
	Line                string // an SVG path
	Points              []point
	Labels              []priceLabel
	Period              string
	First, Last         string // dates
	Width, Height, Base float64
}

// point is where a new price starts.
type point struct {
	X, Y      float64
	At, Price string
}

// Dimensions of the price chart in SVG units.
const (
	priceWidth  = 640.0
	priceHeight = 160.0
	priceTop    = 34.0 // space for labels
	priceBottom = 34.0 // space for dates
	priceTail   = 0.04 // minimum length of the last step, as a share of the rest
)

type datedPrice struct {
	at     time.Time
	amount float64
	historyEntry
}

// newPriceChart draws the prices that have the same period as the current one,
// since others are not comparable. It returns nil for a price that never
// changed.
func newPriceChart(history []historyEntry, period, until string) *priceChart {
	prices := comparablePrices(history, period)
	if len(prices) < 2 {
		return nil
	}
	first, last := prices[0].at, prices[len(prices)-1].at
	end, err := time.Parse(time.DateOnly, until)
	if err != nil || end.Before(last) {
		end = last
	}
	if tail := time.Duration(float64(last.Sub(first)) * priceTail); end.Sub(last) < tail {
		end = last.Add(tail)
	}
	highest := 0.01
	for _, p := range prices {
		highest = max(highest, p.amount)
	}
	c := &priceChart{Period: period, First: prices[0].At, Last: until, Width: priceWidth, Height: priceTop + priceHeight + priceBottom, Base: priceTop + priceHeight}
	var line strings.Builder
	for i, p := range prices {
		to := point{
			X:  roundToTenth(float64(p.at.Sub(first)) / float64(end.Sub(first)) * priceWidth),
			Y:  roundToTenth(c.Base - p.amount/highest*priceHeight),
			At: p.At, Price: p.Price,
		}
		if i == 0 {
			fmt.Fprintf(&line, "M%g %g", to.X, to.Y)
		} else {
			fmt.Fprintf(&line, "H%gV%g", to.X, to.Y)
		}
		c.Points = append(c.Points, to)
	}
	fmt.Fprintf(&line, "H%g", priceWidth)
	c.Line = line.String()
	c.Labels = placeLabels(c.Points, c.Base)
	return c
}

// comparablePrices returns the prices per period, without those equal to the
// previous one.
func comparablePrices(history []historyEntry, period string) (prices []datedPrice) {
	for _, entry := range history {
		amount, per, ok := parsePrice(entry.Price)
		at, err := time.Parse(time.DateOnly, entry.At)
		if !ok || err != nil || per != period || len(prices) > 0 && prices[len(prices)-1].amount == amount {
			continue
		}
		prices = append(prices, datedPrice{at, amount, entry})
	}
	return prices
}

// parsePrice parses `<amount> €/<period>`.
func parsePrice(price string) (amount float64, period string, ok bool) {
	number, period, found := strings.Cut(price, " €/")
	amount, err := strconv.ParseFloat(strings.Replace(number, ",", ".", 1), 64)
	return amount, period, found && err == nil
}

// priceLabel is an amount beside its step.
type priceLabel struct {
	X, Y float64 // of the baseline
	Text string
	End  bool // the text ends at X instead of starting there
}

// Dimensions of a label at its largest, which is on a phone.
const (
	charWidth    = 15.0
	charHeight   = 20.0
	charDescent  = 4.0
	labelGap     = 10.0 // vertical distance from the step
	labelPadding = 6.0  // horizontal distance from the ends of the step
)

type box struct{ left, top, right, bottom float64 }

func (b box) overlaps(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

func (l priceLabel) box() box {
	width := charWidth * float64(utf8.RuneCountInString(l.Text))
	left := l.X
	if l.End {
		left -= width
	}
	return box{left, l.Y - charHeight, left + width, l.Y + charDescent}
}

// placeLabels puts each amount above or below its step, where it covers neither
// the line nor another label. Labels that fit nowhere are left out, since the
// table has all prices. The current price is placed first, then the oldest.
func placeLabels(points []point, base float64) (labels []priceLabel) {
	taken := lineBoxes(points)
	last := len(points) - 1
	for i := range points {
		at := (i + last) % len(points)
		from, left, right := points[at], 0.0, priceWidth
		if at > 0 {
			left = from.X + labelPadding
		}
		if at < last {
			right = points[at+1].X - labelPadding
		}
		text, _, _ := strings.Cut(from.Price, "/")
		above, below := from.Y-labelGap, from.Y+labelGap+charHeight
		for _, l := range []priceLabel{{left, above, text, false}, {right, above, text, true}, {left, below, text, false}, {right, below, text, true}} {
			room := l.box()
			inside := room.left >= 0 && room.top >= 0 && room.right <= priceWidth && room.bottom <= base
			if inside && !slices.ContainsFunc(taken, room.overlaps) {
				labels, taken = append(labels, l), append(taken, room)
				break
			}
		}
	}
	return labels
}

// lineBoxes returns the area that the line covers.
func lineBoxes(points []point) (boxes []box) {
	const margin = 2.0
	for i, p := range points {
		to := priceWidth
		if i+1 < len(points) {
			next := points[i+1]
			to = next.X
			boxes = append(boxes, box{to - margin, min(p.Y, next.Y), to + margin, max(p.Y, next.Y)})
		}
		boxes = append(boxes, box{p.X, p.Y - margin, to, p.Y + margin})
	}
	return boxes
}

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
		x := roundToTenth(float64(s.at.Sub(first)) / length * sparkWidth)
		y = sparkTop + sparkHeight/2
		if highest > lowest {
			y = roundToTenth(sparkTop + sparkHeight*(highest-s.value)/(highest-lowest))
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
