package site

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/web/chart"
)

// pageOf returns a request for a page in a language.
func pageOf(l lang.Language) *request {
	return &request{route: &route{}, lang: l, path: "/tools/plume", query: url.Values{}}
}

// priceChart returns the chart of a tool's prices with a period.
func priceChart(history []historyEntry, period, until string) *figure {
	return newStepChart(pageOf(lang.French), "prices", "Price over time", []tool{{History: history}}, pricesPer(lang.French, period), until)
}

func TestPriceChart(t *testing.T) {
	f := priceChart([]historyEntry{
		{At: "2026-01-01", Price: "10 €/mois"},
		{At: "2026-01-11", Price: "10 €/mois"}, // the score changed
		{At: "2026-02-20", Price: "40,00 €/mois"},
		{At: "2026-03-01", Price: "99 €/an"}, // not comparable
		{At: "2026-03-22", Price: "20 €/mois"},
	}, "mois", "2026-04-11")
	var rows []string
	for _, row := range f.Rows {
		rows = append(rows, row.Day+" "+row.Values[0])
	}
	check.Slices(t, rows, []string{"2026-03-22 20\u00a0€", "2026-02-20 40\u00a0€", "2026-01-01 10\u00a0€"}, "rows")
	if got := string(f.HTML()); !strings.Contains(got, "<title>20\u00a0févr.\u00a02026 · 40\u00a0€</title>") || !strings.Contains(got, ">€/mois</text>") {
		t.Errorf("got %s, want the day and price of each step, and the period", got)
	}
	check.Equal(t, f.File("svg"), "/tools/plume?chart=prices.svg", "want the URL of a file")
	if priceChart([]historyEntry{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-01-11", Price: "10 €/mois"}}, "mois", "2026-04-11") != nil {
		t.Error("unchanged price: got a chart, want none")
	}
}

func TestBands(t *testing.T) {
	for score, want := range map[float64][2]string{ // as a score, and as an obsolescence
		10: {"excellent", "poor"}, 8: {"excellent", "poor"}, 7.9: {"good", "poor"}, 7: {"good", "poor"}, 6.9: {"fair", "poor"},
		5: {"fair", "fair"}, 4.9: {"poor", "fair"}, 3: {"poor", "good"}, 2: {"poor", "excellent"}, 0: {"poor", "excellent"},
	} {
		check.Equal(t, [2]string{band(&score), ageBand(&score)}, want, score)
	}
	check.Equal(t, band(nil), "none")
	check.Equal(t, ageBand(nil), "none")
}

// The headline names the tools with the largest changes, a few if several are the same, and
// those that close.
func TestHeadline(t *testing.T) {
	line := func(name, direction, amount string) changeLine {
		return changeLine{Name: name, Changes: []fieldChange{{delta: delta{Direction: direction, Amount: amount}}}}
	}
	of := func(kind string) int {
		return slices.IndexFunc(changeGroups, func(g groupKind) bool { return g.kind == kind })
	}
	closing := line("L'Encre", "down", "−0.4")
	closing.Mark = "closes on 31 March 2027"
	prices := []changeLine{line("e", "down", "20%"), line("f", "down", "20%"), line("g", "down", "20%"), line("h", "down", "20%"), line("i", "", ""), line("j", "up", "5%")}
	events := editionEvents{Groups: []changeGroup{
		{kind: of(priceChanged), Lines: prices}, {kind: of(scoreChanged), Lines: []changeLine{closing, line("b", "up", "+0.3"), line("c", "up", "+0.3"), line("d", "up", "+0.1")}},
	}}
	check.Equal(t, events.headline(lang.English), "b and c gain the most: +0.3. L’Encre loses the most: −0.4. Largest price increase: j, 5%. L’Encre closes on 31 March 2027.")
	check.Equal(t, (&editionEvents{}).headline(lang.English), "")
	many := editionEvents{Groups: []changeGroup{{kind: of(toolUpdated), Lines: slices.Repeat([]changeLine{{Name: "k", Mark: "closes on 31 March 2027"}}, 4)}}}
	check.Equal(t, many.headline(lang.English), "", "four tools that close")
}

// The ranking on a tool's page has the first tools of its category and those beside it. Equal
// scores share a place, and tools that are not tested have none.
func TestStandings(t *testing.T) {
	var tools []tool
	for i, score := range []float64{9, 8, 8, 7, 6, 5, 4, 3, 3, 2} {
		tools = append(tools, tool{Slug: fmt.Sprint(i), Score: &score})
	}
	tools = append(tools, tool{Slug: "untested"})
	for slug, want := range map[string]string{
		"0": "1:0 2:1 2:2 4:3 5:4 6:5 7:6", "7": "1:0 2:1 2:2 4:3 5:4 6:5 7:6 8:7 8:8", "9": "1:0 2:1 2:2 4:3 5:4 6:5 7:6 8:8 10:9",
		"untested": "1:0 2:1 2:2 4:3 5:4 6:5 7:6", "of the next page": "1:0 2:1 2:2 4:3 5:4 6:5 7:6 60:of the next page",
	} {
		shown := &tool{Slug: slug, Category: category{Tools: tools}}
		if slug == "of the next page" {
			shown.Rank = &rank{Position: 60}
		}
		var got []string
		for _, s := range shown.standings() {
			got = append(got, fmt.Sprintf("%d:%s", s.Position, s.Slug))
		}
		check.Equal(t, strings.Join(got, " "), want, slug)
	}
}

// A bar is as long as its share of the largest change, on the side of its direction.
func TestChangeBar(t *testing.T) {
	check.Contains(t, string(changeBar(delta{Direction: "down", Better: true, size: 5}, 10)), `class="bar-of-change better"`)
	check.Contains(t, string(changeBar(delta{Direction: "down", Better: true, size: 5}, 10)), `<rect x="16" y="2" width="16" `)
	check.Contains(t, string(changeBar(delta{Direction: "up", size: 10}, 10)), `worse" viewBox="0 0 64 12" preserveAspectRatio="none" aria-hidden="true"><path d="M32 0V12" vector-effect="non-scaling-stroke"/><rect x="32" y="2" width="32" `)
}

// Text from the catalog cannot leave the example.
func TestShowJSON(t *testing.T) {
	const response = `{"name":"<b>: \"x\",","tagline":"a : b","score":8.1,"avis_url":null,"data":[]}`
	want := "{\n  <i>&#34;name&#34;</i>: &#34;&lt;b&gt;: \\&#34;x\\&#34;,&#34;,\n  <i>&#34;tagline&#34;</i>: <span lang=\"fr\">&#34;a : b&#34;</span>,\n" +
		"  <i>&#34;score&#34;</i>: <b>8.1</b>,\n  <i>&#34;avis_url&#34;</i>: <b>null</b>,\n  <i>&#34;data&#34;</i>: []\n}"
	check.Equal(t, string(showJSON(lang.English, []byte(response))), want)
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
		check.Equal(t, [2]string{string(formatPrice(lang.English, price, false)), string(formatPrice(lang.French, price, false))}, want, price)
	}
}

