package chart

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"time"

	"palmares/internal/core/lang"
)

// Plots are small multiples, or a single large plot.
type Plots []*Plot

// Plot shows points on two axes.
type Plot struct {
	Kind    Kind
	Heading string // what it shows, among several
	X, Y    Axis
	Series  []Series
	Remarks []Remark
}

// Kind is how a plot shows its points.
type Kind int

// The kinds of plots.
const (
	Lines   Kind = iota // a line from point to point
	Steps               // values that last until the next point, or the end of the axis
	Columns             // numbers of a period, from zero
	Dots                // points without a line
)

// Series are the points of one line, in the order of X.
type Series struct {
	Name   string // "" if the title of the chart says it
	Points []Point
}

// Point is a value.
type Point struct {
	X, Y  float64
	End   float64 // end of a column's period; 0 for a narrow column at X
	Gap   bool    // there is no value between this point and the one before
	Text  string  // shown on hover and focus
	Label string  // beside a dot if there is room, above a column, or at the end of a line without a name
	Color string  // color of a column or dot, or "" for that of the series

	XText, YText string            // for tables
	Lang         template.HTMLAttr // language of YText if it is not that of the page
}

// Day returns the day of a point whose X is a time.
func (p Point) Day() string { return time.Unix(int64(p.X), 0).UTC().Format(time.DateOnly) }

// Remark explains what happened at a value of X.
type Remark struct {
	X    float64
	Text string
}

const (
	tickSize  = 11.0
	labelSize = 11.5
	lineSpace = 14.0 // between the baselines of texts
	panelGap  = 20.0
	maxPlots  = 12  // small multiples
	maxDots   = 120 // with more points, lines only have a visible dot at their end
)

// NewLines returns a plot of lines. More than MaxLines become small multiples on the
// same axes. The series with the highest latest values are first; the note says if
// there is no room for the others.
func NewLines(l lang.Language, kind Kind, x Axis, unit Unit, all []Series) (plots Plots, note string) {
	all = slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return len(s.Points) == 0 })
	slices.SortStableFunc(all, func(a, b Series) int {
		return cmp.Compare(b.Points[len(b.Points)-1].Y, a.Points[len(a.Points)-1].Y)
	})
	if total := len(all); total > maxPlots {
		all, note = all[:maxPlots], l.Text("%d of %d series, those with the highest latest values.", maxPlots, total)
	}
	if len(all) == 0 {
		return nil, ""
	}
	var ys []float64
	for _, s := range all {
		for _, p := range s.Points {
			ys = append(ys, p.Y)
		}
	}
	isMultiple := len(all) > MaxLines || kind == Columns && len(all) > 1
	intervals := 4
	if isMultiple {
		intervals = 2
	}
	y := Numbers(l, unit, ys, kind == Columns, intervals)
	if !isMultiple {
		return Plots{{Kind: kind, X: x, Y: y, Series: all}}, note
	}
	for _, s := range all {
		plots = append(plots, &Plot{Kind: kind, Heading: s.Name, X: x, Y: y, Series: []Series{{Points: s.Points}}})
	}
	return plots, note
}

func (plots Plots) draw(d *drawing) {
	const small = 96.0
	if len(plots) == 1 {
		plots[0].draw(d, area{0, 0, d.width, max(165, d.width*0.36)})
		return
	}
	caption, bottom, top := plots[0].Y.Caption, 0.0, 0.0
	isShared := !slices.ContainsFunc(plots, func(p *Plot) bool { return p.Y.Caption != caption })
	if isShared && caption != "" {
		d.text("soft", "", tickSize, 0, tickSize, caption) // once for all
		bottom = lineSpace + 10
	}
	columns, width := grid(d.width, len(plots))
	for i, p := range plots {
		if i%columns == 0 {
			top = bottom
		}
		panel := *p
		if panel.Y.Caption = cmp.Or(p.Y.Caption, "\u00a0"); isShared {
			panel.Y.Caption = ""
		}
		panel.draw(d, area{float64(i%columns) * (width + panelGap), top, width, small})
		bottom = max(bottom, d.height+12)
	}
	d.height = bottom - 12
}

// grid returns how many panels or tiles there are in a row, and their width. Rows are
// full if that is possible.
func grid(room float64, count int) (columns int, width float64) {
	const minWidth = 165.0
	columns = min(count, int((room+panelGap)/(minWidth+panelGap)))
	if columns == 4 && count%4 != 0 && (count%3 == 0 || count == 5) {
		columns = 3
	}
	return columns, (room+panelGap)/float64(columns) - panelGap
}

type area struct{ x, y, w, h float64 }

