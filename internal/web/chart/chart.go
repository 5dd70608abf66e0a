// Package chart draws the charts of the catalog's pages and of saved queries. Callers
// put their numbers in a Table, which has Plots and the same values as a table, or in
// Bars or Tiles. A chart becomes marks of a drawing once, and these become an SVG in a
// page, or a file: an SVG that needs nothing else, or a PNG.
//
// Start with Table. Points and axes are in units of the data, so another kind of axis
// only needs another function that returns an Axis, as Numbers and Dates do.
package chart

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Chart is a chart with the texts that it needs.
type Chart struct {
	Content
	Title string   // what it shows, for screen readers and in files
	Notes []string // what it leaves out, or what might mislead
	Half  bool     // it takes at most half of a page, as on a phone
}

// Content is what a chart shows.
type Content interface {
	// draw adds marks to a drawing and sets its height.
	draw(d *drawing)
}

// The widths of drawings, at which texts have their size in pixels. On phones, small multiples are
// in two columns.
const full, wide, medium, large, half, narrow = 960.0, 720.0, 540.0, 480.0, 360.0, 320.0

// version is a drawing for windows that have at least a width, and how wide it is at most on a
// page, as the style sheet says.
type version struct {
	class               string
	width, window, most float64
}

// versions returns the drawings for a page. Their texts would be too large or too small on
// other screens, and those with room show more of small multiples in a row; the style sheet
// shows one of them.
func (c *Chart) versions() []version {
	plots, isPlots := c.Content.(Plots)
	all := []version{{"chart wide-only", wide, 736, 832}, {"chart narrow-only", narrow, 320, 704}}
	if !isPlots {
		all[1].width = half
	}
	switch {
	case c.Half:
		return []version{{"chart half-only", half, 320, 400}, {"chart full-only", large, 1056, 608}}
	case !isPlots || plots.Points() <= maxDots*len(plots): // others would make pages too large
		all[1].most = 400
		all = append(all, version{"chart medium-only", medium, 480, 648}, version{"chart full-only", full, 1056, 1200})
	case len(plots) > 1:
		all = append(all, version{"chart full-only", full, 1056, 1200})
	}
	return all
}

// HTML draws a chart of the catalog.
func (c *Chart) HTML() template.HTML {
	drawn, _ := c.Draw(context.Background()) // fails only if it is canceled
	return drawn
}

// Draw draws all versions of the chart.
func (c *Chart) Draw(ctx context.Context) (all template.HTML, err error) {
	for _, v := range c.versions() {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		all += c.svg(v.class, v.width)
	}
	return all, nil
}

// FrameHeight returns how high a frame has to be to show the chart below a heading and a caption
// and above a credit: in windows of any width, in pixels, and in CSS by the width of its container,
// with a step for each drawing.
func (c *Chart) FrameHeight(heading, caption, credit string) (highest int, css string) {
	textsHeight := func(room float64) int { // as in the style sheet
		lines := func(text string, size float64) int { return len(wrap(text, size, room)) }
		height := 56 + 23*lines(heading, 18.5) + 26*lines(caption, 15) + 23*lines(credit, 14)
		for _, note := range c.Notes {
			height += 16 + 24*lines(note, 14)
		}
		return height
	}
	const step = 8 // between the widths at which texts are wrapped
	all, last := c.versions(), 0
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(a.window, b.window) })
	for i, v := range all {
		d := &drawing{width: v.width}
		c.draw(d)
		full := v.most + 32
		end := full + step
		if i+1 < len(all) {
			end = all[i+1].window
		}
		height := 0
		for window := v.window; window < end; window += step {
			drawn := d.height / v.width * (min(window+step, end, full) - 32)
			height = max(height, textsHeight(window-32)+int(math.Ceil(drawn)))
		}
		switch change := height - last; {
		case i == 0:
			css = fmt.Sprintf("%dpx", height)
		case change > 0:
			css += fmt.Sprintf(" + clamp(0px, (100cqw - %gpx)*999, %dpx)", v.window-1, change)
		case change < 0:
			css += fmt.Sprintf(" - clamp(0px, (100cqw - %gpx)*999, %dpx)", v.window-1, -change)
		}
		highest, last = max(highest, height), height
	}
	return highest, "calc(" + css + ")"
}

func (c *Chart) svg(class string, width float64) template.HTML {
	d := &drawing{width: width}
	c.draw(d)
	attributes := fmt.Sprintf(`class="%s" role="img" aria-label="%s"`, class, template.HTMLEscapeString(c.Title))
	return template.HTML(d.svg(attributes, false)) //nolint:gosec // all texts are escaped
}