// Scores are drawn on an axis around them, one line for each tool, from the first day
// of all.
func TestScoreChart(t *testing.T) {
	history := func(scores ...float64) (h []historyEntry) {
		for i := range scores {
			h = append(h, historyEntry{At: []string{"2026-01-01", "2026-02-20", "2026-03-22"}[i], Price: "1 €/mois", Score: &scores[i]})
		}
		return h
	}
	scoreChart := func(tools ...tool) *figure {
		return newStepChart(pageOf(lang.English), "scores", "Score over time", tools, scores, "2026-04-11")
	}
	f := scoreChart(tool{Name: "One", History: history(5, 7.5)}, tool{Name: "None"}, tool{Name: "Three", History: history(5)})
	plot := f.Content.(chart.Plots)[0]
	if plot.Y.From != 5 || plot.Y.To != 8 || len(plot.Series) != 2 || plot.Series[1].Name != "Three" {
		t.Errorf("got %+v, want two lines from 5 to 8", plot)
	}
	if got := string(f.HTML()); !strings.Contains(got, "<title>One · 20\u00a0Feb\u00a02026 · 7.5</title>") || strings.Contains(got, "None") {
		t.Errorf("got %s, want two lines", got)
	}
	check.Equal(t, scoreChart(tool{History: history(5)}, tool{History: history(6)}), nil, "unchanged scores: chart")
}

