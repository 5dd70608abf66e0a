package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// drawing is an unfinished SVG.
type drawing struct{ strings.Builder }

// newDrawing starts an SVG, which is decorative if it has no label.
func newDrawing(class, label string, left, width, height float64) *drawing {
	d := &drawing{}
	accessibility := `aria-hidden="true"`
	if label != "" {
		class = join(" ", "chart", class)
		accessibility = `role="img" aria-label="` + template.HTMLEscapeString(label) + `"`
	}
	fmt.Fprintf(d, `<svg class="%s" viewBox="%g 0 %g %g" %s>`, class, left, width, height, accessibility)
	return d
}

func (d *drawing) end() template.HTML {
	return template.HTML(d.String() + "</svg>") //nolint:gosec // all texts are escaped
}

// add writes an element with pairs of names and values. Values that are an empty
// text are left out.
func (d *drawing) add(element string, content template.HTML, attributes ...any) {
	d.WriteString("<" + element)
	for pair := range slices.Chunk(attributes, 2) {
		switch value := pair[1].(type) {
		case float64:
			fmt.Fprintf(d, ` %s="%g"`, pair[0], round(value))
		case string:
			if value != "" {
				fmt.Fprintf(d, ` %s="%s"`, pair[0], template.HTMLEscapeString(value))
			}
		}
	}
	if content == "" {
		d.WriteString("/>")
	} else {
		fmt.Fprintf(d, ">%s</%s>", content, element)
	}
}

func (d *drawing) rect(title, class string, x, y, width, height float64, attributes ...any) {
	all := []any{"class", class, "x", x, "y", y, "width", width, "height", height}
	d.add("rect", tooltip(title, ""), append(all, attributes...)...)
}

func (d *drawing) text(text, class string, x, y float64, attributes ...any) {
	escaped := template.HTML(template.HTMLEscapeString(text)) //nolint:gosec // escaped
	d.add("text", escaped, append([]any{"class", class, "x", x, "y", y}, attributes...)...)
}

// tooltip returns the content of an element with a title, if there is one.
func tooltip(title string, lang template.HTMLAttr) template.HTML {
	if title == "" {
		return ""
	}
	escaped := template.HTMLEscapeString(title)
	return template.HTML(fmt.Sprintf("<title %s>%s</title>", lang, escaped)) //nolint:gosec // escaped
}

// Title joins the parts of a tooltip that are not empty. They are separated by dots,
// since a colon would need a space before it in French.
func Title(parts ...string) string { return join(" · ", parts...) }

func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// shorten truncates a text to a number of characters.
func shorten(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

func seriesClass(number int) string { return "s" + strconv.Itoa(number) }

func round(n float64) float64 { return math.Round(n*10) / 10 }
