package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// layout has the dimensions of a kind of plot in SVG units. The plot starts at x = 0.
type layout struct {
	width, height       float64 // of the plot
	left, right         float64 // x of the edges of the SVG
	top, bottom         float64 // space above and below the plot
	gridLeft, gridRight float64 // x of the ends of grid lines
	textX               float64 // x of the texts of Y
	textY               float64 // distance of the texts of X from the plot
	radius              float64 // of a dot

	// Labels have this class and room. Their characters are this large on a phone, and
	// smaller elsewhere.
	label                      string
	room                       box
	charWidth, ascent, descent float64
}

var layouts = map[Kind]layout{
	Lines: {
		width: 572, height: 220, left: -56, right: 584, top: 14, bottom: 26, gridRight: 584,
		textX: -8, textY: 18, radius: 3,
	},
	Steps: {
		width: 640, height: 160, left: -40, right: 646, top: 34, bottom: 34, gridRight: 640,
		textX: -10, textY: 28, radius: 4, room: box{0, 0, 640, 194}, charWidth: 15, ascent: 20, descent: 4,
	},
	Dots: {
		width: 576, height: 280, left: -44, right: 596, top: 30, bottom: 50, gridLeft: -10, gridRight: 586,
		textX: -16, textY: 30, radius: 5, label: "name", room: box{-10, 0, 596, 360}, charWidth: 7.2, ascent: 10, descent: 3,
	},
	spark: {width: 64, height: 16, right: 68, top: 4, bottom: 4, radius: 3},
}

const (
	legendLine        = 20.0
	highlightedRadius = 7.0
)

// dot is a point as it is drawn.
type dot struct {
	Point
	x, y         float64
	nextX, nextY float64 // the next dot, or the end of the plot
}

func (d *dot) class() string {
	if d.Highlighted {
		return "here"
	}
	return ""
}

// SVG draws the plot.
func (p *Plot) SVG(class, label string) template.HTML {
	l := layouts[p.Kind]
	base := l.top + l.height
	height := base + l.bottom
	if p.Legend {
		height += legendLine*float64((len(p.Series)+1)/2) + 10
	}
	x := func(value float64) float64 { return round(p.X.share(value) * l.width) }
	y := func(value float64) float64 { return round(base - p.Y.share(value)*l.height) }
	d := newDrawing(class, label, l.left, l.right-l.left, height)
	for i, tick := range p.Y.Ticks {
		if at := y(tick.At); p.Kind != Steps || i == 0 {
			d.add("line", "", "x1", l.gridLeft, "x2", l.gridRight, "y1", at, "y2", at)
		}
		d.text(tick.Text, "end", l.textX, y(tick.At), "dy", 4.0)
	}
	for i, tick := range p.X.Ticks {
		side := "middle"
		switch {
		case p.Kind == Dots:
		case i == 0:
			side = ""
		case i == len(p.X.Ticks)-1:
			side = "end"
		}
		d.text(tick.Text, side, x(tick.At), base+l.textY)
	}
	var lines [][]dot
	for i, s := range p.Series {
		if len(s.Points) == 0 {
			continue
		}
		line := make([]dot, len(s.Points))
		nextX, nextY := l.width, y(s.Points[len(line)-1].Y)
		for j, point := range slices.Backward(s.Points) {
			line[j] = dot{point, x(point.X), y(point.Y), nextX, nextY}
			nextX, nextY = line[j].x, line[j].y
		}
		p.drawSeries(d, &l, i, line)
		lines = append(lines, line)
		if p.Legend && s.Name != "" {
			left, top := float64(i%2)*l.right/2, base+l.bottom+legendLine*float64(i/2)+12
			d.rect("", seriesClass(i), left, top, 12, 12)
			d.text(shorten(s.Name, 30), "", left+18, top+11)
		}
	}
	p.drawLabels(d, &l, lines)
	return d.end()
}

func (p *Plot) drawSeries(d *drawing, l *layout, number int, line []dot) {
	class := ""
	switch p.Kind {
	case Lines:
		class = seriesClass(number)
	case Steps:
		fmt.Fprintf(d, `<g class="%s">`, seriesClass(number))
		defer d.WriteString("</g>")
	case spark:
		defer d.add("circle", "", "cx", l.width, "cy", line[len(line)-1].y, "r", l.radius)
	}
	if p.Kind != Dots {
		d.add("path", "", "class", class, "d", p.path(line, l.width))
	}
	for _, at := range line {
		if at.YText == "" || p.Kind == spark {
			continue
		}
		radius := l.radius
		if at.Highlighted {
			radius = highlightedRadius
		}
		title := tooltip(Title(p.Series[number].Name, at.XText, at.YText), at.Lang)
		d.add("circle", title, "class", join(" ", class, at.class()), "cx", at.x, "cy", at.y, "r", radius)
	}
}

func (p *Plot) path(line []dot, width float64) string {
	format, end := "H%gV%g", fmt.Sprintf("H%g", width)
	if p.Kind == Lines {
		format, end = "L%g %g", ""
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%g %g", line[0].x, line[0].y)
	for _, at := range line[1:] {
		fmt.Fprintf(&path, format, at.x, at.y)
	}
	return path.String() + end
}
