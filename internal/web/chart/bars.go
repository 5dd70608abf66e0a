package chart

import (
	"html/template"
	"math"
	"slices"
	"unicode/utf8"
)

const chartWidth = 640.0 // in SVG units, as all sizes

// Bars are horizontal bars from zero, with a label before and a number after each.
type Bars []Bar

// Bar is one number. Without a text, it has a place but no bar.
type Bar struct {
	Label, Text string
	Value       float64
	Series      int // color
}

// SVG draws the bars.
func (bars Bars) SVG(class, label string) template.HTML {
	const charWidth, gap, space, thickness, maxLabel = 7.0, 8.0, 26.0, 18.0, 26
	values := []float64{0}
	longestLabel, longestText := 0, 0
	for _, b := range bars {
		values = append(values, b.Value)
		longestLabel = max(longestLabel, min(utf8.RuneCountInString(b.Label), maxLabel))
		longestText = max(longestText, utf8.RuneCountInString(b.Text))
	}
	labelEnd, textWidth := charWidth*float64(longestLabel), charWidth*float64(longestText)+gap
	left := labelEnd + gap
	if slices.Min(values) < 0 {
		left += textWidth // the numbers of bars to the left
	}
	room := chartWidth - left - textWidth
	axis := Numbers(values, true, Plain)
	zero := left + axis.share(0)*room
	d := newDrawing(class, label, 0, chartWidth, space*float64(len(bars)))
	for i, b := range bars {
		name, top := shorten(b.Label, maxLabel), space*float64(i)
		middle := top + space/2 + 4
		to := left + axis.share(b.Value)*room
		from, width := min(zero, to), max(math.Abs(to-zero), 1)
		d.text(name, "end", labelEnd, middle)
		switch {
		case b.Text == "":
			d.text("–", "", zero+gap, middle)
			continue
		case b.Value < 0:
			d.text(b.Text, "end", from-gap, middle)
		default:
			d.text(b.Text, "", from+width+gap, middle)
		}
		d.rect(Title(name, b.Text), seriesClass(b.Series), from, top+4, width, thickness)
	}
	return d.end()
}

// Columns are vertical bars from zero, with a label below and a number above each.
type Columns struct {
	Columns []Column
	Compact bool // for half of the page
}

// Column is one number. Zero has a place, but no bar.
type Column struct {
	Label, Text string // the label is drawn if there is room
	Title       string // tooltip, or ""
	Class       string // color, or ""
	Value       float64
}

// SVG draws the columns.
func (c *Columns) SVG(class, label string) template.HTML {
	const height, charWidth = 120.0, 9.0
	count := float64(len(c.Columns))
	space := min(chartWidth/count, 72)
	left, width, gap := 0.0, chartWidth, space*0.2
	top, bottom, labelGap, textGap := 20.0, 26.0, 18.0, 5.0
	if c.Compact {
		space, gap = 36, 6
		left, width = gap/2, space*count-gap
		top, bottom, labelGap, textGap = 16, 20, 16, 4
	}
	base, largest := top+height, 1.0
	for _, column := range c.Columns {
		largest = max(largest, column.Value)
	}
	d := newDrawing(class, label, left, width, base+bottom)
	free := 0.0 // where the next label has room
	for i, column := range c.Columns {
		start := space * float64(i)
		middle, y := start+space/2, round(base-column.Value/largest*height)
		if column.Value > 0 {
			d.rect(column.Title, column.Class, start+gap/2, y, space-gap, base-y, "rx", 2.0)
			d.text(column.Text, "middle", middle, y, "dy", -textGap)
		}
		if half := charWidth * float64(utf8.RuneCountInString(column.Label)) / 2; middle-half >= free {
			d.text(column.Label, "middle", middle, base+labelGap)
			free = middle + half + charWidth
		}
	}
	d.add("line", "", "x1", left, "x2", left+width, "y1", base, "y2", base)
	return d.end()
}
