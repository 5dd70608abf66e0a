package chart

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"slices"
	"sort"
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

// png paints the marks in their order. It stops with its context.
func (d *drawing) png(ctx context.Context) ([]byte, error) {
	if d.height > maxPixels/scale || d.width > maxPixels/scale {
		return nil, fmt.Errorf("chart of %g by %g units is too large for a PNG", d.width, d.height)
	}
	c := canvas{image.NewPaletted(image.Rect(0, 0, int(d.width*scale), int(math.Ceil(d.height*scale))), palette())}
	for _, m := range d.marks {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case m.shape == "text":
			start := m.points[0].x - measure(m.text, m.h, m.bold)*map[string]float64{"middle": 0.5, "end": 1}[m.side]
			c.write(m, fixed.Point26_6{X: fixed.Int26_6((start - d.left) * scale * 64), Y: fixed.Int26_6((m.points[0].y - d.top) * scale * 64)})
		case m.color != hidden:
			c.fill(m.color, d.outlines(&m))
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed} // large areas have one color
	err := encoder.Encode(&out, c.img)
	return out.Bytes(), err
}

// levels is how many shades there are between the paper and a color, for smooth edges. A
// palette of them is encoded many times faster than an image with all colors.
const levels = 15

var colorNames = slices.Sorted(maps.Keys(colors))

// palette returns the paper, and the shades of each color after it.
var palette = sync.OnceValue(func() color.Palette {
	paper := rgb("paper")
	all := color.Palette{paper}
	for _, name := range colorNames {
		full := rgb(name)
		for level := 1; level <= levels; level++ {
			mix := func(from, to uint8) uint8 { return uint8((int(from)*(levels-level) + int(to)*level) / levels) }
			all = append(all, color.RGBA{mix(paper.R, full.R), mix(paper.G, full.G), mix(paper.B, full.B), 255})
		}
	}
	return all
})

// rgb returns one of the colors.
func rgb(name string) color.RGBA {
	c := color.RGBA{A: 255}
	_, _ = fmt.Sscanf(colors[name], "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}

// canvas is an image that marks are painted on.
type canvas struct{ img *image.Paletted }

// paint covers an area with a color where a mask, which starts at a point, is set. At the
// edge between two colors, the one with more of the pixel remains.
func (c canvas) paint(name string, to image.Rectangle, mask *image.Alpha, from image.Point) {
	first := 1 + slices.Index(colorNames, name)*levels
	visible := to.Intersect(c.img.Rect)
	for y := visible.Min.Y; y < visible.Max.Y; y++ {
		for x := visible.Min.X; x < visible.Max.X; x++ {
			level := (int(mask.AlphaAt(from.X+x-to.Min.X, from.Y+y-to.Min.Y).A)*levels + 127) / 255
			if level == 0 {
				continue
			}
			pixel := &c.img.Pix[c.img.PixOffset(x, y)]
			before := int(*pixel) - first + 1
			isSame := before > 0 && before <= levels
			if *pixel == 0 || isSame && level > before || !isSame && level > levels/2 {
				*pixel = uint8(first + level - 1)
			}
		}
	}
}

// fill paints the inside of outlines.
func (c canvas) fill(name string, outlines [][]at) {
	low, high := at{math.Inf(1), math.Inf(1)}, at{math.Inf(-1), math.Inf(-1)}
	for _, corners := range outlines {
		for _, p := range corners {
			low, high = at{min(low.x, p.x), min(low.y, p.y)}, at{max(high.x, p.x), max(high.y, p.y)}
		}
	}
	if !(low.x < high.x && low.y < high.y) { // also if a number is not one
		return
	}
	visible := image.Rect(int(max(low.x, 0)), int(max(low.y, 0)), int(min(high.x, maxPixels))+1, int(min(high.y, maxPixels))+1).Intersect(c.img.Rect)
	if visible.Empty() {
		return
	}
	shapes, mask := vector.NewRasterizer(visible.Dx(), visible.Dy()), image.NewAlpha(image.Rect(0, 0, visible.Dx(), visible.Dy()))
	for _, corners := range outlines {
		for i, p := range corners {
			x, y := float32(p.x-float64(visible.Min.X)), float32(p.y-float64(visible.Min.Y))
			if i == 0 {
				shapes.MoveTo(x, y)
			}
			shapes.LineTo(x, y)
		}
		shapes.ClosePath()
	}
	shapes.DrawOp = draw.Src
	shapes.Draw(mask, mask.Rect, image.Opaque, image.Point{})
	c.paint(name, visible, mask, image.Point{})
}

// write paints a text.
func (c canvas) write(m mark, pen fixed.Point26_6) {
	face, before := newFace(m.h*scale, m.bold), rune(-1)
	for _, r := range spaces.Replace(m.text) {
		if before >= 0 {
			pen.X += face.Kern(before, r)
		}
		area, mask, from, advance, _ := face.Glyph(pen, r)
		if glyph, ok := mask.(*image.Alpha); ok {
			c.paint(m.color, area, glyph, from)
		}
		pen.X, before = pen.X+advance, r
	}
}

// outlines returns the outlines of a mark in pixels. All have the same direction, so that
// they may cover each other.
func (d *drawing) outlines(m *mark) (all [][]at) {
	place := m.points[0]
	switch m.shape {
	case "path":
		for i, to := range m.points[1:] {
			all = append(all, stroke(m.points[i], to, m.w/2))
		}
	case "circle":
		all = append(all, stroke(place, place, m.w))
	case "rect":
		all = append(all, []at{place, {place.x + m.w, place.y}, {place.x + m.w, place.y + m.h}, {place.x, place.y + m.h}})
	}
	for _, corners := range all {
		for i, c := range corners {
			corners[i] = at{(c.x - d.left) * scale, (c.y - d.top) * scale}
		}
	}
	return all
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

// maxText is how many characters of a text are drawn: more than a line of any chart has.
// Results of queries may have texts of any length, so they are cut before anything else.
const maxText = 300

func cut(text string) string {
	characters := 0
	for i := range text {
		if characters++; characters > maxText {
			return text[:i] + "…"
		}
	}
	return text
}

// measure returns the width of a text in the font of PNGs. Those of browsers are usually
// narrower, so that texts that fit here fit in a page, too.
func measure(text string, size float64, bold bool) float64 {
	const unit = 64 * 100 // of the face
	return float64(font.MeasureString(newFace(100, bold), spaces.Replace(cut(text)))) / unit * size
}

// shorten truncates a text to a width.
func shorten(text string, size, room float64) string {
	if measure(text, size, false) <= room {
		return text
	}
	letters, room := []rune(cut(text)), room-measure("…", size, false)
	fitting := sort.Search(len(letters), func(i int) bool { return measure(string(letters[:i+1]), size, false) > room })
	return strings.TrimRight(string(letters[:max(fitting, 1)]), "\u00a0 ,") + "…"
}

// wrap breaks a text into lines.
func wrap(text string, size, room float64) (lines []string) {
	for _, word := range strings.Split(cut(text), " ") {
		if last := len(lines) - 1; last >= 0 && measure(lines[last]+" "+word, size, true) <= room {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
