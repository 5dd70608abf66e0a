package site

import (
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
