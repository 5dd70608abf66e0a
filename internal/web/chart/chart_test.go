package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
)

// picture is what an SVG shows.
type picture struct {
	ViewBox string    `xml:"viewBox,attr"`
	Paths   []element `xml:"path"`
	Circles []element `xml:"circle"`
	Rects   []element `xml:"rect"`
	Texts   []element `xml:"text"`

	right, bottom float64
}

type element struct {
	Class  string  `xml:"class,attr"`
	Anchor string  `xml:"text-anchor,attr"`
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	CX     float64 `xml:"cx,attr"`
	CY     float64 `xml:"cy,attr"`
	Width  float64 `xml:"width,attr"`
	Height float64 `xml:"height,attr"`
	Size   float64 `xml:"font-size,attr"`
	D      string  `xml:"d,attr"`
	Title  string  `xml:"title"`
	Text   string  `xml:",chardata"`
}

func parse(t *testing.T, c Content, width float64) (p picture) {
	t.Helper()
	svg := string((&Chart{Content: c, Title: "Title"}).svg("chart", width))
	if err := xml.Unmarshal([]byte(svg), &p); err != nil {
		t.Fatalf("got %v in %s, want an SVG", err, svg)
	}
	if _, err := fmt.Sscanf(p.ViewBox, "0 0 %f %f", &p.right, &p.bottom); err != nil {
		t.Fatal(err)
	}
	p.checkTexts(t)
	return p
}

// checkTexts checks that no text covers another one or leaves the chart.
func (p *picture) checkTexts(t *testing.T) {
	t.Helper()
	for i, text := range p.Texts {
		box := text.box()
		if box.x < -0.5 || box.x+box.w > p.right+0.5 || box.y < 0 || box.y+box.h > p.bottom+0.5 {
			t.Errorf("got text %q at %+v outside of %g by %g, want it inside", text.Text, box, p.right, p.bottom)
		}
		for _, other := range p.Texts[i+1:] {
			if box.overlaps(other.box()) {
				t.Errorf("got %q over %q, want no overlap", text.Text, other.Text)
			}
		}
	}
}

// box returns the area of a text without the space above and below its letters.
func (e *element) box() area {
	box := area{e.X, e.Y - 0.75*e.Size, measure(e.Text, e.Size, false), 0.8 * e.Size}
	switch e.Anchor {
	case "middle":
		box.x -= box.w / 2
	case "end":
		box.x -= box.w
	}
	return box
}

// lines returns the paths and texts of a color.
func (p *picture) of(color string) (paths []element, texts []string) {
	for _, path := range p.Paths {
		if path.Class == color {
			paths = append(paths, path)
		}
	}
	for _, text := range p.Texts {
		if text.Class == color {
			texts = append(texts, text.Text)
		}
	}
	return paths, texts
}

func date(text string) time.Time {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return at
}

// releases are the dates of the demo catalog, which are 28 to 63 days apart.
var releases = []string{"2026-03-03", "2026-04-07", "2026-05-05", "2026-06-09", "2026-07-07", "2026-09-08", "2026-10-13", "2026-11-10"}

func seriesOf(name string, values ...float64) Series {
	s, gap := Series{Name: name}, false
	for i, value := range values {
		if math.IsNaN(value) {
			gap = true
			continue
		}
		at := date(releases[i])
		s.Points = append(s.Points, Point{X: Time(at), Y: value, Gap: gap, Text: fmt.Sprint(name, " · ", value), Label: fmt.Sprint(value)})
		gap = false
	}
	return s
}

func linesOf(all ...Series) Plots {
	plots, _ := NewLines(lang.English, Lines, Dates(lang.English, date(releases[0]), date("2026-11-30")), Count, all)
	return plots
}

