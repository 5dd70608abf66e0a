package chart

import (
	"cmp"
	"math"
	"slices"

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
	Level   Remark // explains a value of Y, if it has a text
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
	End   float64 // end of a column's period; X for a narrow column
	Gap   bool    // there is no value between this point and the one before
	Text  string  // shown on hover and focus
	Label string  // beside a dot if there is room, above a column, or at the end of a line without a name
	Color string  // color of a column or dot, or "" for that of the series
}

// Remark explains what happened at a value of X, or what one of Y is.
type Remark struct {
	X    float64
	Text string
}

const (
	tickSize  = 11.0
	labelSize = 11.5
	lineSpace = 14.0 // between the baselines of texts
	panelGap  = 20.0
	maxScore  = 10
	maxDots   = 120 // with more points, lines only have a visible dot at their end
)

// MaxPlots is how many small multiples a chart has.
const MaxPlots = 12

// Points returns how many points the plots show.
func (plots Plots) Points() (count int) {
	for _, p := range plots {
		for _, s := range p.Series {
			count += len(s.Points)
		}
	}
	return count
}

// NewLines returns a plot of lines. More than MaxLines become small multiples on the
// same axes. The series with the highest latest values are first; the notes say if
// there is no room for the others.
func NewLines(l lang.Language, kind Kind, x Axis, unit Unit, all []Series) (plots Plots, notes []string) {
	all = slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return len(s.Points) == 0 })
	if kind != Steps { // their colors are those of other charts
		slices.SortStableFunc(all, func(a, b Series) int { return cmp.Compare(b.last().Y, a.last().Y) })
	}
	if total := len(all); total > MaxPlots {
		all, notes = all[:MaxPlots], []string{l.Text("%d of %d series, those with the highest latest values.", MaxPlots, total)}
	}
	var ys []float64
	for _, s := range all {
		for _, p := range s.Points {
			ys = append(ys, p.Y)
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) == 1 || len(all) <= MaxLines && kind != Columns:
		return Plots{{Kind: kind, X: x, Y: Numbers(l, unit, ys, kind == Columns || kind == Steps && unit != Score, 4), Series: all}}, notes
	}
	y := Numbers(l, unit, ys, kind != Lines, 2)
	for _, s := range all {
		plots = append(plots, &Plot{Kind: kind, Heading: s.Name, X: x, Y: y, Series: []Series{{Points: s.Points}}})
	}
	return plots, notes
}

func (s *Series) last() Point { return s.Points[len(s.Points)-1] }

func (plots Plots) draw(d *drawing) {
	small := 130.0
	if len(plots) <= 2 {
		small = 190
	}
	if len(plots) == 1 {
		height := min(max(205, d.width*0.38), 300)
		switch p := plots[0]; {
		case d.isSmall:
			height = 140
		case p.Kind == Columns && p.Y.To-p.Y.From <= 3: // few values
			height = max(height/2, small)
		}
		plots[0].draw(d, area{0, 0, d.width, height})
		return
	}
	caption, top := plots[0].Y.Caption, 0.0
	isShared := !slices.ContainsFunc(plots, func(p *Plot) bool { return p.Y.Caption != caption })
	if isShared && caption != "" {
		d.text("soft", "", tickSize, 0, tickSize, caption) // once for all
		top = lineSpace + 10
	}
	columns, width := grid(d.width, len(plots))
	for i, p := range plots {
		if i > 0 && i%columns == 0 {
			top = d.height + 12
		}
		panel := *p
		if isShared {
			panel.Y.Caption = ""
		}
		panel.draw(d, area{float64(i%columns) * (width + panelGap), top, width, small})
	}
}

// grid returns how many panels or tiles there are in a row, and their width. As few
// places as possible are empty.
func grid(room float64, count int) (columns int, width float64) {
	minWidth := 150.0 // two on a phone
	if count < 4 {
		minWidth = 165
	}
	most := min(count, int((room+panelGap)/(minWidth+panelGap)))
	columns = most
	for fewer := most; fewer > most/2; fewer-- {
		if (count+fewer-1)/fewer*fewer < (count+columns-1)/columns*columns {
			columns = fewer
		}
	}
	return columns, (room+panelGap)/float64(columns) - panelGap
}

type area struct{ x, y, w, h float64 }

// frame is a plot at its place in a drawing.
type frame struct {
	*Plot
	*drawing
	area
}

func (f *frame) across(value float64) float64 { return f.x + f.X.fraction(value)*f.w }

func (f *frame) up(value float64) float64 { return f.y + f.h - f.Y.fraction(value)*f.h }

func (f *frame) place(p Point) at { return at{f.across(p.X), f.up(p.Y)} }

