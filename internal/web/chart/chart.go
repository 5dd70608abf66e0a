// Package chart draws the charts of the catalog's pages and of saved queries. Callers
// put their numbers in a Table, which has Plots and the same values as a table, or in
// Bars or Tiles. A chart becomes marks of a drawing once, and these become an SVG in a
// page, or a file: an SVG that needs nothing else, or a PNG.
//
// Start with Table. Points and axes are in units of the data, so another kind of axis
// only needs another function that returns an Axis, as Numbers and Dates do.
package chart

import (
	"context"
	"fmt"
	"html/template"
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

// The widths of drawings, at which texts have their size in pixels.
const full, wide, narrow = 960.0, 720.0, 360.0

// HTML draws a chart of the catalog.
func (c *Chart) HTML() template.HTML {
	drawn, _ := c.Draw(context.Background()) // fails only if it is canceled
	return drawn
}

// Draw draws the chart for a page. It is drawn again for screens on which its texts would
// be too large or too small, and small multiples for those with room for more of them; the
// style sheet shows one of the drawings.
func (c *Chart) Draw(ctx context.Context) (all template.HTML, err error) {
	type version struct {
		class string
		width float64
	}
	versions := []version{{"chart wide-only", wide}, {"chart narrow-only", narrow}}
	if plots, ok := c.Content.(Plots); ok && len(plots) > 1 {
		versions = append(versions, version{"chart full-only", full})
	}
	if c.Half {
		versions = []version{{"chart", narrow}}
	}
	for _, v := range versions {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		all += c.svg(v.class, v.width)
	}
	return all, nil
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