// drawing has marks, in the order in which they cover each other.
type drawing struct {
	left, top, width, height float64
	marks                    []mark
	isSmall                  bool // a single plot is low
}

// mark is a line, a circle, a rectangle or a text.
type mark struct {
	shape      string // name of the SVG element
	color      string // key of colors
	title      string // what is shown about it on hover and focus
	points     []at   // the line, or the place of the others
	w, h       float64
	text, side string // side is the SVG's text-anchor
	bold       bool
}

type at struct{ x, y float64 }

func (d *drawing) line(color string, width float64, points ...at) {
	d.marks = append(d.marks, mark{shape: "path", color: color, w: width, points: points})
}

func (d *drawing) circle(color, title string, center at, radius float64) {
	d.marks = append(d.marks, mark{shape: "circle", color: color, title: cut(title), w: radius, points: []at{center}})
}

func (d *drawing) rect(color, title string, r area) {
	d.marks = append(d.marks, mark{shape: "rect", color: color, title: cut(title), w: r.w, h: r.h, points: []at{{r.x, r.y}}})
}

func (d *drawing) text(color, side string, size, x, y float64, text string) {
	if text != "" {
		d.marks = append(d.marks, mark{shape: "text", color: color, side: side, h: size, text: cut(text), points: []at{{x, y}}})
	}
}

func (d *drawing) heading(size, x, y float64, text string) {
	d.text("ink", "", size, x, y, text)
	d.marks[len(d.marks)-1].bold = true
}

// hidden is the color of marks that only show something on hover and focus.
const hidden = "hidden"

// colors are those of the light theme, for files. In pages, the style sheet has them
// for both themes; a test compares them.
var colors = map[string]string{
	"paper": "#ffffff", "ink": "#1b1f1c", "soft": "#585e58", "grid": "#e2dfd6",
	"excellent": "#0b6b50", "good": "#48690d", "fair": "#8a5600", "poor": "#a3241b",
	"s0": "#0b6b50", "s1": "#a8480f", "s2": "#3f51a8", "s3": "#856900", "s4": "#8c2f6f",
}

// MaxLines is how many lines share a plot: as many as there are colors.
const MaxLines = 5

func seriesColor(number int) string { return fmt.Sprint("s", number%MaxLines) }

// svg returns the drawing with the attributes of its root. In a file, marks have their
// own colors and size, and nothing is hidden.
func (d *drawing) svg(attributes string, file bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg %s viewBox="%g %g %g %g">`, attributes, d.left, round(d.top), d.width, round(d.height))
	if file {
		fmt.Fprintf(&out, `<rect x="%g" y="%g" width="%g" height="%g" fill="%s"/>`, d.left, round(d.top), d.width, round(d.height), colors["paper"])
	}
	for _, m := range d.marks {
		paint, x, y := fmt.Sprintf(`class="%s"`, m.color), round(m.points[0].x), round(m.points[0].y)
		switch {
		case file && m.color == hidden:
			continue
		case file && m.shape == "path":
			paint = fmt.Sprintf(`fill="none" stroke="%s"`, colors[m.color])
		case file:
			paint = fmt.Sprintf(`fill="%s"`, colors[m.color])
		}
		fmt.Fprintf(&out, "<%s %s", m.shape, paint)
		switch m.shape {
		case "path":
			fmt.Fprintf(&out, ` stroke-width="%g" d="M%g %g`, m.w, x, y)
			for _, p := range m.points[1:] {
				fmt.Fprintf(&out, "L%g %g", round(p.x), round(p.y))
			}
			out.WriteByte('"')
		case "circle":
			fmt.Fprintf(&out, ` cx="%g" cy="%g" r="%g"`, x, y, m.w)
		case "rect":
			fmt.Fprintf(&out, ` x="%g" y="%g" width="%g" height="%g" rx="1.5"`, x, y, round(m.w), round(m.h))
		case "text":
			fmt.Fprintf(&out, ` x="%g" y="%g" font-size="%g"`, x, y, m.h)
			if m.side != "" {
				fmt.Fprintf(&out, ` text-anchor="%s"`, m.side)
			}
			if m.bold {
				out.WriteString(` font-weight="600"`)
			}
		}
		out.WriteByte('>')
		if m.title != "" {
			fmt.Fprintf(&out, "<title>%s</title>", template.HTMLEscapeString(m.title))
		}
		fmt.Fprintf(&out, "%s</%s>", template.HTMLEscapeString(m.text), m.shape)
	}
	return out.String() + "</svg>"
}