// The distances of points are those of their days, and the axis ends with the catalog.
func TestTimeIsToScale(t *testing.T) {
	for _, width := range []float64{narrow, wide} {
		drawn := parse(t, linesOf(seriesOf("", 1, 2, 3, 4, 5, 6, 7, 8)), width)
		first, last := drawn.Circles[0], drawn.Circles[7]
		perDay := (last.CX - first.CX) / date(releases[7]).Sub(date(releases[0])).Hours() * 24
		for i, c := range drawn.Circles {
			if want := first.CX + perDay*date(releases[i]).Sub(date(releases[0])).Hours()/24; math.Abs(c.CX-want) > 0.2 {
				t.Errorf("got release %d at %g, want %g", i, c.CX, want)
			}
		}
		grid, _ := drawn.of("grid")
		var from, y, to float64
		if _, err := fmt.Sscanf(grid[0].D, "M%g %gL%g", &from, &y, &to); err != nil || math.Abs(to-last.CX-20*perDay) > 0.3 {
			t.Errorf("got an axis up to %g, want it to end 20 days after %g", to, last.CX)
		}
	}
}

// Ticks are at round dates, at their place.
func TestDates(t *testing.T) {
	for _, c := range []struct {
		from, to string
		room     float64
		want     string
	}{
		{"2026-03-03", "2026-11-10", 600, "Apr 2026|May|Jun|Jul|Aug|Sep|Oct|Nov"},
		{"2026-03-03", "2026-11-10", 120, "Apr 2026|Jul|Oct"},
		{"2025-03-03", "2026-11-10", 500, "May 2025|Jul|Sep|Nov|Jan 2026|Mar|May|Jul|Sep|Nov"},
		{"2016-03-03", "2026-11-10", 250, "2018|2020|2022|2024|2026"},
		{"2026-11-02", "2026-11-06", 600, "2 Nov 2026|3 Nov 2026|4 Nov 2026|5 Nov 2026|6 Nov 2026"},
		{"2026-10-28", "2026-11-12", 200, "2 Nov 2026|9 Nov 2026"},
		{"2026-11-10", "2026-11-10", 200, "10 Nov 2026|11 Nov 2026"},
	} {
		var got []string
		axis := Dates(lang.English, date(c.from), date(c.to))
		for _, tick := range axis.ticks(c.room) {
			got = append(got, strings.ReplaceAll(tick.text, "\u00a0", " "))
		}
		check.Equal(t, strings.Join(got, "|"), c.want, "%s to %s in %g", c.from, c.to, c.room)
	}
	drawn := parse(t, linesOf(seriesOf("", 1, 2, 3, 4, 5, 6, 7, 8)), wide)
	for _, text := range drawn.Texts {
		if at, err := time.Parse("Jan", strings.Split(text.Text, "\u00a0")[0]); err == nil {
			day := time.Date(2026, at.Month(), 1, 0, 0, 0, 0, time.UTC)
			first, last := drawn.Circles[0].CX, drawn.Circles[7].CX
			want := first + (last-first)*day.Sub(date(releases[0])).Hours()/date(releases[7]).Sub(date(releases[0])).Hours()
			if math.Abs(text.X-want) > 0.3 {
				t.Errorf("got %s at %g, want %g", text.Text, text.X, want)
			}
		}
	}
}

func TestPeriods(t *testing.T) {
	for text, want := range map[string]string{
		"2026": "2026-01-01 2026", "2026-03": "2026-03-01 March 2026", "2026-Q4": "2026-10-01 Q4 2026", "2026-W01": "2025-12-29 week of 29 Dec 2025",
		"2026-W46": "2026-11-09 week of 9 Nov 2026", "2026-11-10": "2026-11-10 10 Nov 2026", "2026-11-10T01:02:03Z": "2026-11-10 10 Nov 2026",
	} {
		slot := Period(lang.English, text)
		check.Equal(t, strings.ReplaceAll(day(slot.From).Format(time.DateOnly)+" "+slot.Text, "\u00a0", " "), want, text)
	}
}