// Every tool has a point. Of many, those that no other one beats have a name.
func TestMarket(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	var tools []tool
	for i := range 639 {
		tools = append(tools, tool{Slug: fmt.Sprint("t", i), Name: fmt.Sprint("Tool ", i), Score: number(4 + float64(i%7)/2), MonthlyPrice: number(float64(1 + i*i%90))})
	}
	tools[5] = tool{Slug: "best", Name: "Best", Score: number(9), MonthlyPrice: number(50)}
	tools[6] = tool{Slug: "cheap", Name: "Cheap", Score: number(7.1), MonthlyPrice: number(0)}
	f := newMarket(pageOf(lang.English), tools, 639, "t3")
	points := f.Content.(chart.Plots)[0].Series[0].Points
	if len(points) != 639 || len(f.Rows) != 639 || strings.Count(string(f.HTML()), "<circle") != 2*639 {
		t.Errorf("got %d points and %d rows, want all 639 on both drawings", len(points), len(f.Rows))
	}
	var named []string
	for i, p := range points {
		if p.Label != "" {
			named = append(named, p.Label)
		}
		if cheaperAndBetter := slices.ContainsFunc(points, func(o chart.Point) bool { return o.X < p.X && o.Y > p.Y }); i > 0 && p.Label != "" && cheaperAndBetter {
			t.Errorf("got %s named, want only tools that no other one beats", p.Text)
		}
	}
	if named[0] != "Tool 3" || points[0].Color != "" || points[1].Color != "soft" || named[1] != "Best" || named[len(named)-1] != "Cheap" {
		t.Errorf("got names %q, want the highlighted tool, then the best for their price", named)
	}
	if len(f.Notes) != 2 || !strings.HasPrefix(f.Notes[1], "All 639 tools are shown.") {
		t.Errorf("got notes %q, want that all tools are shown", f.Notes)
	}
	if f := newMarket(pageOf(lang.English), tools, 700, ""); f.Notes[0] != "639 of 700 tools, those with the highest scores." {
		t.Errorf("got notes %q, want the limit", f.Notes)
	}
	check.Equal(t, newMarket(pageOf(lang.English), tools[:1], 1, ""), nil, "one tool: chart")
}

// The table has all numbers, newest first and with as many decimals. A missing number is
// a gap of the line.
func TestDrawTimes(t *testing.T) {
	var numbers chart.Table
	numbers.Unit = chart.Score
	for i, number := range []float64{7, 0, 7.25, 7.5} {
		value := &number
		if number == 0 {
			value = nil
		}
		numbers.Add(chart.Period(lang.English, fmt.Sprintf("2026-0%d-01", i+1)), "", value)
	}
	f := newFigure(pageOf(lang.English), "scores", "Average score", "Day", "Average score")
	plot := f.drawTimes(&numbers, "2026-06-30")[0]
	if got, want := strings.ReplaceAll(fmt.Sprint(f.Rows), "\u00a0", " "), "[{1 Apr 2026 2026-04-01 [7.50]} {1 Mar 2026 2026-03-01 [7.25]} {1 Feb 2026 2026-02-01 [–]} {1 Jan 2026 2026-01-01 [7.00]}]"; got != want {
		t.Errorf("got rows %s, want %s", got, want)
	}
	if got := plot.Series[0].Points; len(got) != 3 || !got[1].Gap || got[2].Gap || plot.X.To != chart.Time(parseDay("2026-06-30")) {
		t.Errorf("got %+v, want a gap before the second point, up to the end of the catalog", got)
	}
	var many chart.Table // small multiples are in the order of the table, and those that ended are last
	for i, name := range []string{"A", "Ended", "C", "D", "E", "F"} {
		value := float64(i)
		many.Add(chart.Period(lang.English, "2026-01-01"), name, &value)
		if name != "Ended" {
			many.Add(chart.Period(lang.English, "2026-02-01"), name, &value)
		}
	}
	f = newFigure(pageOf(lang.French), "category-prices", "Average price per month by category", "Day")
	var order []string
	for _, plot := range f.drawTimes(&many, "2026-06-30") {
		order = append(order, plot.Heading)
	}
	check.Slices(t, order, []string{"A", "C", "D", "E", "F", "Ended"}, "panels")
	check.Contains(t, f.Notes[0], "comptent pour 0\u00a0€", "note about free tools")
	if f.drawTimes(&chart.Table{}, "2026-06-30") != nil {
		t.Error("no numbers: got something to draw, want nothing")
	}
}

