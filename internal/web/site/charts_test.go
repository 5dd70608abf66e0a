package site

import (
	"slices"
	"testing"
	"time"

	"palmares/internal/core/lang"
)

func TestPriceChart(t *testing.T) {
	// A hundred days: a change on day 50 is drawn in the middle.
	c := newPriceChart([]historyEntry{
		{At: "2026-01-01", Price: "10 €/mois"},
		{At: "2026-01-11", Price: "10 €/mois"}, // the score changed
		{At: "2026-02-20", Price: "40,00 €/mois"},
		{At: "2026-03-01", Price: "99 €/an"}, // not comparable
		{At: "2026-03-22", Price: "20 €/mois"},
	}, "mois", "2026-04-11")
	if want := "M0 154H320V34H512V114H640"; c.Line != want {
		t.Errorf("got line %s, want %s", c.Line, want)
	}
	points := []point{{0, 154, "2026-01-01", "10 €/mois"}, {320, 34, "2026-02-20", "40,00 €/mois"}, {512, 114, "2026-03-22", "20 €/mois"}}
	if !slices.Equal(c.Points, points) || c.Base != 194 || c.First != "2026-01-01" || c.Last != "2026-04-11" || c.Period != "mois" {
		t.Errorf("got %+v, want points %v", c, points)
	}
	// Each price is above its step.
	labels := []priceLabel{{518, 104, "20 €", false}, {0, 144, "10 €", false}, {326, 24, "40,00 €", false}}
	if !slices.Equal(c.Labels, labels) {
		t.Errorf("got labels %+v, want %+v", c.Labels, labels)
	}
	if newPriceChart([]historyEntry{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-01-11", Price: "10 €/mois"}}, "mois", "2026-04-11") != nil {
		t.Error("unchanged price: got a chart, want none")
	}
}

// A change on the last day is still visible, and so is a drop to zero.
func TestPriceChartOfFreeTool(t *testing.T) {
	c := newPriceChart([]historyEntry{{At: "2026-01-01", Price: "0.5 €/heure"}, {At: "2026-04-11", Price: "0 €/heure"}}, "heure", "2026-04-11")
	if want := "M0 34H615.4V194H640"; c == nil || c.Line != want {
		t.Errorf("got %+v, want line %s", c, want)
	}
	if !slices.Equal(c.Labels, []priceLabel{{0, 24, "0.5 €", false}}) { // no room for the 0 at the bottom
		t.Errorf("got labels %+v, want 0.5 € only", c.Labels)
	}
}

// No label covers another one or the line, or leaves the chart.
func TestPriceLabelsDoNotOverlap(t *testing.T) {
	days := []string{"2026-01-01", "2026-01-05", "2026-01-09", "2026-02-01", "2026-02-20", "2026-03-01", "2026-03-03", "2026-03-22", "2026-04-10"}
	for shift := range days {
		var history []historyEntry
		for i, day := range days {
			price := []string{"10 €/an", "1234,56 €/an", "40 €/an", "700 €/an"}[(i*i+shift)%4]
			history = append(history, historyEntry{At: day, Price: price})
		}
		c := newPriceChart(history, "an", "2026-04-11")
		var taken []box
		for _, l := range c.Labels {
			width := charWidth * float64(len([]rune(l.Text)))
			room := box{l.X, l.Y - charHeight, l.X + width, l.Y + charDescent}
			if l.End {
				room.left, room.right = l.X-width, l.X
			}
			if room.left < 0 || room.right > c.Width || room.top < 0 || room.bottom > c.Base {
				t.Errorf("%d: got label %+v outside the chart, want it inside", shift, l)
			}
			if slices.ContainsFunc(append(taken, lineBoxes(c.Points)...), room.overlaps) {
				t.Errorf("%d: got label %+v over another one or the line, want no overlap", shift, l)
			}
			taken = append(taken, room)
		}
		if len(c.Labels) == 0 || len(c.Labels) > len(c.Points) {
			t.Errorf("%d: got %d labels, want 1 to %d", shift, len(c.Labels), len(c.Points))
		}
	}
}

func TestBands(t *testing.T) {
	for score, want := range map[float64][2]string{ // as a score, and as an obsolescence
		10: {"excellent", "poor"}, 8: {"excellent", "poor"}, 7.9: {"good", "poor"}, 6.5: {"good", "poor"}, 6.4: {"fair", "poor"},
		5: {"fair", "fair"}, 4.9: {"poor", "fair"}, 3.5: {"poor", "good"}, 2: {"poor", "excellent"}, 0: {"poor", "excellent"},
	} {
		if got := [2]string{band(&score), ageBand(&score)}; got != want {
			t.Errorf("%v: got %v, want %v", score, got, want)
		}
	}
	if band(nil) != "none" || ageBand(nil) != "none" {
		t.Errorf("got %s and %s without a score, want none", band(nil), ageBand(nil))
	}
}

func TestSparkline(t *testing.T) {
	day := func(date string) time.Time {
		at, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for want, samples := range map[string][]sample{
		"":                        nil,
		"M0 12H64":                {{day("2026-01-01"), 7}},
		"M0 20H29.1V4H64":         {{day("2026-01-01"), 7}, {day("2026-02-20"), 9}},
		"M0 12H29.1V4H58.2V20H64": {{day("2026-01-01"), 7}, {day("2026-02-20"), 8}, {day("2026-04-11"), 6}},
	} {
		if got := newSparkline(samples, "2026-04-11"); got.Path != want {
			t.Errorf("%v: got %s, want %s", samples, got.Path, want)
		}
	}
}

func TestBiggestMovers(t *testing.T) {
	score := func(value float64) struct{ Score *float64 } { return struct{ Score *float64 }{&value} }
	tested := &tool{}
	changes := []scoreChange{ // newest first
		{Slug: "small", Before: score(7), After: score(7.1), Tool: tested},
		{Slug: "large", Before: score(7), After: score(5.5), Tool: tested},
		{Slug: "small", Before: score(2), After: score(7), Tool: tested}, // replaced by a newer change
		{Slug: "new", After: score(9), Tool: tested},                     // was not tested before
		{Slug: "retired", Before: score(1), After: score(9)},
	}
	var got []string
	for _, m := range biggestMovers(lang.French, changes, "2026-11-01") {
		got = append(got, m.Change)
	}
	if want := []string{"−1,5", "+0,1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Text from the catalog cannot leave the example.
func TestShowJSON(t *testing.T) {
	const response = `{"name":"<b>: \"x\",","tagline":"a : b","score":8.1,"avis_url":null,"data":[]}`
	want := "{\n  <i>&#34;name&#34;</i>: &#34;&lt;b&gt;: \\&#34;x\\&#34;,&#34;,\n  <i>&#34;tagline&#34;</i>: <span lang=\"fr\">&#34;a : b&#34;</span>,\n" +
		"  <i>&#34;score&#34;</i>: <b>8.1</b>,\n  <i>&#34;avis_url&#34;</i>: <b>null</b>,\n  <i>&#34;data&#34;</i>: []\n}"
	if got := string(showJSON(lang.English, []byte(response))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A line break never separates French punctuation from its word.
func TestTypeset(t *testing.T) {
	if got, want := typeset("L'atelier : « oui » ?"), "L’atelier\u00a0: «\u00a0oui\u00a0»\u00a0?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