// A line does not cross a missing value, and a value alone is a dot.
func TestGaps(t *testing.T) {
	none := math.NaN()
	drawn := parse(t, linesOf(seriesOf("", 1, 2, none, 4, none, 6, 7, 8)), wide)
	paths, _ := drawn.of("s0")
	if len(paths) != 2 || strings.Count(paths[0].D, "L") != 1 || strings.Count(paths[1].D, "L") != 2 {
		t.Errorf("got %+v, want lines of two and of three points", paths)
	}
	check.Equal(t, len(drawn.Circles), 6, "dots")
	steps, _ := NewLines(lang.English, Steps, Dates(lang.English, date(releases[0]), date("2026-11-30")), Euros, []Series{seriesOf("", 10, 40)})
	drawn = parse(t, steps, narrow)
	paths, _ = drawn.of("s0")
	var x, y [4]float64
	if _, err := fmt.Sscanf(paths[0].D, "M%g %gL%g %gL%g %gL%g %g", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2], &x[3], &y[3]); err != nil || y[0] != y[1] || x[1] != x[2] || y[2] != y[3] {
		t.Errorf("got %s, want steps", paths[0].D)
	}
}

// Labels are at the ends of their lines, in their colors, and never touch.
func TestEndLabels(t *testing.T) {
	all := []Series{seriesOf("Rédaction", 5, 5, 5, 5, 5, 5, 5, 5), seriesOf("Agents", 1, 2, 3, 4, 5, 5, 5, 5.1), seriesOf("Code", 9, 9, 9, 9, 9, 9, 9, 5), seriesOf("Chat", 0, 0, 0, 0, 0, 0, 0, 5), seriesOf("A name that is much too long for its place", 3, 3)}
	for _, width := range []float64{narrow, wide} {
		plots := linesOf(all...)
		drawn := parse(t, plots, width) // which checks for overlaps
		check.Must(t, len(plots), 1, "want one, ranked by the latest value")
		check.Must(t, plots[0].Series[0].Name, "Agents", "want one, ranked by the latest value")
		for i, s := range plots[0].Series {
			_, texts := drawn.of(seriesColor(i))
			if len(texts) != 1 || !strings.HasPrefix(s.Name, strings.TrimSuffix(texts[0], "…")) {
				t.Errorf("got %q in the color of %s, want its name", texts, s.Name)
			}
		}
	}
}

// More lines than colors become small multiples on the same axes, with a limit that is
// stated.
func TestSmallMultiples(t *testing.T) {
	var all []Series
	for i := range 14 {
		all = append(all, seriesOf(fmt.Sprintf("Series %d", i), 100, float64(200+i)))
	}
	plots, note := NewLines(lang.English, Lines, Dates(lang.English, date(releases[0]), date(releases[7])), Count, all)
	if len(plots) != MaxPlots || plots[0].Heading != "Series 13" || fmt.Sprint(note) != "[12 of 14 series, those with the highest latest values.]" {
		t.Errorf("got %d plots from %s, %q, want 12 from the highest", len(plots), plots[0].Heading, note)
	}
	for _, width := range []float64{narrow, wide} {
		drawn := parse(t, plots, width)
		low, high := map[float64]int{}, 0
		for _, c := range drawn.Circles {
			low[c.CX]++
			high++
		}
		if columns, _ := grid(width, len(plots)); len(low) != 2*columns || high != 24 {
			t.Errorf("got dots at %d places, want two in each of %d columns", len(low), columns)
		}
	}
	if plots, note := NewLines(lang.English, Lines, plots[0].X, Count, all[:5]); len(plots) != 1 || note != nil {
		t.Errorf("got %d plots, %q, want five lines in one", len(plots), note)
	}
	if plots, _ := NewLines(lang.English, Columns, plots[0].X, Count, all[:2]); len(plots) != 2 {
		t.Errorf("got %d plots, want columns in plots of their own", len(plots))
	}
}

