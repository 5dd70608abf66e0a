package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"slices"
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
// icons: it fills outlines, and charts need nothing else. Libraries that read SVG have no
// texts or are larger than all charts. The font is Go's, because the result must be the
// same on every server.
const (
	scale     = 2.0   // pixels per unit
	maxPixels = 4_000 // on each side
)

// png fills all shapes of a color at once, in the order in which colors appear, and
// writes texts over them.
func (d *drawing) png() ([]byte, error) {
	if d.height > maxPixels/scale || d.width > maxPixels/scale {
		return nil, fmt.Errorf("chart of %g by %g units is too large for a PNG", d.width, d.height)
	}
	img := image.NewRGBA(image.Rect(0, 0, int(d.width*scale), int(math.Ceil(d.height*scale))))
	draw.Draw(img, img.Rect, rgb("paper"), image.Point{}, draw.Src)
	shapes, painted := vector.NewRasterizer(img.Rect.Dx(), img.Rect.Dy()), []string{hidden}
	for _, first := range d.marks {
		if first.shape == "text" || slices.Contains(painted, first.color) {
			continue
		}
		shapes.Reset(img.Rect.Dx(), img.Rect.Dy())
		for _, m := range d.marks {
			if m.color == first.color {
				d.outline(shapes, &m)
			}
		}
		shapes.Draw(img, img.Rect, rgb(first.color), image.Point{})
		painted = append(painted, first.color)
	}
	for _, m := range d.marks {
		start := m.points[0].x - measure(m.text, m.h, m.bold)*map[string]float64{"middle": 0.5, "end": 1}[m.side]
		pen := font.Drawer{Dst: img, Src: rgb(m.color), Face: newFace(m.h*scale, m.bold)}
		pen.Dot = fixed.Point26_6{X: fixed.Int26_6((start - d.left) * scale * 64), Y: fixed.Int26_6((m.points[0].y - d.top) * scale * 64)}
		pen.DrawString(spaces.Replace(m.text))
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// rgb returns one of the colors.
func rgb(name string) *image.Uniform {
	c := color.RGBA{A: 255}
	_, _ = fmt.Sscanf(colors[name], "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return image.NewUniform(c)
}

// outline adds the outline of a mark. All have the same direction, so that they may
// cover each other.
func (d *drawing) outline(shapes *vector.Rasterizer, m *mark) {
	add := func(corners ...at) {
		for i, c := range corners {
			x, y := float32((c.x-d.left)*scale), float32((c.y-d.top)*scale)
			if i == 0 {
				shapes.MoveTo(x, y)
			}
			shapes.LineTo(x, y)
		}
		shapes.ClosePath()
	}
	place := m.points[0]
	switch m.shape {
	case "path":
		for i, to := range m.points[1:] {
			add(stroke(m.points[i], to, m.w/2)...)
		}
	case "circle":
		add(stroke(place, place, m.w)...)
	case "rect":
		add(place, at{place.x + m.w, place.y}, at{place.x + m.w, place.y + m.h}, at{place.x, place.y + m.h})
	}
}

// stroke returns the outline of a straight line with round ends. One without a length
// is a disk.
func stroke(from, to at, half float64) (outline []at) {
	const corners = 32
	angle := math.Atan2(to.y-from.y, to.x-from.x) + math.Pi/2
	for i := range corners + 1 {
		sin, cos := math.Sincos(angle + 2*math.Pi*float64(i)/corners)
		outline = append(outline, at{from.x + half*cos, from.y + half*sin})
		if i == corners/2 {
			from = to
		}
	}
	return outline
}

// fonts returns the regular and the bold font, which are parsed on first use.
var fonts = sync.OnceValue(func() map[bool]*sfnt.Font {
	regular, _ := opentype.Parse(goregular.TTF) // part of the program
	bold, _ := opentype.Parse(gobold.TTF)
	return map[bool]*sfnt.Font{false: regular, true: bold}
})

// newFace returns a font in a size. Only one goroutine may use it.
func newFace(size float64, bold bool) font.Face {
	face, _ := opentype.NewFace(fonts()[bold], &opentype.FaceOptions{Size: size, DPI: 72})
	return face
}

// spaces replaces what the fonts do not have.
var spaces = strings.NewReplacer("\u202f", "\u00a0")

// measure returns the width of a text in the font of PNGs. Those of browsers are
// usually narrower, so that texts that fit here fit in a page, too.
func measure(text string, size float64, bold bool) float64 {
	return float64(font.MeasureString(newFace(100, bold), spaces.Replace(text))) / 64 * size / 100
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
