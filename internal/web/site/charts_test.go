package site

import (
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/lang"
)

func TestPriceChart(t *testing.T) {
	// A hundred days: a change on day 50 is drawn in the middle.
	c := newPriceChart(lang.French, []historyEntry{
		{At: "2026-01-01", Price: "10 €/mois"},
		{At: "2026-01-11", Price: "10 €/mois"}, // the score changed
		{At: "2026-02-20", Price: "40,00 €/mois"},
		{At: "2026-03-01", Price: "99 €/an"}, // not comparable
		{At: "2026-03-22", Price: "20 €/mois"},
	}, "mois", "2026-04-11")
	if want := "M0 154H320V34H512V114H640"; c.Lines[0].Line != want {
		t.Errorf("got line %s, want %s", c.Lines[0].Line, want)
	}
	points := []point{{X: 0, Y: 154, At: "2026-01-01", Value: "10 €/mois", Text: "10 €"}, {X: 320, Y: 34, At: "2026-02-20", Value: "40 €/mois", Text: "40 €"}, {X: 512, Y: 114, At: "2026-03-22", Value: "20 €/mois", Text: "20 €"}}
	if !slices.Equal(c.Lines[0].Points, points) || c.Base != 194 || c.First != "2026-01-01" || c.Last != "2026-04-11" {
		t.Errorf("got %+v, want points %v", c, points)
	}
	// Each price is above its step.
	labels := []stepLabel{{518, 104, "20 €", false}, {0, 144, "10 €", false}, {326, 24, "40 €", false}}
	if !slices.Equal(c.Labels, labels) {
		t.Errorf("got labels %+v, want %+v", c.Labels, labels)
	}
	if newPriceChart(lang.French, []historyEntry{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-01-11", Price: "10 €/mois"}}, "mois", "2026-04-11") != nil {
		t.Error("unchanged price: got a chart, want none")
	}
}

// A change on the last day is still visible, and so is a drop to zero.
func TestPriceChartOfFreeTool(t *testing.T) {
	c := newPriceChart(lang.French, []historyEntry{{At: "2026-01-01", Price: "0.5 €/heure"}, {At: "2026-04-11", Price: "0 €/heure"}}, "heure", "2026-04-11")
	if want := "M0 34H615.4V194H640"; c == nil || c.Lines[0].Line != want {
		t.Errorf("got %+v, want line %s", c, want)
	}
	if !slices.Equal(c.Labels, []stepLabel{{0, 24, "0,50 €", false}}) { // no room for the 0 at the bottom
		t.Errorf("got labels %+v, want 0,50 € only", c.Labels)
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
		c := newPriceChart(lang.French, history, "an", "2026-04-11")
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
			if slices.ContainsFunc(append(taken, lineBoxes(c.Lines[0].Points)...), room.overlaps) {
				t.Errorf("%d: got label %+v over another one or the line, want no overlap", shift, l)
			}
			taken = append(taken, room)
		}
		if len(c.Labels) == 0 || len(c.Labels) > len(c.Lines[0].Points) {
			t.Errorf("%d: got %d labels, want 1 to %d", shift, len(c.Labels), len(c.Lines[0].Points))
		}
	}
}

