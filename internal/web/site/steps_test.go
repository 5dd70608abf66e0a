package site

import (
	"slices"
	"testing"
)

func TestSteps(t *testing.T) {
	// A hundred days: what changes on the fiftieth does so in the middle.
	s := drawSteps([]moment{
		{At: "2026-01-01", Price: "10 €/mois"},
		{At: "2026-01-11", Price: "10 €/mois"}, // the score changed
		{At: "2026-02-20", Price: "40,00 €/mois"},
		{At: "2026-03-01", Price: "99 €/an"}, // stands in the table alone
		{At: "2026-03-22", Price: "20 €/mois"},
	}, "mois", "2026-04-11")
	if want := "M0 154H320V34H512V114H640"; s.Line != want {
		t.Errorf("the line is %s, not %s", s.Line, want)
	}
	corners := []corner{{0, 154, "2026-01-01", "10 €/mois"}, {320, 34, "2026-02-20", "40,00 €/mois"}, {512, 114, "2026-03-22", "20 €/mois"}}
	if !slices.Equal(s.Corners, corners) || s.Base != 194 || s.First != "2026-01-01" || s.Last != "2026-04-11" || s.Period != "mois" {
		t.Errorf("drawn: %+v", s)
	}
	// Each price at its own step: the last above it, beside the way down.
	labels := []label{{518, 104, "20 €", false}, {0, 144, "10 €", false}, {326, 24, "40,00 €", false}}
	if !slices.Equal(s.Labels, labels) {
		t.Errorf("labels: %+v, not %+v", s.Labels, labels)
	}
	if drawSteps([]moment{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-01-11", Price: "10 €/mois"}}, "mois", "2026-04-11") != nil {
		t.Error("a price that never changed is drawn")
	}
}

// A free tool has steps, too, and what ended today is still seen.
func TestStepsToNothing(t *testing.T) {
	s := drawSteps([]moment{{At: "2026-01-01", Price: "0.5 €/heure"}, {At: "2026-04-11", Price: "0 €/heure"}}, "heure", "2026-04-11")
	if want := "M0 34H615.4V194H640"; s == nil || s.Line != want {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Labels, []label{{0, 24, "0.5 €", false}}) { // the base says nothing else
		t.Errorf("labels: %+v", s.Labels)
	}
}

// However many prices there are, none is written over another, over the line,
// or out of the picture; and today's is told.
func TestLabelsDoNotCollide(t *testing.T) {
	days := []string{"2026-01-01", "2026-01-05", "2026-01-09", "2026-02-01", "2026-02-20", "2026-03-01", "2026-03-03", "2026-03-22", "2026-04-10"}
	for shift := range days {
		var history []moment
		for i, day := range days {
			price := []string{"10 €/an", "1234,56 €/an", "40 €/an", "700 €/an"}[(i*i+shift)%4]
			history = append(history, moment{At: day, Price: price})
		}
		s := drawSteps(history, "an", "2026-04-11")
		var taken []box
		for _, l := range s.Labels {
			wide := letterWide * float64(len([]rune(l.Text)))
			room := box{l.X, l.Y - letterHigh, l.X + wide, l.Y + letterBelow}
			if l.End {
				room.left, room.right = l.X-wide, l.X
			}
			if room.left < 0 || room.right > s.Width || room.top < 0 || room.bottom > s.Base {
				t.Errorf("%d: %+v is out of the picture", shift, l)
			}
			if slices.ContainsFunc(append(taken, boxesOf(s.Corners)...), room.meets) {
				t.Errorf("%d: %+v is written over something", shift, l)
			}
			taken = append(taken, room)
		}
		if len(s.Labels) == 0 || len(s.Labels) > len(s.Corners) {
			t.Errorf("%d: %d labels", shift, len(s.Labels))
		}
	}
}