// Axes have round ticks, whole ones for counts, and say if they do not start at zero.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		unit     Unit
		values   []float64
		fromZero bool
		ticks    string
		caption  string
	}{
		{Count, []float64{1, 2}, false, "0 1 2", ""},
		{Count, []float64{0, 1}, false, "0 1", ""},
		{Count, []float64{41, 48}, false, "40 42 44 46 48", "axis starts at 40"},
		{Count, []float64{41, 48}, true, "0 20 40 60", ""},
		{Count, []float64{0, 0}, true, "0 1", ""},
		{Score, []float64{6.85, 6.99}, false, "6.0 6.5 7.0 7.5", "out of 10 · axis starts at 6.0"},
		{Score, []float64{4.96, 4.97}, false, "4.0 4.5 5.0 5.5", "out of 10 · axis starts at 4.0"},
		{Score, []float64{9.9, 10}, false, "9.0 9.5 10.0", "out of 10 · axis starts at 9.0"},
		{Percent, []float64{12.01, 12.04}, false, "12.0% 12.1%", "axis starts at 12.0%"},
		{Score, []float64{4, 8}, false, "0 2 4 6 8", "out of 10"},
		{Euros, []float64{9.9, 49}, true, "€0 €20 €40 €60", ""},
		{Proportion, []float64{0, 1}, true, "0% 50% 100%", ""},
		{Percent, []float64{-100, -20}, true, "−100% −50% 0%", ""},
		{Number, []float64{-3, 3}, true, "−4 −2 0 2 4", ""},
	} {
		var ticks []string
		axis := Numbers(lang.English, c.unit, c.values, c.fromZero, 4)
		for _, tick := range axis.ticks(100) {
			ticks = append(ticks, tick.text)
		}
		if got := strings.Join(ticks, " "); got != c.ticks || axis.Caption != c.caption {
			t.Errorf("%v: got %q, %q, want %q, %q", c.values, got, axis.Caption, c.ticks, c.caption)
		}
	}
	check.Equal(t, Numbers(lang.French, Score, []float64{6, 7}, false, 4).Caption, "sur 10 · l’axe commence à 6,0", "want it in French")
	drawn := parse(t, linesOf(seriesOf("", 41, 48)), narrow)
	if !slices.ContainsFunc(drawn.Texts, func(e element) bool { return e.Text == "axis starts at 40" }) {
		t.Errorf("got %+v, want the caption of the axis", drawn.Texts)
	}
}

// All labels of a chart have as many decimals.
func TestDecimals(t *testing.T) {
	table, scores := Table{Unit: Score}, []float64{7.6, 7.64}
	for i := range scores {
		table.Add(Period(lang.English, releases[i]), "", &scores[i])
	}
	table.SetTimes(lang.English, date("2026-11-30"))
	check.Equal(t, fmt.Sprint(table.Rows(lang.French, "–")[0].Values, table.Rows(lang.English, "–")[1].Values), "[7,60] [7.64]")
	plots, _ := table.Plots(lang.English)
	if got := plots[0].Series[0].Points[0].Text; !strings.HasSuffix(got, "7.60") {
		t.Errorf("got %s, want two decimals", got)
	}
	for unit, want := range map[Unit]string{Count: "−3", Euros: "−€2.50", Percent: "−2.5%", Proportion: "−250%", Number: "−2.5"} {
		value := -2.5
		if unit == Count {
			value = -3
		}
		check.Equal(t, unit.Format(lang.English, value), want)
	}
}

// Charts side by side have the same height, whatever is written above them, and small
// multiples fill wide pages.
func TestSizes(t *testing.T) {
	plain, remarked := linesOf(seriesOf("", 0, 48)), linesOf(seriesOf("", 41, 48))
	remarked[0].Remarks = []Remark{{remarked[0].Series[0].Points[1].X, "−2"}}
	check.Equal(t, parse(t, plain, narrow).bottom, parse(t, remarked, narrow).bottom, "heights of and")
	for count, want := range map[int]int{1: 4, 6: 4} {
		all := make([]Series, count)
		for i := range all {
			all[i] = seriesOf(fmt.Sprint("Series ", i), 1, 2)
		}
		check.Equal(t, strings.Count(string((&Chart{Content: linesOf(all...)}).HTML()), "<svg"), want, "%d series: drawings", count)
	}
	for part, content := range map[string]Content{"6/40": Bars(slices.Repeat([]Bar{{Label: "a", Text: "1", Value: 1}}, 40)), "2/9": Tiles(slices.Repeat([]Tile{{Label: "a", Text: "1"}}, 9)), "1/9": linesOf(slices.Repeat([]Series{seriesOf("", 1, 2)}, 9)...)} {
		small := string(check.Try((&Chart{Content: content}).File(t.Context(), Small, "")).OK(t))
		check.Contains(t, small, ">"+part+"<")
		var width, height float64
		_, err := fmt.Sscanf(small[strings.Index(small, `width="`):], `width="%f" height="%f"`, &width, &height)
		check.True(t, err == nil && width == 372 && height <= 190, "got a small chart of %g by %g (%v), want at most half as high", width, height, err)
	}
	bars := &Chart{Content: Bars{{Label: "a", Text: "1", Value: 1}, {Label: "b", Text: "2", Value: 2}}}
	low, _ := bars.FrameHeight("Two", "", "")
	if high, _ := bars.FrameHeight("Two", strings.Repeat("word ", 50), ""); low < 50+24+2*24 || high < low+4*25 {
		t.Errorf("got frames of %d and %d pixels, want room for the chart and for lines of text", low, high)
	}
	for count, want := range map[int]int{4: 4, 5: 3, 7: 4, 9: 3, 12: 4} {
		if got, _ := grid(wide, count); got != want {
			t.Errorf("%d panels: got %d in a row, want %d", count, got, want)
		}
		onPhone := parse(t, linesOf(slices.Repeat([]Series{seriesOf("", 1, 2)}, MaxLines+count)...), narrow)
		places := map[float64]bool{}
		for _, c := range onPhone.Circles {
			places[c.CX] = true
		}
		check.Equal(t, len(places), 4, "%d panels on a phone: want two in each row, each with dots at two places", count)
	}
}