// draw draws a plot. The height of the room ends with the horizontal axis, whose texts
// are below.
func (p *Plot) draw(d *drawing, room area) {
	f := frame{p, d, room}
	base := room.y + room.h
	if p.Heading != "" {
		d.heading(labelSize+0.5, room.x, f.y+labelSize, shorten(p.Heading, labelSize+1, room.w))
		f.y += lineSpace + 4
	}
	if p.Y.Caption != "" {
		for _, line := range wrap(p.Y.Caption, tickSize, room.w) {
			d.text("soft", "", tickSize, room.x, f.y+tickSize, line)
			f.y += lineSpace
		}
		f.y += 4
	}
	yTicks, labelWidth := p.Y.ticks(room.h), 4.0
	for _, t := range yTicks {
		f.x = max(f.x, room.x+measure(t.text, tickSize, false)+8)
	}
	ends := p.ends(room.w * 0.34)
	for _, e := range ends {
		labelWidth = max(labelWidth, measure(e.label, labelSize, false)+14)
	}
	f.y, f.w = f.y+8, room.x+room.w-labelWidth-f.x
	if f.drawRemarks(); p.Kind == Columns {
		f.y += 8 // for the numbers above
	}
	f.h = base - f.y
	for _, t := range yTicks {
		d.line("grid", 1, at{f.x, f.up(t.at)}, at{f.x + f.w, f.up(t.at)})
		d.text("soft", "end", tickSize, f.x-8, f.up(t.at)+4, t.text)
	}
	if level := p.Level; level.Text != "" {
		d.line("soft", 1, at{f.x, f.up(level.X)}, at{f.x + f.w, f.up(level.X)})
		d.text("soft", "end", tickSize, f.x+f.w, f.up(level.X)-4, level.Text)
	}
	free := room.x
	for _, t := range p.X.ticks(f.w) {
		x, half := f.across(p.middle(t.at)), measure(t.text, tickSize, false)/2
		middle := min(max(x, room.x+half), room.x+room.w-half)
		if middle-half < free || x > f.x+f.w+0.5 {
			continue
		}
		d.line("grid", 1, at{x, base}, at{x, base + 5})
		d.text("soft", "middle", tickSize, middle, base+lineSpace+5, t.text)
		free = middle + half + 8
	}
	d.height = base + lineSpace + 10
	if p.X.Caption != "" {
		d.text("soft", "end", tickSize, f.x+f.w, d.height+8, p.X.Caption)
		d.height += lineSpace
	}
	for i, s := range p.Series {
		switch p.Kind {
		case Lines, Steps:
			f.drawLine(p.color(i), s.Points)
		case Columns:
			f.drawColumns(s.Points)
		case Dots:
			f.drawDots(area{room.x, f.y - 8, room.w, f.h + 8}, s.Points)
		}
	}
	f.drawEnds(ends)
}

// color returns the color of a series. Those that are compared have neither the color of good
// scores nor that of others.
func (p *Plot) color(series int) string {
	if p.Kind == Steps && len(p.Series) > 1 {
		return seriesColor([MaxLines]int{2, 4, 3, 1, 0}[series%MaxLines])
	}
	return seriesColor(series)
}

// middle returns where the name of a date is: that of a month is below its column, not where
// the month before ends.
func (p *Plot) middle(date float64) float64 {
	if p.Kind != Columns || !p.X.dates || len(p.Series) == 0 || len(p.Series[0].Points) == 0 {
		return date
	}
	points := p.Series[0].Points
	of := max(0, slices.IndexFunc(points, func(c Point) bool { return c.X == date })) // another one has about the same length
	return date + max(0, points[of].End-points[of].X)/2
}

// drawRemarks draws a short line for each remark, and its text above the plot, in as
// many rows as they need.
func (f *frame) drawRemarks() {
	free, top := math.Inf(-1), f.y
	for _, r := range slices.Backward(f.Remarks) {
		x, width := f.across(r.X), measure(r.Text, tickSize, false)
		start := min(max(x-width/2, f.x), f.x+f.w-width)
		if f.y == top || start+width > free {
			f.y += lineSpace
		}
		free = start - 8
		f.text("soft", "", tickSize, start, f.y-4, r.Text)
		f.line("soft", 1, at{x, f.y}, at{x, f.y + 6})
	}
	if f.y > top {
		f.y += 8
	}
}

// paths returns the lines between gaps.
func (f *frame) paths(points []Point) (parts [][]at) {
	for i, point := range points {
		to := f.place(point)
		if i == 0 || point.Gap {
			parts = append(parts, nil)
		} else if f.Kind == Steps {
			parts[len(parts)-1] = append(parts[len(parts)-1], at{to.x, f.up(points[i-1].Y)})
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], to)
	}
	if last := len(parts) - 1; last >= 0 && f.Kind == Steps {
		parts[last] = append(parts[last], at{f.across(f.X.To), parts[last][len(parts[last])-1].y})
	}
	return parts
}

