package site

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// label is a price that is written beside its step.
type label struct {
	X, Y float64 // of the text's line
	Text string
	End  bool // the text ends there, and else begins
}

// The room that a label takes where letters are largest, which is on a phone.
const (
	letterWide  = 15.0
	letterHigh  = 20.0
	letterBelow = 4.0  // what hangs below the line
	labelGap    = 10.0 // from a step to the line of a label above it
	labelSide   = 6.0  // from where a step begins or ends
)

// box is a part of the picture that is taken.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

// labelSteps writes each price above its step, or else below it, where it hides
// neither the line nor another price. Those that nowhere do are left to the
// table: today's price has the first choice, and then the oldest.
func labelSteps(corners []corner, base float64) (labels []label) {
	taken := boxesOf(corners)
	last := len(corners) - 1
	for i := range corners {
		at := (i + last) % len(corners)
		from, left, right := corners[at], 0.0, stepsWidth
		if at > 0 {
			left = from.X + labelSide
		}
		if at < last {
			right = corners[at+1].X - labelSide
		}
		text, _, _ := strings.Cut(from.Price, "/") // the period is said once
		wide := letterWide * float64(utf8.RuneCountInString(text))
		above, below := from.Y-labelGap, from.Y+labelGap+letterHigh
		for _, l := range []label{{left, above, text, false}, {right, above, text, true}, {left, below, text, false}, {right, below, text, true}} {
			room := box{l.X, l.Y - letterHigh, l.X + wide, l.Y + letterBelow}
			if l.End {
				room.left, room.right = l.X-wide, l.X
			}
			inside := room.left >= 0 && room.top >= 0 && room.right <= stepsWidth && room.bottom <= base
			if inside && !slices.ContainsFunc(taken, room.meets) {
				labels, taken = append(labels, l), append(taken, room)
				break
			}
		}
	}
	return labels
}

// boxesOf are what the line takes.
func boxesOf(corners []corner) (taken []box) {
	const thick = 2.0
	for i, c := range corners {
		to := stepsWidth
		if i+1 < len(corners) {
			next := corners[i+1]
			to = next.X
			taken = append(taken, box{to - thick, min(c.Y, next.Y), to + thick, max(c.Y, next.Y)})
		}
		taken = append(taken, box{c.X, c.Y - thick, to, c.Y + thick})
	}
	return taken
}