// Columns are as wide as their periods, from zero, and a zero is visible.
func TestColumns(t *testing.T) {
	var s Series
	for i, count := range []float64{3, 0, 1} {
		at := date("2026-01-01").AddDate(0, i, 0)
		s.Points = append(s.Points, Point{X: Time(at), End: Time(at.AddDate(0, 1, 0)), Y: count, Text: "text", Label: fmt.Sprint(count)})
	}
	plots, _ := NewLines(lang.English, Columns, Dates(lang.English, date("2026-01-01"), date("2026-04-01")), Count, []Series{s})
	plots[0].Remarks = []Remark{{s.Points[0].X, "first import"}, {s.Points[2].X, "−2"}}
	drawn := parse(t, plots, wide)
	r := drawn.Rects
	if len(r) != 3 || math.Abs(r[0].Height-3*r[2].Height) > 0.2 || r[1].Height != 1 || math.Abs((r[0].Width+1)/(r[1].Width+1)-31.0/28) > 0.01 {
		t.Errorf("got %+v, want heights of 3, 0 and 1 and widths of 31, 28 and 31 days", r)
	}
	check.Equal(t, r[0].Class+" "+r[1].Class, "s0 soft", "colors of 3 and 0")
	for _, rect := range r {
		if math.Abs(rect.Y+rect.Height-r[0].Y-r[0].Height) > 0.2 {
			t.Errorf("got %+v, want all on the axis", r)
		}
	}
	if remark := slices.IndexFunc(drawn.Texts, func(e element) bool { return e.Text == "first import" }); remark < 0 || drawn.Texts[remark].Y > r[0].Y {
		t.Errorf("got %+v, want the remark above the columns", drawn.Texts)
	}
	for i, month := range []string{"Jan\u00a02026", "Feb", "Mar"} {
		name := slices.IndexFunc(drawn.Texts, func(e element) bool { return e.Text == month })
		check.MustTrue(t, name >= 0, "got %+v, want %s", drawn.Texts, month)
		middle := r[i].X + r[i].Width/2
		check.True(t, math.Abs(drawn.Texts[name].X-middle) < 2, "%s: got x %v, want it below its column at %v", month, drawn.Texts[name].X, middle)
	}
	check.True(t, !slices.ContainsFunc(drawn.Texts, func(e element) bool { return e.Text == "Apr" }), "got a month without a column")
}