func TestBands(t *testing.T) {
	for score, want := range map[float64][2]string{ // as a score, and as an obsolescence
		10: {"excellent", "poor"}, 8: {"excellent", "poor"}, 7.9: {"good", "poor"}, 7: {"good", "poor"}, 6.9: {"fair", "poor"},
		5: {"fair", "fair"}, 4.9: {"poor", "fair"}, 3: {"poor", "good"}, 2: {"poor", "excellent"}, 0: {"poor", "excellent"},
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

// A price whose period has no English name stays in French, and is marked.
func TestPrices(t *testing.T) {
	for price, want := range map[string][2]string{
		"19 €/mois":        {"€19/month", "19\u00a0€/mois"},
		"7,50 €/an":        {"€7.50/year", "7,50\u00a0€/an"},
		"0,02 €/image":     {"€0.02/image", "0,02\u00a0€/image"},
		"9 €/lune <b>":     {`<span lang="fr">9 €/lune &lt;b&gt;</span>`, "9\u00a0€/lune &lt;b&gt;"},
		"sur devis & plus": {`<span lang="fr">sur devis &amp; plus</span>`, "sur devis &amp; plus"},
	} {
		if got := [2]string{string(showPrice(lang.English, price)), string(showPrice(lang.French, price))}; got != want {
			t.Errorf("%s: got %q, want %q", price, got, want)
		}
	}
}

// Scores are drawn on the whole scale, one line for each tool, from the first day
// of all.
func TestScoreChart(t *testing.T) {
	history := func(scores ...float64) (h []historyEntry) {
		for i := range scores {
			h = append(h, historyEntry{At: []string{"2026-01-01", "2026-02-20", "2026-03-22"}[i], Price: "1 €/mois", Score: &scores[i]})
		}
		return h
	}
	c := newScoreChart(lang.English, []tool{{Name: "One", History: history(5, 7.5)}, {Name: "Two", History: history(5)}, {Name: "Three"}}, "2026-04-11")
	if c == nil || len(c.Lines) != 2 || c.Highest != "10" {
		t.Fatalf("got %+v, want two lines up to 10", c)
	}
	if got, want := c.Lines[0].Line, "M0 114H320V74H640"; got != want {
		t.Errorf("got line %s, want %s", got, want)
	}
	if got, want := c.Lines[1].Line, "M0 114H640"; got != want {
		t.Errorf("got line %s, want %s", got, want)
	}
	if newScoreChart(lang.English, []tool{{History: history(5)}, {History: history(6)}}, "2026-04-11") != nil {
		t.Error("unchanged scores: got a chart, want none")
	}
}

// Every tool with a score and a price per month has a point, whose name covers
// neither a point nor another name.
func TestScatterChart(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	tools := []tool{{Slug: "none", Name: "No price", Score: number(9)}, {Slug: "untested", Name: "Untested", MonthlyPrice: number(5)}}
	for i := range 40 {
		tools = append(tools, tool{Slug: string(rune('a' + i)), Name: "Tool with a name", Score: number(4 + float64(i%7)/2), MonthlyPrice: number(float64(i * i % 90))})
	}
	c := newScatterChart(lang.English, tools, "c")
	if c == nil || len(c.Points) != 40 || !c.Points[0].Highlighted || !c.Points[0].Labeled || c.Points[1].Highlighted {
		t.Fatalf("got %+v, want 40 points, the highlighted one first", c)
	}
	if got := c.Prices[len(c.Prices)-1].Text; got != "€100" || len(c.Scores) != 4 {
		t.Errorf("got prices up to %s and %d scores, want €100 and 4", got, len(c.Scores))
	}
	var names []box
	for _, p := range c.Points {
		if p.X < scatterLeft || p.X > scatterWidth || p.Y < scatterTop || p.Y > c.Base {
			t.Errorf("got point %+v outside of the chart, want it inside", p)
		}
		if !p.Labeled {
			continue
		}
		room := box{p.LabelX, p.LabelY - nameSize + 3, p.LabelX + nameWidth*float64(len(p.Name)), p.LabelY + 3}
		if p.End {
			room.left, room.right = p.LabelX-nameWidth*float64(len(p.Name)), p.LabelX
		}
		if slices.ContainsFunc(names, room.overlaps) {
			t.Errorf("got %+v over another name, want no overlap", p)
		}
		names = append(names, room)
	}
	if newScatterChart(lang.English, tools[:3], "c") != nil {
		t.Error("one tool: got a chart, want none")
	}
}

// The newest price changes are first, also within a release.
func TestPricesInOrder(t *testing.T) {
	change := func(slug, day string) priceChange {
		c := priceChange{Slug: slug, PublishedAt: "2026-07-07T10:00:00Z", Tool: &tool{Slug: slug}}
		c.Before.Price, c.After.Price, c.After.ChangedAt = "10 €/mois", "12 €/mois", day
		return c
	}
	var slugs []string
	for _, priced := range pricedTools([]priceChange{change("a", "2026-06-15"), change("b", "2026-07-01"), change("c", ""), change("d", "2026-05-01")}, "2026-07-07") {
		slugs = append(slugs, priced.Slug+" "+priced.Direction)
	}
	if got, want := strings.Join(slugs, ", "), "c up, b up, a up, d up"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSentence(t *testing.T) {
	for name, want := range map[string]string{"écran-de_veille": "Écran de veille", "a": "A", "": "", "-": "-"} {
		if got := sentence(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
