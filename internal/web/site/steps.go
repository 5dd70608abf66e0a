package site

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// stepChart draws values that last until the next change, as one line for each
// tool.
type stepChart struct {
	Lines               []stepLine
	Labels              []stepLabel
	First, Last         string // dates
	Highest             string // value at the top of the axis, or "" for none
	Width, Height, Base float64
	Top                 float64
}

type stepLine struct {
	Number int    // from 1
	Name   string // of the tool
	Line   string // an SVG path
	Points []point
}

// point is where a new value starts.
type point struct {
	X, Y        float64
	At          string
	Value, Text string            // in full and as short as in a label
	Lang        template.HTMLAttr // language of Value if it is not that of the page
}

// Dimensions of a step chart in SVG units.
const (
	stepWidth  = 640.0
	stepHeight = 160.0
	stepTop    = 34.0 // space for labels
	stepBottom = 34.0 // space for dates
	stepTail   = 0.04 // minimum length of the last step, as a share of the rest
)

// stepSeries is the history of one tool.
type stepSeries struct {
	name   string
	values []datedValue
}

type datedValue struct {
	at     time.Time
	day    string
	amount float64
	shownValue
}

// shownValue is a value as a chart shows it.
type shownValue struct {
	value, text string // in full and as short as in a label
	lang        template.HTMLAttr
}

// newPriceChart draws the prices that have the same period as the current one,
// since others are not comparable. It returns nil for a price that never
// changed.
func newPriceChart(l lang.Language, history []historyEntry, period, until string) *stepChart {
	return newStepChart([]stepSeries{{"", comparablePrices(l, history, period)}}, 0, until)
}

func comparablePrices(l lang.Language, history []historyEntry, period string) []datedValue {
	return collect(history, func(e historyEntry) (amount float64, shown shownValue, ok bool) {
		amount, per, ok := pricing.Parse(e.Price)
		return amount, shownPrice(l, e.Price, amount), ok && per == period
	})
}

// newMonthlyPriceChart compares the prices per month of several tools.
func newMonthlyPriceChart(l lang.Language, tools []tool, until string) *stepChart {
	return compareSteps(tools, 0, until, func(e historyEntry) (amount float64, shown shownValue, ok bool) {
		amount, period, ok := pricing.Parse(e.Price)
		amount = pricing.Monthly(amount, pricing.Period(period))
		return amount, shownPrice(l, e.Price, amount), ok && !math.IsNaN(amount)
	})
}

func shownPrice(l lang.Language, price string, amount float64) shownValue {
	text, attribute := formatPrice(l, price)
	return shownValue{text, l.Euros(amount), attribute}
}

const highestScore = 10

// newScoreChart draws the scores of a tool, or compares those of several. It
// returns nil for scores that never changed.
func newScoreChart(l lang.Language, tools []tool, until string) *stepChart {
	c := compareSteps(tools, highestScore, until, func(e historyEntry) (amount float64, shown shownValue, ok bool) {
		if e.Score == nil {
			return 0, shown, false
		}
		text := formatScore(l, e.Score)
		return *e.Score, shownValue{value: text, text: text}, true
	})
	if c != nil {
		c.Highest = l.Number(highestScore)
	}
	return c
}

func compareSteps(tools []tool, highest float64, until string, read func(historyEntry) (amount float64, shown shownValue, ok bool)) *stepChart {
	var all []stepSeries
	for _, t := range tools {
		all = append(all, stepSeries{t.Name, collect(t.History, read)})
	}
	return newStepChart(all, highest, until)
}

// collect returns the values of a history without those equal to the previous
// one.
func collect(history []historyEntry, read func(historyEntry) (amount float64, shown shownValue, ok bool)) (values []datedValue) {
	for _, entry := range history {
		amount, shown, ok := read(entry)
		at, err := time.Parse(time.DateOnly, entry.At)
		if !ok || err != nil || len(values) > 0 && values[len(values)-1].amount == amount {
			continue
		}
		values = append(values, datedValue{at, entry.At, amount, shown})
	}
	return values
}