// Columns of negative numbers are below zero.
func TestNegativeColumns(t *testing.T) {
	var s Series
	for i, change := range []float64{3, -3, 0} {
		at := date("2026-01-01").AddDate(0, i, 0)
		s.Points = append(s.Points, Point{X: Time(at), End: Time(at.AddDate(0, 1, 0)), Y: change, Label: fmt.Sprint(change)})
	}
	plots, _ := NewLines(lang.English, Columns, Dates(lang.English, date("2026-01-01"), date("2026-04-01")), Number, []Series{s})
	drawn := parse(t, plots, wide)
	up, down := drawn.Rects[0], drawn.Rects[1]
	if math.Abs(up.Height-down.Height) > 0.2 || math.Abs(up.Y+up.Height-down.Y) > 0.2 || up.Height < 20 {
		t.Errorf("got %+v and %+v, want the same height above and below zero", up, down)
	}
	if i := slices.IndexFunc(drawn.Texts, func(e element) bool { return e.Text == "-3" }); i < 0 || drawn.Texts[i].Y < down.Y+down.Height {
		t.Errorf("got %+v, want the label below the column", drawn.Texts)
	}
}

// All dots are drawn, however many, and labels cover neither dots nor each other.
func TestDots(t *testing.T) {
	p := &Plot{Kind: Dots, X: Numbers(lang.English, Euros, []float64{100}, true, 5), Y: Numbers(lang.English, Score, []float64{0, 10}, true, 5), Series: make([]Series, 1)}
	for i := range 639 {
		point := Point{X: float64(i * 37 % 100), Y: float64(i*i%97) / 10, Text: "text"}
		if i%20 == 0 {
			point.Label = fmt.Sprint("Tool number ", i)
		}
		p.Series[0].Points = append(p.Series[0].Points, point)
	}
	drawn := parse(t, Plots{p}, wide)
	check.Equal(t, len(drawn.Circles), 639, "dots")
	_, labels := drawn.of("ink")
	if len(labels) == 0 {
		t.Error("got no labels, want those that have room")
	}
	for _, text := range drawn.Texts {
		for _, c := range drawn.Circles {
			if box := text.box(); text.Class == "ink" && box.overlaps(area{c.CX - 2.9, c.CY - 2.9, 5.8, 5.8}) {
				t.Errorf("got label %q over a dot, want it beside", text.Text)
			}
		}
	}
}

// Numbers are at the ends of bars, on their side of zero, and all are inside.
func TestBars(t *testing.T) {
	for _, bars := range []Bars{
		{{Label: "a", Text: "−20.5", Value: -20.5, Series: 1}, {Label: "b", Text: "5", Value: 5}, {Label: "c"}},
		{{Label: strings.Repeat("long ", 20), Text: "1", Value: 1}, {Label: "b", Text: "1234567", Value: 1234567}},
		{{Label: "a", Text: "0"}, {Label: "b", Text: "0"}}, {{Label: "a", Text: "−3", Value: -3}, {Label: "b", Text: "−1", Value: -1}},
	} {
		for _, width := range []float64{narrow, wide} {
			drawn := parse(t, bars, width)
			rects := drawn.Rects
			for i, b := range bars {
				label, number := drawn.Texts[2*i], drawn.Texts[2*i+1]
				if b.Text == "" {
					check.Equal(t, number.Text, "–", "%+v", number)
					continue
				}
				bar := rects[0]
				rects = append(rects[1:], bar)
				if bar.Width < 1 || bar.X < label.X || bar.X+bar.Width > drawn.right || bar.Class != seriesColor(b.Series) {
					t.Errorf("got bar %+v, want it right of %+v", bar, label)
				}
				if b.Value < 0 && (number.Anchor != "end" || number.X >= bar.X) || b.Value >= 0 && number.X <= bar.X+bar.Width {
					t.Errorf("got number %+v of bar %+v, want it after its end", number, bar)
				}
			}
		}
	}
}

func TestTiles(t *testing.T) {
	for _, count := range []int{1, 4, 6, 7} {
		for _, width := range []float64{narrow, wide} {
			drawn := parse(t, Tiles(slices.Repeat([]Tile{{"Average monthly price, €", "€1,234.56", "−€12 since October 2026"}}, count)), width)
			check.Equal(t, len(slices.DeleteFunc(drawn.Texts, func(e element) bool { return e.Size < 20 })), count, "numbers")
		}
	}
}

