package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/vector"
)

var (
	green = color.RGBA{0x0b, 0x6b, 0x50, 0xff}
	white = color.RGBA{0xff, 0xff, 0xff, 0xff}
)

// favicon returns the mark in the sizes of browser tabs and shortcuts.
func favicon() []byte {
	sizes := []int{16, 32, 48}
	var directory, images bytes.Buffer
	put := func(values ...any) {
		for _, value := range values {
			_ = binary.Write(&directory, binary.LittleEndian, value) // a buffer takes everything
		}
	}
	put(uint16(0), uint16(1), uint16(len(sizes))) // the type is icon
	start := 6 + 16*len(sizes)
	for _, size := range sizes {
		image := encode(drawIcon(size, true))
		put(uint8(size), uint8(size), uint8(0), uint8(0), uint16(1), uint16(32), uint32(len(image)), uint32(start+images.Len()))
		images.Write(image)
	}
	return append(directory.Bytes(), images.Bytes()...)
}

// drawIcon draws the mark in a square, as icon.svg has it.
func drawIcon(size int, rounded bool) *image.RGBA {
	c := image.NewRGBA(image.Rect(0, 0, size, size))
	radius := 0.0
	if rounded {
		radius = float64(size) * 7 / 32
	}
	fill(c, rectangle{0, 0, float64(size), float64(size), radius}, green)
	drawBars(c, 0, 0, size, white)
	return c
}

// drawBars draws the three bars of the mark in a square. Their edges are on whole
// pixels, so that small icons are sharp.
func drawBars(c draw.Image, x, y, size int, ink color.Color) {
	unit := float64(size) / 32
	width := 2 * int(3*unit) // even, so that the bars are centered
	gap := max(1, int((20*unit-3*float64(width))/2+.5))
	left := x + (size-3*width-2*gap)/2
	bottom := y + int(25*unit+.5)
	radius := unit * .8
	if size < 32 {
		radius = 0
	}
	for i, height := range []float64{9, 18, 12} {
		h := int(height*unit + .5)
		fill(c, rectangle{float64(left + i*(width+gap)), float64(bottom - h), float64(width), float64(h), radius}, ink)
	}
}

// rectangle has rounded corners.
type rectangle struct{ x, y, width, height, radius float64 }

// fill paints a rectangle with smooth edges.
func fill(c draw.Image, r rectangle, ink color.Color) {
	bounds := image.Rect(int(r.x), int(r.y), int(math.Ceil(r.x+r.width)), int(math.Ceil(r.y+r.height)))
	path := vector.NewRasterizer(bounds.Dx(), bounds.Dy())
	r.x, r.y = r.x-float64(bounds.Min.X), r.y-float64(bounds.Min.Y)
	const arc = .5523 // makes a Bézier curve a quarter of a circle
	left, top, right, bottom, in := r.x, r.y, r.x+r.width, r.y+r.height, r.radius*(1-arc)
	move := func(x, y float64) { path.MoveTo(float32(x), float32(y)) }
	line := func(x, y float64) { path.LineTo(float32(x), float32(y)) }
	curve := func(ax, ay, bx, by, x, y float64) {
		path.CubeTo(float32(ax), float32(ay), float32(bx), float32(by), float32(x), float32(y))
	}
	move(left+r.radius, top)
	line(right-r.radius, top)
	curve(right-in, top, right, top+in, right, top+r.radius)
	line(right, bottom-r.radius)
	curve(right, bottom-in, right-in, bottom, right-r.radius, bottom)
	line(left+r.radius, bottom)
	curve(left+in, bottom, left, bottom-in, left, bottom-r.radius)
	line(left, top+r.radius)
	curve(left, top+in, left+in, top, left+r.radius, top)
	path.ClosePath()
	path.Draw(c, bounds, image.NewUniform(ink), image.Point{})
}

func encode(i image.Image) []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, i); err != nil {
		panic(err) // only for impossible sizes
	}
	return out.Bytes()
}