// draw draws a plot. The height of the area is that of the plot itself; texts are
// around it.
func (p *Plot) draw(d *drawing, room area) {
	top, right := room.y, room.x+room.w
	if p.Heading != "" {
		d.heading("ink", labelSize+0.5, room.x, top+labelSize, shorten(p.Heading, labelSize+1, room.w))
		top += lineSpace + 4
	}
	if p.Y.Caption != "" {
		for _, line := range wrap(p.Y.Caption, tickSize, room.w) {
			d.text("soft", "", tickSize, room.x, top+tickSize, line)
			top += lineSpace
		}
		top += 4
	}
	left, yTicks := room.x, p.Y.ticks(room.h)
	for _, t := range yTicks {
		left = max(left, room.x+measure(t.text, tickSize, false)+8)
	}
	labels, labelWidth := p.endLabels(room.w * 0.34)
	right -= labelWidth
	plot := area{left, top + 8, right - left, room.h}
	x := func(value float64) float64 { return plot.x + p.X.fraction(value)*plot.w }
	y := func(value float64) float64 { return plot.y + plot.h - p.Y.fraction(value)*plot.h }
	if plot.y += p.drawRemarks(d, plot, x); p.Kind == Columns {
		plot.y += 8 // for the numbers above
	}
	base := plot.y + plot.h
	for _, t := range yTicks {
		d.line("grid", 1, at{plot.x, y(t.at)}, at{right, y(t.at)})
		d.text("soft", "end", tickSize, plot.x-8, y(t.at)+4, t.text)
	}
	free := room.x
	for _, t := range p.X.ticks(plot.w) {
		half := measure(t.text, tickSize, false) / 2
		middle := min(max(x(t.at), room.x+half), max(right, room.x+room.w-half)-half)
		if middle-half < free {
			continue
		}
		d.line("grid", 1, at{x(t.at), base}, at{x(t.at), base + 5})
		d.text("soft", "middle", tickSize, middle, base+lineSpace+5, t.text)
		free = middle + half + 8
	}
	d.height = base + lineSpace + 10
	if p.X.Caption != "" {
		d.text("soft", "end", tickSize, right, d.height+8, p.X.Caption)
		d.height += lineSpace
	}
	for i, s := range p.Series {
		if len(s.Points) == 0 {
			continue
		}
		switch p.Kind {
		case Lines, Steps:
			p.drawLine(d, i, s.Points, x, y)
		case Columns:
			drawColumns(d, s.Points, x, y)
		case Dots:
			drawDots(d, area{room.x, plot.y - 8, room.w, plot.h + 8}, s.Points, x, y)
		}
	}
	p.drawEndLabels(d, labels, plot, x, y)
}

// drawRemarks draws a vertical line for each remark, and its text above the plot, in
// as many rows as they need. It returns their height.
func (p *Plot) drawRemarks(d *drawing, plot area, x func(float64) float64) (height float64) {
	free := math.Inf(1)
	for _, r := range slices.Backward(p.Remarks) {
		width := measure(r.Text, tickSize, false)
		start := min(max(x(r.X)-width/2, plot.x), plot.x+plot.w-width)
		if start+width > free || height == 0 {
			height += lineSpace
		}
		free = start - 8
		d.text("soft", "", tickSize, start, plot.y+height-4, r.Text)
		d.line("soft", 1, at{x(r.X), plot.y + height}, at{x(r.X), plot.y + height + 6})
	}
	if height > 0 {
		height += 8
	}
	return height
}

// drawLine draws the parts of a line between gaps, and its points.
func (p *Plot) drawLine(d *drawing, number int, points []Point, x, y func(float64) float64) {
	color := seriesColor(number)
	var part []at
	flush := func() {
		if len(part) > 1 {
			d.line(color, 2, part...)
		}
		part = nil
	}
	for i, point := range points {
		to := at{x(point.X), y(point.Y)}
		if point.Gap {
			flush()
		} else if p.Kind == Steps && i > 0 {
			part = append(part, at{to.x, y(points[i-1].Y)})
		}
		part = append(part, to)
	}
	if p.Kind == Steps {
		part = append(part, at{x(p.X.To), part[len(part)-1].y})
	}
	flush()
	for i, point := range points {
		alone := (i == 0 || point.Gap) && (i == len(points)-1 || points[i+1].Gap)
		shown := color
		if len(points) > maxDots && !alone && i < len(points)-1 {
			shown = hidden
		}
		d.circle(shown, point.Text, x(point.X), y(point.Y), 3)
		if point.Lang != "" {
			d.marks[len(d.marks)-1].lang = " " + point.Lang
		}
	}
}

// drawColumns draws numbers from zero. A zero is a thin line, so that it differs from
// nothing known.
func drawColumns(d *drawing, points []Point, x, y func(float64) float64) {
	const narrowest = 7.0
	for _, p := range points {
		from, to := x(p.X)+0.5, x(p.End)-0.5
		if p.End == 0 {
			from, to = x(p.X)-narrowest/2, x(p.X)+narrowest/2
		}
		height := max(y(0)-y(p.Y), 1)
		d.rect(cmp.Or(p.Color, seriesColor(0)), p.Text, from, y(0)-height, to-from, height)
		if p.Label != "" && p.Y > 0 && measure(p.Label, tickSize, false) <= max(to-from+4, 2*narrowest) {
			d.text("soft", "middle", tickSize, (from+to)/2, y(0)-height-4, p.Label)
		}
	}
}

