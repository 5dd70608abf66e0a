package chart

import (
	"slices"
	"unicode/utf8"
)

type box struct{ left, top, right, bottom float64 }

func (b box) overlaps(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

func (b box) contains(other box) bool {
	return b.left <= other.left && b.top <= other.top && b.right >= other.right && b.bottom >= other.bottom
}

// place is where a label can be.
type place struct {
	x, y float64 // of the baseline
	side string  // "end" if the text ends at x instead of starting there
}

// drawLabels puts each label where it covers neither a line or dot nor another
// label. Labels that fit nowhere are left out, since the table has all values. The
// current values of steps are placed first, then the oldest.
func (p *Plot) drawLabels(d *drawing, l *layout, lines [][]dot) {
	var taken []box
	var dots []dot
	for _, line := range lines {
		if last := len(line) - 1; p.Kind == Steps {
			line = slices.Concat(line[last:], line[:last])
		}
		for _, at := range line {
			dots, taken = append(dots, at), append(taken, p.covered(l, at)...)
		}
	}
	for _, at := range dots {
		for _, to := range p.places(l, at) {
			room := l.box(to, at.Label)
			if at.Label != "" && l.room.contains(room) && !slices.ContainsFunc(taken, room.overlaps) {
				taken = append(taken, room)
				d.text(at.Label, join(" ", l.label, to.side, at.class()), to.x, to.y)
				break
			}
		}
	}
}

// box returns the area that a text covers.
func (l *layout) box(at place, text string) box {
	width := l.charWidth * float64(utf8.RuneCountInString(text))
	if at.side == "end" {
		at.x -= width
	}
	return box{at.x, at.y - l.ascent, at.x + width, at.y + l.descent}
}

// covered returns the area of a dot, or of a step and of the line to the next one.
func (p *Plot) covered(l *layout, at dot) []box {
	const margin = 2.0
	if p.Kind == Dots {
		return []box{{at.x - l.radius, at.y - l.radius, at.x + l.radius, at.y + l.radius}}
	}
	return []box{
		{at.x, at.y - margin, at.nextX, at.y + margin},
		{at.nextX - margin, min(at.y, at.nextY), at.nextX + margin, max(at.y, at.nextY)},
	}
}

// places returns where a label can be, best first: beside its dot, or above or below
// its step.
func (p *Plot) places(l *layout, at dot) (places []place) {
	if p.Kind == Dots {
		const gap = 9.0
		for _, dy := range []float64{4, -8, 16} {
			places = append(places, place{at.x + gap, at.y + dy, ""}, place{at.x - gap, at.y + dy, "end"})
		}
		return places
	}
	const distance, padding = 10.0, 6.0
	left, right := at.x, at.nextX
	if left > 0 {
		left += padding
	}
	if right < l.width {
		right -= padding
	}
	above, below := at.y-distance, at.y+distance+l.ascent
	return []place{{left, above, ""}, {right, above, "end"}, {left, below, ""}, {right, below, "end"}}
}
