// Package chart draws the charts of the catalog's pages and of saved queries as SVG.
// Callers translate their data to a Plot (points on two axes), Bars or Columns, and
// templates call SVG with the CSS class and the accessible name of the chart. Callers
// also format all texts, and show the same values as a table.
//
// Start with Plot. Its points and axes are in units of the data, so another kind of
// axis only needs another function that returns an Axis, as Numbers does. How each
// kind is drawn is in plot.go, and where labels are placed in labels.go.
package chart

import (
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"
)

// Chart is a chart that can be drawn.
type Chart interface {
	// SVG draws the chart. The class is added to "chart", and the label is what
	// screen readers say.
	SVG(class, label string) template.HTML
}

// Plot shows points on two axes.
type Plot struct {
	Kind   Kind
	X, Y   Axis
	Series []Series
	Legend bool // whether the names of the series are below the plot
}

// Kind is how a plot shows its points.
type Kind int

// The kinds of plots.
const (
	Lines Kind = iota // a line from point to point
	Steps             // values that last until the next point
	Dots              // points without a line
	spark             // small steps without texts
)

// MaxSeries is how many colors there are. Further series are not drawn as lines.
const MaxSeries = 8

// Series are the points of one line, in the order of X.
type Series struct {
	Name   string
	Points []Point
}

// Point is a value.
type Point struct {
	X, Y         float64
	XText, YText string            // tooltip; a point without YText has no dot
	Lang         template.HTMLAttr // language of YText if it is not that of the page
	Label        string            // beside a step or dot, if there is room
	Highlighted  bool              // among other dots
}

// Day returns the day of a point whose X is a time.
func (p Point) Day() string { return timeOf(p.X).Format(time.DateOnly) }

// Axis has the range of values of a plot, and those that are labeled. The values of
// X have a label below the plot, those of Y have a grid line.
type Axis struct {
	From, To float64
	Ticks    []Tick
}

// Tick is a labeled value.
type Tick struct {
	At   float64
	Text string
}

func (a *Axis) share(value float64) float64 { return (value - a.From) / (a.To - a.From) }

const gridLines = 4

// Numbers returns an axis of round numbers. It starts at zero unless all values are
// far above it and fromZero is false. Whole numbers have whole ticks.
func Numbers(values []float64, fromZero bool, format func(float64) string) (a Axis) {
	low, high := slices.Min(values), slices.Max(values)
	if fromZero || low == high || low <= high/2 {
		low = min(low, 0)
	}
	high = max(high, 0)
	if high == low {
		high = low + 1
	}
	step := niceStep((high - low) / gridLines)
	if !slices.ContainsFunc(values, func(v float64) bool { return v != math.Trunc(v) }) {
		step = max(step, 1)
	}
	a.From, a.To = math.Floor(low/step)*step, math.Ceil(high/step)*step
	for v := a.From; v <= a.To+step/2; v += step {
		a.Ticks = append(a.Ticks, Tick{v, format(v)})
	}
	return a
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(rough float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if rough <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

// Plain formats a number with a decimal point.
func Plain(n float64) string { return strconv.FormatFloat(math.Round(n*100)/100, 'g', 6, 64) }

// Time returns a time as a value of an axis.
func Time(t time.Time) float64 { return float64(t.Unix()) }

func timeOf(x float64) time.Time { return time.Unix(int64(x), 0).UTC() }

// NewLines returns the lines of series whose X are positions in times, which have
// equal distances. It returns nil if there are fewer than two times, or no values.
func NewLines(times []string, all []Series, format func(float64) string) *Plot {
	all = all[:min(len(all), MaxSeries)]
	_, ys := coordinates(all)
	last := len(times) - 1
	if last < 1 || len(ys) == 0 {
		return nil
	}
	x := Axis{To: float64(last)}
	for _, i := range slices.Compact([]int{0, last / 2, last}) {
		x.Ticks = append(x.Ticks, Tick{float64(i), times[i]})
	}
	return &Plot{Kind: Lines, X: x, Y: Numbers(ys, false, format), Series: all}
}

// NewSteps returns the steps of series whose X are times, up to a day. The axis ends
// at the highest value, or at highest if that is given. It returns nil unless a value
// changed.
func NewSteps(all []Series, highest float64, until time.Time, day func(time.Time) string) *Plot {
	if !slices.ContainsFunc(all, func(s Series) bool { return len(s.Points) > 1 }) {
		return nil
	}
	const tail = 0.04 // minimum length of the last step, as a share of the rest
	xs, ys := coordinates(all)
	first, last := slices.Min(xs), slices.Max(xs)
	x := Axis{From: first, To: max(Time(until), last+(last-first)*tail)}
	x.Ticks = []Tick{{x.From, day(timeOf(first))}, {x.To, day(until)}}
	y := Axis{To: max(slices.Max(ys), 0.01), Ticks: []Tick{{0, "0"}}}
	if highest != 0 {
		y.To, y.Ticks = highest, append(y.Ticks, Tick{highest, Plain(highest)})
	}
	return &Plot{Kind: Steps, X: x, Y: y, Series: all}
}

// Sparkline draws points whose X are times as a small line up to a day. Without
// points, it is an empty element of the same size.
func Sparkline(points []Point, until time.Time) template.HTML {
	if len(points) == 0 {
		return `<span class="spark"></span>`
	}
	p := Plot{Kind: spark, Series: []Series{{Points: points}}}
	xs, ys := coordinates(p.Series)
	p.X.From, p.Y = xs[0], Axis{From: slices.Min(ys), To: slices.Max(ys)}
	// The last step is long enough to be seen.
	p.X.To = xs[0] + max(Time(until)-xs[0], xs[len(xs)-1]-xs[0], 1)*1.1
	if p.Y.From == p.Y.To { // in the middle
		p.Y.From, p.Y.To = p.Y.From-1, p.Y.To+1
	}
	return p.SVG("spark", "")
}

func coordinates(all []Series) (xs, ys []float64) {
	for _, s := range all {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	return xs, ys
}
