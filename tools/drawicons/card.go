package main

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// The size that Open Graph recommends.
const (
	cardWidth, cardHeight = 1200, 630
	margin                = 80
)

// drawCard draws what the service offers, and bars like those of a ranking. The
// service's name is a setting, and sites show it beside the image.
func drawCard() *image.RGBA {
	c := image.NewRGBA(image.Rect(0, 0, cardWidth, cardHeight))
	top, bottom := color.RGBA{0x0d, 0x78, 0x5a, 0xff}, color.RGBA{0x06, 0x3d, 0x2e, 0xff}
	for y := range cardHeight {
		shade := mix(top, bottom, float64(y)/cardHeight)
		for x := range cardWidth {
			c.SetRGBA(x, y, shade)
		}
	}
	drawRanking(c)

	const mark = 88
	fill(c, rectangle{margin, 72, mark, mark, mark * 7. / 32}, white)
	drawBars(c, margin, 72, mark, green)
	write(c, gobold.TTF, "Tested AI tools,", margin, 267, 92, white)
	write(c, gobold.TTF, "as data", margin, 371, 92, white)
	write(c, goregular.TTF, "REST · GraphQL · MCP · Atom", margin, 541, 32, color.RGBA{0xc4, 0xe6, 0xda, 0xff})
	return c
}

// drawRanking draws bars that grow towards the right edge. The best is gold.
func drawRanking(c *image.RGBA) {
	const bars, width, gap = 11, 36, 15
	base := color.RGBA{0x0b, 0x6b, 0x50, 0xff}
	light := color.RGBA{0x7f, 0xdc, 0xbd, 0xff}
	left := float64(cardWidth - margin - bars*width - (bars-1)*gap)
	for i := range bars {
		share := float64(i) / (bars - 1)
		// A little unevenness makes it look like data.
		height := 56 + 330*math.Pow(share, 1.5) + 14*math.Sin(float64(i)*2.1)
		ink := mix(base, light, .15+.6*share)
		if i == bars-1 {
			ink, height = color.RGBA{0xf3, 0xc4, 0x4e, 0xff}, 410
		}
		fill(c, rectangle{left + float64(i*(width+gap)), cardHeight - margin + 10 - height, width, height, 7}, ink)
	}
}

func mix(from, to color.RGBA, share float64) color.RGBA {
	between := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*share)) }
	return color.RGBA{between(from.R, to.R), between(from.G, to.G), between(from.B, to.B), 0xff}
}

// write draws a line of text whose capital letters are centered at y.
func write(c *image.RGBA, ttf []byte, text string, x, y int, size float64, ink color.Color) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		panic(err) // the fonts are part of the program
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic(err)
	}
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y+int(size*.36))}
	d.DrawString(text)
}
