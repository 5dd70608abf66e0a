package site

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// priceChart returns the chart of a tool's prices with a period.
func priceChart(history []historyEntry, period, until string) *chart.Plot {
	return newStepChart(lang.French, []tool{{History: history}}, priceIn(lang.French, period), 0, until)
}

// checkSVG checks that a chart contains some elements.
func checkSVG(t *testing.T, c chart.Chart, elements ...string) {
	t.Helper()
	got := string(c.SVG("", "Chart"))
	for _, element := range elements {
		if !strings.Contains(got, element) {
			t.Errorf("got %s, want %s", got, element)
		}
	}
}

func TestPriceChart(t *testing.T) {
	// A hundred days: a change on day 50 is drawn in the middle.
	c := priceChart([]historyEntry{
		{At: "2026-01-01", Price: "10 €/mois"},
		{At: "2026-01-11", Price: "10 €/mois"}, // the score changed
		{At: "2026-02-20", Price: "40,00 €/mois"},
		{At: "2026-03-01", Price: "99 €/an"}, // not comparable
		{At: "2026-03-22", Price: "20 €/mois"},
	}, "mois", "2026-04-11")
	checkSVG(t, c, `<path d="M0 154H320V34H512V114H640"/>`, `<line x1="0" x2="640" y1="194" y2="194"/>`,
		`cx="0" cy="154" r="4"><title >1er janv. 2026 · 10 €/mois<`, `cx="320" cy="34" r="4"><title >20 févr. 2026 · 40 €/mois<`,
		`cx="512" cy="114" r="4"><title >22 mars 2026 · 20 €/mois<`,
		`<text x="0" y="222">1er janv. 2026<`, `<text class="end" x="640" y="222">11 avr. 2026<`,
		// Each price is above its step.
		`<text x="518" y="104">20 €</text><text x="0" y="144">10 €</text><text x="326" y="24">40 €</text>`)
	var rows []string
	for _, p := range c.Series[0].Points {
		rows = append(rows, p.Day()+" "+p.YText)
	}
	if want := []string{"2026-01-01 10 €/mois", "2026-02-20 40 €/mois", "2026-03-22 20 €/mois"}; !slices.Equal(rows, want) {
		t.Errorf("got rows %q, want %q", rows, want)
	}
	if priceChart([]historyEntry{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-01-11", Price: "10 €/mois"}}, "mois", "2026-04-11") != nil {
		t.Error("unchanged price: got a chart, want none")
	}
}

// A change on the last day is still visible, and so is a drop to zero.
func TestPriceChartOfFreeTool(t *testing.T) {
	c := priceChart([]historyEntry{{At: "2026-01-01", Price: "0.5 €/heure"}, {At: "2026-04-11", Price: "0 €/heure"}}, "heure", "2026-04-11")
	checkSVG(t, c, `<path d="M0 34H615.4V194H640"/>`, `<text x="0" y="24">0,50 €</text>`)
	if strings.Contains(string(c.SVG("", "Chart")), ">0 €</text>") {
		t.Error("got a label for 0 €, want none, since there is no room at the bottom")
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
	for _, m := range biggestMovers(changes) {
		got = append(got, signed(lang.French, m.Change))
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
	scoreChart := func(tools ...tool) *chart.Plot {
		return newStepChart(lang.English, tools, scoreIn(lang.English), highestScore, "2026-04-11")
	}
	c := scoreChart(tool{Name: "One", History: history(5, 7.5)}, tool{Name: "None"}, tool{Name: "Three", History: history(5)})
	if c == nil || strings.Count(string(c.SVG("", "Chart")), "<path") != 2 {
		t.Fatalf("got %+v, want two lines", c)
	}
	checkSVG(t, c, `<g class="s0"><path d="M0 114H320V74H640"/>`, `<g class="s2"><path d="M0 114H640"/>`, `<title >One · 20 Feb 2026 · 7.5</title>`,
		`<text class="end" x="-10" y="34" dy="4">10</text>`)
	if scoreChart(tool{History: history(5)}, tool{History: history(6)}) != nil {
		t.Error("unchanged scores: got a chart, want none")
	}
}

// Every tool with a score and a price per month has a point, the highlighted one
// first.
func TestMarket(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	tools := []tool{{Slug: "none", Name: "No price", Score: number(9)}, {Slug: "untested", Name: "Untested", MonthlyPrice: number(5)}}
	for i := range 40 {
		tools = append(tools, tool{Slug: string(rune('a' + i)), Name: "Tool with a name", Score: number(4 + float64(i%7)/2), MonthlyPrice: number(float64(i * i % 90))})
	}
	tools[3].Name = "A name that is longer than most"
	f := newMarket(lang.English, tools, "c")
	c := f.Chart.(*chart.Plot)
	points := c.Series[0].Points
	if len(points) != 40 || len(f.Rows) != 40 || !slices.IsSortedFunc(points[1:], func(a, b chart.Point) int { return cmp.Compare(b.Y, a.Y) }) {
		t.Fatalf("got points %+v, want 40, the best ones first after the highlighted one", points)
	}
	for i, p := range points {
		if p.Highlighted != (i == 0) || (p.Label == "") != strings.HasPrefix(p.YText, tools[3].Name) {
			t.Errorf("got point %+v, want a label unless it is too long, and the first highlighted", p)
		}
		if row := f.Rows[i]; p.YText != chart.Title(row.Name, row.Values[1], row.Values[0]) {
			t.Errorf("got row %v, want the values of %+v", row, p)
		}
	}
	if got, want := points[0].YText, "Tool with a name · 5.0 · €4"; got != want {
		t.Errorf("got title %q, want %q", got, want)
	}
	if got := c.X.Ticks[len(c.X.Ticks)-1].Text; got != "€100" || len(c.Y.Ticks) != 4 {
		t.Errorf("got prices up to %s and %d scores, want €100 and 4", got, len(c.Y.Ticks))
	}
	if newMarket(lang.English, tools[:3], "c") != nil {
		t.Error("one tool: got a chart, want none")
	}
}

// The table has all numbers, newest first. Long lines have one dot, at their end.
func TestDrawLines(t *testing.T) {
	for _, count := range []int{2, maxDots + 1, maxDots + 2} {
		f := &figure{Caption: "Scores", Columns: []string{"Release", "Score"}}
		var numbers []*float64
		for i := range count {
			number := float64(i)
			f.Rows, numbers = append(f.Rows, figureRow{Name: fmt.Sprint("day ", i)}), append(numbers, &number)
		}
		numbers[0] = nil
		if !f.drawLines(lang.English, chart.Plain, numbers) {
			t.Fatalf("%d: got nothing to draw, want a line", count)
		}
		newest, oldest := f.Rows[0], f.Rows[count-1]
		if newest.Name != fmt.Sprint("day ", count-1) || newest.Values[0] != fmt.Sprint(count-1) || oldest.Values[0] != noScore {
			t.Errorf("%d: got rows from %v to %v, want the newest first", count, newest, oldest)
		}
		points := count - 1
		if points > maxDots {
			points = 1
		}
		if got := strings.Count(string(f.SVG(f.Class, f.Label)), "<circle"); got != points {
			t.Errorf("%d: got %d dots, want %d", count, got, points)
		}
	}
	one := 1.0
	if f := (&figure{Rows: make([]figureRow, 1)}); f.drawLines(lang.English, chart.Plain, []*float64{&one}) {
		t.Error("one release: got something to draw, want nothing")
	}
}

// Retirements of a long time are counted by year, including years without any.
func TestRetirementsByYear(t *testing.T) {
	var v retiredToolsView
	if err := json.Unmarshal([]byte(`{"RetirementGroups": [{"Period": "2021-03", "Reason": "mort", "Count": 2}, {"Period": "2021-11", "Reason": "mort", "Count": 1},
		{"Period": "2023-01", "Reason": "acquis", "Count": 9}, {"Period": "2024-05", "Reason": "mort", "Count": 4}]}`), &v); err != nil {
		t.Fatal(err)
	}
	v.prepareChart(&request{lang: lang.English, query: url.Values{"reason": {"mort"}}})
	if got, want := fmt.Sprint(v.Chart.Rows), "[{2024  [4]} {2023  [0]} {2022  [0]} {2021  [3]}]"; got != want || v.Chart.Columns[0] != "Year" {
		t.Errorf("got %s by %s, want %s by year", got, v.Chart.Columns[0], want)
	}
	checkSVG(t, v.Chart, `<title >2021 · 3</title>`, `y="20" width="57.6" height="120" rx="2"><title >2024 · 4</title>`)
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
