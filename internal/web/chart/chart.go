// Package chart computes the shapes of charts that pages draw as SVG.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Lines draws values over time, one line for each series.
type Lines struct {
	Width, Height float64
	Lines         []Line
	Axis          []Label // of the values, at grid lines
	Times         []Label // below the lines
	Base          float64 // y of the lowest grid line
	Left          float64 // x where the plot starts
}

// Line is one series.
type Line struct {
	Name   string
	Path   string // of an SVG
	Points []Point
	Series int // color
}

// Point is where a line has a value.
type Point struct {
	X, Y  float64
	Title string
}

// Label is a text beside a chart.
type Label struct {
	X, Y float64
	Text string
	Side string // text-anchor of a time: "start", "middle" or "end"
}

// Series has one value for each time; nil if there is none.
type Series struct {
	Name   string
	Values []*Value
}

// Value is a number, and how it is written.
type Value struct {
	Number float64
	Text   string
}

// Dimensions in SVG units.
const (
	Width       = 640.0
	plotHeight  = 220.0
	plotTop     = 14.0
	plotRight   = 12.0
	axisWidth   = 56.0
	timesHeight = 26.0

	gridLines = 4
	maxDots   = 60 // of a line; with more, they touch each other
)

// MaxSeries is how many colors there are. Further series are not drawn.
const MaxSeries = 8

// NewLines returns the chart of some series. It returns nil if there are fewer
// than two times, or no values.
func NewLines(times []string, all []Series, format func(float64) string) *Lines {
	all = all[:min(len(all), MaxSeries)]
	var numbers []float64
	for _, s := range all {
		for _, v := range s.Values {
			if v != nil {
				numbers = append(numbers, v.Number)
			}
		}
	}
	if len(times) < 2 || len(numbers) == 0 {
		return nil
	}
	share, grid := Scale(numbers, false)
	c := &Lines{Width: Width, Base: plotTop + plotHeight, Left: axisWidth}
	x := func(i int) float64 {
		return Round(axisWidth + float64(i)/float64(len(times)-1)*(Width-axisWidth-plotRight))
	}
	y := func(v float64) float64 { return Round(c.Base - share(v)*plotHeight) }
	for _, v := range grid {
		c.Axis = append(c.Axis, Label{X: axisWidth - 8, Y: y(v), Text: format(v)})
	}
	last := len(times) - 1
	c.Times = []Label{{x(0), c.Base + 18, times[0], "start"}, {x(last), c.Base + 18, times[last], "end"}}
	if middle := last / 2; middle > 0 {
		c.Times = slices.Insert(c.Times, 1, Label{x(middle), c.Base + 18, times[middle], "middle"})
	}
	c.Height = c.Base + timesHeight
	for number, s := range all {
		line := Line{Name: s.Name, Series: number}
		var path strings.Builder
		for i, v := range s.Values {
			if v == nil {
				continue
			}
			command := "L"
			if path.Len() == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%g %g", command, x(i), y(v.Number))
			title := times[i] + " · " + v.Text // a colon would need a space before it in French
			if s.Name != "" {
				title = s.Name + " · " + title
			}
			line.Points = append(line.Points, Point{x(i), y(v.Number), title})
		}
		line.Path = path.String()
		c.Lines = append(c.Lines, line)
	}
	return c
}

// Dots returns the points to mark: all, or the last if there are many.
func (l Line) Dots() []Point { //nolint:gocritic // templates need a value
	if len(l.Points) > maxDots {
		return l.Points[len(l.Points)-1:]
	}
	return l.Points
}

// Columns draws counts as columns.
type Columns struct {
	Width, Height, Base float64
	Columns             []Column
}

// Column is one count. Its label is empty if there is no room for it.
type Column struct {
	Label, Title       string
	Count              int
	X, Y, W, H, Middle float64
}

// NewColumns returns the chart of counts with their labels. The titles are the
// full names of the columns.
func NewColumns(labels, titles []string, counts []int) *Columns {
	if len(counts) == 0 {
		return nil
	}
	const top, height, widest, charWidth = 20.0, 120.0, 72.0, 9.0
	c := &Columns{Width: Width, Base: top + height, Height: top + height + timesHeight}
	space := min(Width/float64(len(counts)), widest)
	largest := max(slices.Max(counts), 1)
	free := 0.0 // where the next label has room
	for i, count := range counts {
		h := Round(float64(count) / float64(largest) * height)
		column := Column{
			Title: titles[i], Count: count, X: Round(float64(i)*space + space*0.1), W: Round(space * 0.8), H: h, Y: Round(c.Base - h), Middle: Round((float64(i) + 0.5) * space),
		}
		if half := charWidth * float64(len([]rune(labels[i]))) / 2; column.Middle-half >= free {
			column.Label, free = labels[i], column.Middle+half+charWidth
		}
		c.Columns = append(c.Columns, column)
	}
	return c
}

// Scale returns a function from values to a share of the plot, and the values of
// grid lines. Bars start at zero, and so do lines unless they stay far above it.
// Whole numbers have whole grid lines.
func Scale(values []float64, fromZero bool) (share func(float64) float64, grid []float64) {
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
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	for v := low; v <= high+step/2; v += step {
		grid = append(grid, v)
	}
	return func(v float64) float64 { return (v - low) / (high - low) }, grid
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

// Plain formats a number of an axis with a decimal point.
func Plain(n float64) string { return strconv.FormatFloat(math.Round(n*100)/100, 'g', 6, 64) }

// Round rounds a coordinate.
func Round(n float64) float64 { return math.Round(n*10) / 10 }
