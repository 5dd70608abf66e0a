package chart

import (
	"math"
	"slices"
)

// Bars are horizontal bars from zero, with a label before and a number after each.
type Bars []Bar

// Bar is one number. Without a text, it has a place but no bar.
type Bar struct {
	Label, Text string
	Value       float64
	Series      int // color
}

func (bars Bars) draw(d *drawing) {
	const gap, space, thickness, size = 8.0, 24.0, 15.0, 12.0
	low, high, labelWidth, textWidth := 0.0, 0.0, 0.0, 0.0
	for _, b := range bars {
		low, high = min(low, b.Value), max(high, b.Value)
		labelWidth = max(labelWidth, measure(b.Label, size, false))
		textWidth = max(textWidth, measure(b.Text, size, false)+gap)
	}
	labelWidth = min(labelWidth, d.width*0.4)
	left := labelWidth + gap
	if low < 0 {
		left += textWidth // the numbers of bars to the left
	}
	room := d.width - left - textWidth
	if low == high {
		high = 1
	}
	x := func(value float64) float64 { return left + (value-low)/(high-low)*room }
	for i, b := range bars {
		top := space * float64(i)
		baseline := top + space/2 + 4
		from, width := min(x(0), x(b.Value)), max(math.Abs(x(b.Value)-x(0)), 1)
		d.text("ink", "end", size, labelWidth, baseline, shorten(b.Label, size, labelWidth))
		switch {
		case b.Text == "":
			d.text("soft", "", size, x(0)+gap, baseline, "–")
			continue
		case b.Value < 0:
			d.text("soft", "end", size, from-gap+2, baseline, b.Text)
		default:
			d.text("soft", "", size, from+width+gap-2, baseline, b.Text)
		}
		d.rect(seriesColor(b.Series), Title(b.Label, b.Text), area{from, top + (space-thickness)/2, width, thickness})
	}
	d.line("grid", 1, at{x(0), 0}, at{x(0), space * float64(len(bars))})
	d.height = space * float64(len(bars))
}

// Tiles are numbers of any units, each with a label and its change, or "".
type Tiles []Tile

// Tile is one number.
type Tile struct{ Label, Text, Change string }

func (tiles Tiles) draw(d *drawing) {
	const size = 26.0
	columns, width := grid(d.width, len(tiles))
	for row := range slices.Chunk(tiles, columns) {
		lines := 0
		for _, t := range row {
			lines = max(lines, len(wrap(t.Label, tickSize, width)))
		}
		number := d.height + lineSpace*float64(lines) + size + 12
		for i, t := range row {
			x := float64(i) * (width + panelGap)
			d.line("grid", 1, at{x, d.height + 0.5}, at{x + width, d.height + 0.5})
			for j, line := range wrap(t.Label, tickSize, width) {
				d.text("soft", "", tickSize+0.5, x, d.height+18+lineSpace*float64(j), line)
			}
			d.heading(size, x, number, shorten(t.Text, size, width))
			d.text("soft", "", tickSize, x, number+18, shorten(t.Change, tickSize, width))
		}
		d.height = number + 36
	}
}