// newStepChart draws an axis from 0 to highest, or to the highest value if that
// is 0. It returns nil unless a value changed.
func newStepChart(all []stepSeries, highest float64, until string) *stepChart {
	var changed bool
	var first, last time.Time
	top := 0.01
	for _, s := range all {
		changed = changed || len(s.values) > 1
		for _, v := range s.values {
			if first.IsZero() || v.at.Before(first) {
				first = v.at
			}
			if v.at.After(last) {
				last = v.at
			}
			top = max(top, v.amount)
		}
	}
	if !changed {
		return nil
	}
	highest = cmp.Or(highest, top)
	end, err := time.Parse(time.DateOnly, until)
	if err != nil || end.Before(last) {
		end = last
	}
	if tail := time.Duration(float64(last.Sub(first)) * stepTail); end.Sub(last) < tail {
		end = last.Add(tail)
	}
	c := &stepChart{First: first.Format(time.DateOnly), Last: until, Width: stepWidth, Height: stepTop + stepHeight + stepBottom, Base: stepTop + stepHeight, Top: stepTop}
	for i, s := range all {
		line := stepLine{Number: i + 1, Name: s.name}
		var path strings.Builder
		for j, v := range s.values {
			to := point{
				X:  chart.Round(float64(v.at.Sub(first)) / float64(end.Sub(first)) * stepWidth),
				Y:  chart.Round(c.Base - v.amount/highest*stepHeight),
				At: v.day, Value: v.value, Text: v.text, Lang: v.lang,
			}
			if j == 0 {
				fmt.Fprintf(&path, "M%g %g", to.X, to.Y)
			} else {
				fmt.Fprintf(&path, "H%gV%g", to.X, to.Y)
			}
			line.Points = append(line.Points, to)
		}
		if len(s.values) > 0 {
			fmt.Fprintf(&path, "H%g", stepWidth)
			line.Line = path.String()
			c.Lines = append(c.Lines, line)
		}
	}
	c.Labels = placeLabels(c.Lines, c.Base)
	return c
}

// stepLabel is a value beside its step.
type stepLabel struct {
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

func (l stepLabel) box() box {
	width := charWidth * float64(utf8.RuneCountInString(l.Text))
	left := l.X
	if l.End {
		left -= width
	}
	return box{left, l.Y - charHeight, left + width, l.Y + charDescent}
}

// placeLabels puts each value above or below its step, where it covers neither
// a line nor another label. Labels that fit nowhere are left out, since the
// table has all values. Current values are placed first, then the oldest.
func placeLabels(lines []stepLine, base float64) (labels []stepLabel) {
	var taken []box
	for _, line := range lines {
		taken = append(taken, lineBoxes(line.Points)...)
	}
	for _, line := range lines {
		points, last := line.Points, len(line.Points)-1
		for i := range points {
			at := (i + last) % len(points)
			from, left, right := points[at], points[at].X, stepWidth
			if left > 0 {
				left += labelPadding
			}
			if at < last {
				right = points[at+1].X - labelPadding
			}
			above, below := from.Y-labelGap, from.Y+labelGap+charHeight
			for _, l := range []stepLabel{{left, above, from.Text, false}, {right, above, from.Text, true}, {left, below, from.Text, false}, {right, below, from.Text, true}} {
				room := l.box()
				inside := room.left >= 0 && room.top >= 0 && room.right <= stepWidth && room.bottom <= base
				if inside && !slices.ContainsFunc(taken, room.overlaps) {
					labels, taken = append(labels, l), append(taken, room)
					break
				}
			}
		}
	}
	return labels
}

// lineBoxes returns the area that the line covers.
func lineBoxes(points []point) (boxes []box) {
	const margin = 2.0
	for i, p := range points {
		to := stepWidth
		if i+1 < len(points) {
			next := points[i+1]
			to = next.X
			boxes = append(boxes, box{to - margin, min(p.Y, next.Y), to + margin, max(p.Y, next.Y)})
		}
		boxes = append(boxes, box{p.X, p.Y - margin, to, p.Y + margin})
	}
	return boxes
}