// drawDots draws points, and their labels where they cover neither a dot nor another
// label. The points that matter most are first, so they are drawn last.
func drawDots(d *drawing, room area, points []Point, x, y func(float64) float64) {
	radius := 5.0
	if len(points) > 60 {
		radius = 3
	}
	var taken []area
	for _, p := range slices.Backward(points) {
		d.circle(cmp.Or(p.Color, seriesColor(0)), p.Text, x(p.X), y(p.Y), radius)
		taken = append(taken, area{x(p.X) - radius, y(p.Y) - radius, 2 * radius, 2 * radius})
	}
	for _, p := range points {
		width := measure(p.Label, labelSize, false)
		for _, place := range []at{{7, -7}, {-7 - width, -7}, {7, -16}, {-7 - width, -16}, {7, 3}, {-7 - width, 3}, {-width / 2, -20}, {-width / 2, 7}} {
			box := area{x(p.X) + place.x, y(p.Y) + place.y, width, lineSpace}
			if p.Label != "" && room.contains(box) && !slices.ContainsFunc(taken, box.overlaps) {
				taken = append(taken, box)
				d.text(cmp.Or(p.Color, "ink"), "", labelSize, box.x, box.y+labelSize-0.5, p.Label)
				break
			}
		}
	}
}

func (a area) overlaps(b area) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

func (a area) contains(b area) bool {
	return a.x <= b.x && a.y <= b.y && a.x+a.w >= b.x+b.w && a.y+a.h >= b.y+b.h
}

// endLabels returns the labels of lines, and the width that they need beside the plot.
func (p *Plot) endLabels(room float64) (labels []string, width float64) {
	if p.Kind != Lines && p.Kind != Steps {
		return nil, 4
	}
	for _, s := range p.Series {
		label := ""
		if len(s.Points) > 0 {
			label = cmp.Or(s.Name, s.Points[len(s.Points)-1].Label)
		}
		labels = append(labels, shorten(label, labelSize, room))
		width = max(width, measure(labels[len(labels)-1], labelSize, false)+14)
	}
	return labels, width
}

// drawEndLabels writes the names of lines at their ends, in their colors. Labels that
// would touch are moved apart, with a line from the end of each to its label.
func (p *Plot) drawEndLabels(d *drawing, labels []string, plot area, x, y func(float64) float64) {
	type end struct {
		series int
		from   at
		y      float64
	}
	var ends []end
	for i, label := range labels {
		if points := p.Series[i].Points; label != "" {
			last := points[len(points)-1]
			from := at{x(last.X), y(last.Y)}
			if p.Kind == Steps {
				from.x = x(p.X.To)
			}
			ends = append(ends, end{i, from, from.y})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	for i := range ends {
		if i > 0 {
			ends[i].y = max(ends[i].y, ends[i-1].y+lineSpace)
		}
	}
	lowest := plot.y + plot.h
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i].y = min(ends[i].y, lowest)
		lowest = ends[i].y - lineSpace
	}
	for _, e := range ends {
		color, start := seriesColor(e.series), e.from.x+8 // also of a line that ends early
		if math.Abs(e.y-e.from.y) > 3 {
			start = plot.x + plot.w + 10
			d.line(color, 0.75, at{e.from.x + 4, e.from.y}, at{start - 2, e.y})
		}
		d.text(color, "", labelSize, start, e.y+4, labels[e.series])
	}
}

// Sparkline draws points whose X are times as small steps up to a day. Without points,
// it is an empty element of the same size.
func Sparkline(points []Point, until time.Time) template.HTML {
	if len(points) == 0 {
		return `<span class="spark"></span>`
	}
	const width, height, margin, radius = 64.0, 16.0, 4.0, 3.0
	first := points[0].X
	span := max(Time(until)-first, points[len(points)-1].X-first, 1) * 1.1 // the last step is long enough to be seen
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		low, high = min(low, p.Y), max(high, p.Y)
	}
	if low == high {
		low, high = low-1, high+1 // in the middle
	}
	d := &drawing{width: width + margin, height: height + 2*margin}
	var line []at
	for i, p := range points {
		to := at{(p.X - first) / span * width, margin + height - (p.Y-low)/(high-low)*height}
		if i > 0 {
			line = append(line, at{to.x, line[len(line)-1].y})
		}
		line = append(line, to)
	}
	end := at{width, line[len(line)-1].y}
	d.line("soft", 1.5, append(line, end)...)
	d.circle("soft", "", end.x, end.y, radius)
	return template.HTML(d.svg(`class="spark" aria-hidden="true"`, false)) //nolint:gosec // it has no texts
}