// Files need nothing else: they have their colors, title, notes and credit, and no
// classes. A PNG shows the same.
func TestFiles(t *testing.T) {
	c := &Chart{Content: linesOf(seriesOf("One", 1, 2), seriesOf("Two", 3, 4)), Title: "A <title>", Notes: []string{"A note"}}
	svg, err := c.File(t.Context(), "svg", "Source: palmares")
	check.OK(t, err)
	for _, want := range []string{`xmlns="http://www.w3.org/2000/svg"`, "A &lt;title&gt;", "A note", "Source: palmares", `stroke="` + colors["s1"] + `"`, `fill="` + colors["paper"] + `"`} {
		check.Contains(t, string(svg), want)
	}
	if strings.Contains(string(svg), "class=") {
		t.Errorf("got %s, want no classes", svg)
	}
	check.Equal(t, xml.Unmarshal(svg, &picture{}), nil)
	body, err := c.File(t.Context(), "png", "Source: palmares")
	check.OK(t, err)
	img, err := png.Decode(bytes.NewReader(body))
	check.OK(t, err)
	seen := map[color.Color]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			seen[img.At(x, y)]++
		}
	}
	for _, name := range []string{"s0", "s1", "ink", "soft", "grid"} {
		if seen[rgb(name)] < 50 {
			t.Errorf("got %d pixels of %s, want a drawing", seen[rgb(name)], name)
		}
	}
	small, err := c.File(t.Context(), Small, "Source: palmares")
	check.OK(t, err)
	for _, unwanted := range []string{"A &lt;title&gt;", "A note", "Source: palmares", ` width="720"`} {
		check.True(t, !strings.Contains(string(small), unwanted), "got %s in a small file, want nothing but the drawing", unwanted)
	}
	if _, err := (&Chart{Content: Bars(make([]Bar, 200))}).File(t.Context(), "png", ""); err == nil {
		t.Error("got a PNG of any size, want a limit")
	}
}

// The names of series are texts in their colors, which are the same in files.
func TestColors(t *testing.T) {
	css, err := os.ReadFile("../page/assets/style.css")
	check.OK(t, err)
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(`(--[a-z]+|\.s\d \{ --series): light-dark\((#\w{6}), (#\w{6})\)`).FindAllStringSubmatch(string(css), -1) {
		found[strings.Trim(strings.TrimSuffix(m[1], " { --series"), "-.")] = m[2:]
	}
	found["s0"], found["grid"] = found["accent"], found["line"]
	for name, color := range colors {
		if pair := found[name]; name != "paper" && (len(pair) == 0 || pair[0] != color) {
			t.Errorf("%s: got %s in files and %v in pages, want the same", name, color, pair)
		}
		if name == "grid" || name == "paper" {
			continue
		}
		for theme, paper := range []string{"paper", "paper"} {
			if got := contrast(found[name][theme], found[paper][theme]); got < 4.5 {
				t.Errorf("%s in theme %d: got a contrast of %.2f, want at least 4.5", name, theme, got)
			}
		}
	}
}

func contrast(a, b string) float64 {
	luminance := func(color string) float64 {
		var rgb [3]uint8
		_, _ = fmt.Sscanf(color, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2])
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			share := float64(rgb[i]) / 255
			if share <= 0.04045 {
				share /= 12.92
			} else {
				share = math.Pow((share+0.055)/1.055, 2.4)
			}
			sum += weight * share
		}
		return sum
	}
	high, low := luminance(a), luminance(b)
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

// Texts never become markup.
func TestTextsAreEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	point := Point{Y: 1, Text: evil, Label: evil}
	plot := &Plot{Kind: Dots, Heading: evil, X: Axis{To: 1, Caption: evil, ticks: func(float64) []tick { return []tick{{0, evil}} }}, Y: Numbers(lang.English, Number, []float64{1}, true, 1), Series: []Series{{evil, []Point{point}}}}
	for _, c := range []Content{Plots{plot}, Bars{{Label: evil, Text: evil, Value: 1}}, Tiles{{evil, evil, evil}}} {
		shown := &Chart{Content: c, Title: evil}
		file, err := shown.File(t.Context(), "svg", evil)
		check.OK(t, err)
		for _, got := range []string{string(shown.HTML()), string(file)} {
			if strings.Contains(got, "<script") || !strings.Contains(got, "&lt;script&gt;") {
				t.Errorf("%T: got %s, want texts escaped", c, got)
			}
		}
	}
}
