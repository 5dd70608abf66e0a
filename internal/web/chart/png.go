package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// The rasterizer is golang.org/x/image/vector, which the project already uses for its
// icons: it fills shapes, and charts need nothing else. Libraries that read SVG or have
// their own canvas would be larger than all charts. The font is Go's, because the
// result must be the same on every server.
const (
	scale     = 2.0   // pixels per unit
	maxPixels = 4_000 // on each side
)

func (d *drawing) png() ([]byte, error) {
	if d.height > maxPixels/scale || d.width > maxPixels/scale {
		return nil, fmt.Errorf("chart of %g by %g units is too large for a PNG", d.width, d.height)
	}
	img := image.NewRGBA(image.Rect(0, 0, int(d.width*scale), int(math.Ceil(d.height*scale))))
	draw.Draw(img, img.Bounds(), image.NewUniform(rgb("paper")), image.Point{}, draw.Src)
	for _, m := range d.marks {
		x, y := m.points[0].x, m.points[0].y
		switch {
		case m.color == hidden:
		case m.shape == "path":
			for i, to := range m.points[1:] {
				fill(img, m.color, stroke(m.points[i], to, m.w/2))
				fill(img, m.color, disk(to, m.w/2))
			}
			fill(img, m.color, disk(m.points[0], m.w/2))
		case m.shape == "circle":
			fill(img, m.color, disk(m.points[0], m.w))
		case m.shape == "rect":
			fill(img, m.color, []at{{x, y}, {x + m.w, y}, {x + m.w, y + m.h}, {x, y + m.h}})
		case m.shape == "text":
			if err := write(img, &m); err != nil {
				return nil, err
			}
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// rgb returns one of the colors.
func rgb(name string) color.Color {
	c := color.RGBA{A: 255}
	_, _ = fmt.Sscanf(colors[name], "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}

// fill fills a polygon.
func fill(img draw.Image, name string, corners []at) {
	low, high := at{math.Inf(1), math.Inf(1)}, at{math.Inf(-1), math.Inf(-1)}
	for _, c := range corners {
		low, high = at{min(low.x, c.x), min(low.y, c.y)}, at{max(high.x, c.x), max(high.y, c.y)}
	}
	area := image.Rect(int(low.x*scale), int(low.y*scale), int(high.x*scale)+2, int(high.y*scale)+2).Intersect(img.Bounds())
	if area.Empty() {
		return
	}
	r := vector.NewRasterizer(area.Dx(), area.Dy())
	for i, c := range corners {
		x, y := float32(c.x*scale)-float32(area.Min.X), float32(c.y*scale)-float32(area.Min.Y)
		if i == 0 {
			r.MoveTo(x, y)
		}
		r.LineTo(x, y)
	}
	r.ClosePath()
	r.Draw(img, area, image.NewUniform(rgb(name)), image.Point{})
}

// stroke returns the outline of a straight line.
func stroke(from, to at, half float64) []at {
	length := math.Hypot(to.x-from.x, to.y-from.y)
	if length == 0 {
		return disk(from, half)
	}
	x, y := (to.y-from.y)/length*half, -(to.x-from.x)/length*half
	return []at{{from.x + x, from.y + y}, {to.x + x, to.y + y}, {to.x - x, to.y - y}, {from.x - x, from.y - y}}
}

func disk(center at, radius float64) (outline []at) {
	const corners = 32
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		outline = append(outline, at{center.x + radius*cos, center.y + radius*sin})
	}
	return outline
}

// fonts returns the regular and the bold font, which are parsed on first use.
var fonts = sync.OnceValue(func() (parsed [2]*sfnt.Font) {
	for i, file := range [][]byte{goregular.TTF, gobold.TTF} {
		parsed[i], _ = opentype.Parse(file) // part of the program
	}
	return parsed
})

func fontOf(bold bool) *sfnt.Font {
	if bold {
		return fonts()[1]
	}
	return fonts()[0]
}

// plainSpaces replaces characters that the font does not have.
var plainSpaces = strings.NewReplacer("\u202f", "\u00a0")

func write(img draw.Image, m *mark) error {
	face, err := opentype.NewFace(fontOf(m.bold), &opentype.FaceOptions{Size: m.h * scale, DPI: 72})
	if err != nil {
		return err
	}
	defer func() { _ = face.Close() }()
	pen := font.Drawer{Dst: img, Src: image.NewUniform(rgb(m.color)), Face: face}
	text, x := plainSpaces.Replace(m.text), fixed.Int26_6(m.points[0].x*scale*64)
	switch m.side {
	case "middle":
		x -= pen.MeasureString(text) / 2
	case "end":
		x -= pen.MeasureString(text)
	}
	pen.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(m.points[0].y * scale * 64)}
	pen.DrawString(text)
	return nil
}

// measure returns the width of a text in the font of PNGs. Those of browsers are
// usually narrower, so that texts that fit here fit in a page, too.
func measure(text string, size float64, bold bool) (width float64) {
	var buffer sfnt.Buffer
	f := fontOf(bold)
	for _, r := range plainSpaces.Replace(text) {
		glyph, err := f.GlyphIndex(&buffer, r)
		if err != nil {
			continue
		}
		if advance, err := f.GlyphAdvance(&buffer, glyph, fixed.I(100), font.HintingNone); err == nil {
			width += float64(advance) / 64
		}
	}
	return width * size / 100
}

// shorten truncates a text to a width.
func shorten(text string, size, room float64) string {
	if measure(text, size, false) <= room {
		return text
	}
	runes := []rune(text)
	for len(runes) > 1 && measure(string(runes)+"…", size, false) > room {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), "\u00a0 ,") + "…"
}

// wrap breaks a text into lines.
func wrap(text string, size, room float64) (lines []string) {
	for _, word := range strings.Split(text, " ") {
		if last := len(lines) - 1; last >= 0 && measure(lines[last]+" "+word, size, true) <= room {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