func (f *frame) drawLine(color string, points []Point) {
	for _, part := range f.paths(points) {
		if len(part) > 1 {
			f.line(color, 2, part...)
		}
	}
	for i, point := range points {
		isLast := i == len(points)-1
		isAlone := (i == 0 || point.Gap) && (isLast || points[i+1].Gap)
		isUnchanged := f.Kind == Steps && i > 0 && point.Y == points[i-1].Y
		shown := color
		if isUnchanged || len(points) > maxDots && !isAlone && !isLast {
			shown = hidden
		}
		center := f.place(point)
		f.circle(shown, point.Text, center, 3)
		if f.Kind == Steps && len(f.Series) == 1 && !isUnchanged && slices.ContainsFunc(points[i:], func(p Point) bool { return p.Y != point.Y }) && f.across(points[i+1].X)-center.x > measure(point.Label, tickSize, false)+8 {
			f.text("soft", "", tickSize, center.x+5, center.y-5, point.Label)
		}
	}
}

// drawColumns draws numbers from zero. A zero is a thin gray line, so that it differs from
// nothing known and from a value.
func (f *frame) drawColumns(points []Point) {
	const narrowest = 7.0
	for _, p := range points {
		from, width := f.across(p.X)+0.5, f.across(p.End)-f.across(p.X)-1
		if p.End <= p.X {
			from, width = min(max(f.across(p.X)-narrowest/2, f.x), f.x+f.w-narrowest), narrowest
		}
		height := max(math.Abs(f.up(0)-f.up(p.Y)), 1)
		top, label := f.up(0)-height, f.up(p.Y)-4
		if p.Y < 0 {
			top, label = f.up(0), f.up(p.Y)+lineSpace-2
		}
		color := seriesColor(0)
		if p.Y == 0 {
			color = "soft"
		}
		f.rect(cmp.Or(p.Color, color), p.Text, area{from, top, width, height})
		if p.Y != 0 && measure(p.Label, tickSize, false) <= max(width+4, 2*narrowest) {
			f.text("soft", "middle", tickSize, from+width/2, label, p.Label)
		}
	}
}

// drawDots draws points, and their labels where they cover neither a dot nor another
// label. The points that matter most are first, so they are drawn last.
func (f *frame) drawDots(room area, points []Point) {
	radius := 5.0
	if len(points) > 60 {
		radius = 3
	}
	var taken []area
	for _, p := range slices.Backward(points) {
		center := f.place(p)
		f.circle(cmp.Or(p.Color, seriesColor(0)), p.Text, center, radius)
		taken = append(taken, area{center.x - radius, center.y - radius, 2 * radius, 2 * radius})
	}
	for _, p := range points {
		center, width := f.place(p), measure(p.Label, labelSize, false)
		for _, move := range []at{{7, -7}, {-7 - width, -7}, {7, -16}, {-7 - width, -16}, {7, 3}, {-7 - width, 3}, {-width / 2, -20}, {-width / 2, 7}} {
			box := area{center.x + move.x, center.y + move.y, width, lineSpace}
			if p.Label != "" && room.contains(box) && !slices.ContainsFunc(taken, box.overlaps) {
				taken = append(taken, box)
				f.text(cmp.Or(p.Color, "ink"), "", labelSize, box.x, box.y+labelSize-0.5, p.Label)
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

// end is the end of a line with its label.
type end struct {
	Point
	label, color string
}

// ends returns the ends of lines, from the highest to the lowest.
func (p *Plot) ends(room float64) (all []end) {
	for i, s := range p.Series {
		if (p.Kind == Lines || p.Kind == Steps) && len(s.Points) > 0 {
			last := s.last()
			if p.Kind == Steps {
				last.X = p.X.To
			}
			all = append(all, end{last, shorten(cmp.Or(s.Name, last.Label), labelSize, room), p.color(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b end) int { return cmp.Compare(b.Y, a.Y) })
	return all
}

// drawEnds writes the names of lines at their ends, in their colors. Labels that would
// touch are moved apart, with a line from the end of each to its label.
func (f *frame) drawEnds(ends []end) {
	heights, highest, lowest := make([]float64, len(ends)), math.Inf(-1), f.y+f.h
	for i, e := range ends {
		heights[i] = max(f.up(e.Y), highest)
		highest = heights[i] + lineSpace
	}
	for i, e := range slices.Backward(ends) {
		y := min(heights[i], lowest)
		lowest = y - lineSpace
		from := f.place(e.Point)
		start := from.x + 8 // also of a line that ends early
		if math.Abs(y-from.y) > 3 {
			start = f.x + f.w + 10
			f.line(e.color, 0.75, at{from.x + 4, from.y}, at{start - 2, y})
		}
		f.text(e.color, "", labelSize, start, y+4, e.label)
	}
}