// A comparison of prices that changed on different days shows all of them on each day.
func TestUnchangedValues(t *testing.T) {
	one, two := tool{Name: "One", History: []historyEntry{{At: "2026-01-01", Price: "10 €/mois"}, {At: "2026-03-01", Price: "240 €/an"}}}, tool{Name: "Two", History: []historyEntry{{At: "2026-02-01", Price: "19,90 €/mois"}}}
	f := newStepChart(pageOf(lang.English), "prices", "Price per month over time", []tool{one, two}, monthlyPrices(lang.English), "2026-04-11")
	if got, want := strings.ReplaceAll(fmt.Sprint(f.Columns, f.Rows), "\u00a0", " "), "[From One Two] [{1 Mar 2026 2026-03-01 [€20.00 €19.90]} {1 Feb 2026 2026-02-01 [€10.00 €19.90]} {1 Jan 2026 2026-01-01 [€10.00 –]}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(f.HTML()); strings.Count(got, `class="hidden"`) != 4 {
		t.Errorf("got %s, want visible dots only where a price changed", got)
	}
}

// A number of retired tools that falls is explained where it does.
func TestRetiredToolsFall(t *testing.T) {
	var v trendsView
	v.Feed.UpdatedAt = "2026-11-10"
	if err := json.Unmarshal([]byte(`{"Releases": {"Nodes": [{"Date": "2026-11-10", "Stats": {"ToolsRetired": 10}}, {"Date": "2026-10-13", "Stats": {"ToolsRetired": 12}}, {"Date": "2026-09-08", "Stats": {"ToolsRetired": 11}}]}}`), &v); err != nil {
		t.Fatal(err)
	}
	v.draw(pageOf(lang.English))
	f := v.Catalog[len(v.Catalog)-1]
	plot := f.Content.(chart.Plots)[0]
	if len(plot.Remarks) != 1 || plot.Remarks[0].Text != "−2" || plot.Remarks[0].X != chart.Time(parseDay("2026-11-10")) || len(f.Notes) != 2 || !strings.Contains(f.Notes[1], "falls") || !strings.Contains(string(f.HTML()), ">−2</text>") {
		t.Errorf("got remarks %+v and notes %q, want −2 on 10 November", plot.Remarks, f.Notes)
	}
}

// Retirements of a long time are counted by year, including years without any, up to
// the end of the catalog.
func TestRetirementsByYear(t *testing.T) {
	var v retiredToolsView
	if err := json.Unmarshal([]byte(`{"Feed": {"UpdatedAt": "2025-02-01"}, "RetirementGroups": [{"Period": "2021-03", "Reason": "mort", "Count": 2}, {"Period": "2021-11", "Reason": "mort", "Count": 1},
		{"Period": "2023-01", "Reason": "acquis", "Count": 9}, {"Period": "2024-05", "Reason": "mort", "Count": 4}]}`), &v); err != nil {
		t.Fatal(err)
	}
	r := pageOf(lang.English)
	r.query = url.Values{"reason": {"mort"}}
	v.prepareChart(r)
	if got, want := fmt.Sprint(v.Chart.Rows), "[{2025  [0]} {2024  [4]} {2023  [0]} {2022  [0]} {2021  [3]}]"; got != want || v.Chart.Columns[0] != "Year" {
		t.Errorf("got %s by %s, want %s by year", got, v.Chart.Columns[0], want)
	}
	if got := string(v.Chart.HTML()); !strings.Contains(got, "<title>2021 · 3</title>") || !strings.Contains(got, "<title>2025 · 0</title>") {
		t.Errorf("got %s, want a column for each year", got)
	}
	check.Equal(t, v.Chart.File("png"), "/tools/plume?chart=retirements.png&reason=mort", "want the filters in the URL of the file")
}
