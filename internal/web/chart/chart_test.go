package chart

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		values   []float64
		fromZero bool
		grid     []float64
	}{
		{[]float64{1, 9}, true, []float64{0, 5, 10}},
		{[]float64{-3, 3}, true, []float64{-4, -2, 0, 2, 4}},
		{[]float64{41, 48}, false, []float64{40, 42, 44, 46, 48}},
		{[]float64{5, 5}, true, []float64{0, 2, 4, 6}},
		{[]float64{1, 1, 1}, false, []float64{0, 1}},
		{[]float64{0, 0}, false, []float64{0, 1}},
		{[]float64{-2, -2}, false, []float64{-2, -1, 0}},
		{[]float64{0.5, 0.5}, false, []float64{0, 0.2, 0.4, 0.6000000000000001}},
		{[]float64{4, 8}, false, []float64{0, 2, 4, 6, 8}},
		{[]float64{2, 3}, false, []float64{2, 3}},
		{[]float64{2, 2.5}, false, []float64{2, 2.2, 2.4000000000000004, 2.6000000000000005}},
	} {
		var grid []float64
		for _, tick := range Numbers(c.values, c.fromZero, Plain).Ticks {
			grid = append(grid, tick.At)
		}
		if !reflect.DeepEqual(grid, c.grid) {
			t.Errorf("%v: got %v, want %v", c.values, grid, c.grid)
		}
	}
}

// picture is what an SVG shows.
type picture struct {
	ViewBox string    `xml:"viewBox,attr"`
	Label   string    `xml:"aria-label,attr"`
	Groups  []picture `xml:"g"`
	Paths   []mark    `xml:"path"`
	Circles []mark    `xml:"circle"`
	Rects   []mark    `xml:"rect"`
	Texts   []mark    `xml:"text"`

	left, right, bottom float64
}

type mark struct {
	Class  string  `xml:"class,attr"`
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	CX     float64 `xml:"cx,attr"`
	CY     float64 `xml:"cy,attr"`
	Width  float64 `xml:"width,attr"`
	Height float64 `xml:"height,attr"`
	D      string  `xml:"d,attr"`
	Title  string  `xml:"title"`
	Text   string  `xml:",chardata"`
}

func parse(t *testing.T, svg template.HTML) (p picture) {
	t.Helper()
	if err := xml.Unmarshal([]byte(svg), &p); err != nil {
		t.Fatalf("got %v in %s, want an SVG", err, svg)
	}
	if _, err := fmt.Sscanf(p.ViewBox, "%f 0 %f %f", &p.left, &p.right, &p.bottom); err != nil {
		t.Fatal(err)
	}
	p.right += p.left
	return p
}

// box returns the area of a label.
func (m *mark) box(l *layout) box {
	at := place{m.X, m.Y, ""}
	if strings.Contains(m.Class, "end") {
		at.side = "end"
	}
	return l.box(at, m.Text)
}

// No label covers another one or the line, or leaves the chart.
func TestLabelsOfStepsDoNotOverlap(t *testing.T) {
	l := layouts[Steps]
	for shift := range 9 {
		var points []Point
		for i, day := range []float64{0, 4, 8, 31, 50, 59, 61, 80, 99} {
			price := []float64{10, 1234.56, 40, 700}[(i*i+shift)%4]
			points = append(points, Point{X: day * 86400, Y: price, YText: "value", Label: fmt.Sprintf("%v €", price)})
		}
		p := NewSteps([]Series{{Points: points}}, 0, time.Unix(100*86400, 0), func(time.Time) string { return "" })
		drawn := parse(t, p.SVG("steps", "Prices"))
		var taken []box
		circles := drawn.Groups[0].Circles
		for i, from := range circles {
			to := mark{CX: l.width, CY: from.CY}
			if i+1 < len(circles) {
				to = circles[i+1]
			}
			taken = append(taken, box{from.CX, from.CY - 2, to.CX, from.CY + 2}, box{to.CX - 2, min(from.CY, to.CY), to.CX + 2, max(from.CY, to.CY)})
		}
		var labels int
		for _, text := range drawn.Texts {
			if !strings.HasSuffix(text.Text, "€") {
				continue
			}
			labels++
			room := text.box(&l)
			if room.left < 0 || room.right > l.width || room.top < 0 || room.bottom > l.top+l.height {
				t.Errorf("%d: got label %+v outside the chart, want it inside", shift, text)
			}
			if slices.ContainsFunc(taken, room.overlaps) {
				t.Errorf("%d: got label %+v over another one or the line, want no overlap", shift, text)
			}
			taken = append(taken, room)
		}
		if labels == 0 || labels > len(points) || len(circles) != len(points) {
			t.Errorf("%d: got %d labels and %d dots, want at most %d and %d", shift, labels, len(circles), len(points), len(points))
		}
	}
}

// The names of dots cover neither each other nor a dot, and the first dots get theirs.
func TestLabelsOfDotsDoNotOverlap(t *testing.T) {
	l := layouts[Dots]
	var points []Point
	for i := range 40 {
		points = append(points, Point{X: float64(i * i % 90), Y: 4 + float64(i%7)/2, YText: "value", Label: "Tool with a name", Highlighted: i == 0})
	}
	p := &Plot{Kind: Dots, X: Numbers([]float64{90}, true, Plain), Y: Axis{From: 4, To: 7}, Series: []Series{{Points: points}}}
	drawn := parse(t, p.SVG("scatter", "Tools"))
	var taken []box
	for _, at := range drawn.Circles {
		if at.CX < 0 || at.CX > l.width || at.CY < l.top || at.CY > l.top+l.height {
			t.Errorf("got dot %+v outside of the chart, want it inside", at)
		}
		taken = append(taken, box{at.CX - 5, at.CY - 5, at.CX + 5, at.CY + 5})
	}
	names := slices.DeleteFunc(drawn.Texts, func(m mark) bool { return !strings.HasPrefix(m.Class, "name") })
	if len(drawn.Circles) != 40 || drawn.Circles[0].Class != "here" || len(names) < 5 || !strings.HasSuffix(names[0].Class, " here") {
		t.Fatalf("got %d dots and names %+v, want 40 and some, the highlighted one first", len(drawn.Circles), names)
	}
	for _, name := range names {
		room := name.box(&l)
		if slices.ContainsFunc(taken, room.overlaps) || room.left < drawn.left || room.right > drawn.right {
			t.Errorf("got %+v over another name or a dot, or outside of the chart, want none", name)
		}
		taken = append(taken, room)
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
	point := func(date string, value float64) Point { return Point{X: Time(day(date)), Y: value} }
	for want, points := range map[string][]Point{
		"M0 12H64":                {point("2026-01-01", 7)},
		"M0 20H29.1V4H64":         {point("2026-01-01", 7), point("2026-02-20", 9)},
		"M0 12H29.1V4H58.2V20H64": {point("2026-01-01", 7), point("2026-02-20", 8), point("2026-04-11", 6)},
	} {
		drawn := parse(t, Sparkline(points, day("2026-04-11")))
		if got := drawn.Paths[0].D; got != want || len(drawn.Circles) != 1 || drawn.Label != "" {
			t.Errorf("%v: got %s and %d dots, want %s and one", points, got, len(drawn.Circles), want)
		}
	}
	if got := Sparkline(nil, day("2026-04-11")); strings.Contains(string(got), "<svg") {
		t.Errorf("got %s without points, want no SVG", got)
	}
}

// Lines have a gap-free path, dots for points with a text, and a legend below.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 40)
	all := []Series{
		{Name: long, Points: []Point{{X: 0, Y: -5, XText: "a", YText: "−5"}, {X: 2, Y: 5}, {X: 3, Y: 0, XText: "d", YText: "0"}}},
		{Name: "other", Points: []Point{{X: 1, Y: 1, XText: "b", YText: "1"}}},
	}
	p := NewLines([]string{"a", "b", "c", "d"}, all, Plain)
	p.Legend = true
	drawn := parse(t, p.SVG("", "Numbers"))
	if got, want := drawn.Paths[0].D, "M0 234L381.3 14L572 124"; got != want || drawn.Paths[1].Class != "s1" {
		t.Errorf("got path %s, want %s", got, want)
	}
	if len(drawn.Circles) != 3 || drawn.Circles[0].Title != long+" · a · −5" {
		t.Errorf("got dots %+v, want one for each point with a text", drawn.Circles)
	}
	var texts []string
	for _, text := range drawn.Texts {
		texts = append(texts, text.Text)
		if text.X < drawn.left || text.X > drawn.right || text.Y > drawn.bottom {
			t.Errorf("got %+v outside of the chart, want it inside", text)
		}
	}
	if got, want := strings.Join(texts, " "), "-5 0 5 a b d "+long[:29]+"… other"; got != want {
		t.Errorf("got texts %s, want %s", got, want)
	}
	for i, rect := range drawn.Rects {
		if rect.Y+rect.Height > drawn.bottom || rect.Class != seriesClass(i) {
			t.Errorf("got %+v in the legend, want it inside of the chart", rect)
		}
	}
	if NewLines([]string{"a"}, all, Plain) != nil || NewLines([]string{"a", "b"}, []Series{{}}, Plain) != nil {
		t.Error("got lines of one time or without values, want none")
	}
	if got := NewLines([]string{"a", "b"}, slices.Repeat(all[1:], 9), Plain); len(got.Series) != MaxSeries {
		t.Errorf("got %d lines, want %d", len(got.Series), MaxSeries)
	}
}

// Numbers are at the ends of bars, on their side of zero, and all are inside.
func TestBars(t *testing.T) {
	for _, bars := range []Bars{
		{{Label: "a", Text: "−20.5", Value: -20.5, Series: 1}, {Label: "b", Text: "5", Value: 5}, {Label: "c"}},
		{{Label: strings.Repeat("long ", 20), Text: "1", Value: 1}, {Label: "b", Text: "1234567", Value: 1234567}},
		{{Label: "a", Text: "0"}, {Label: "b", Text: "0"}}, {{Label: "a", Text: "−3", Value: -3}, {Label: "b", Text: "−1", Value: -1}},
	} {
		drawn := parse(t, bars.SVG("", "Bars"))
		rects := drawn.Rects
		for i, b := range bars {
			label, number := drawn.Texts[2*i], drawn.Texts[2*i+1]
			if b.Text == "" {
				if number.Text != "–" || math.Abs(number.X-rects[1].X-8) > 0.2 {
					t.Errorf("got %+v, want a dash at zero for a bar without a number", number)
				}
				continue
			}
			bar := rects[0]
			rects = append(rects[1:], bar)
			start, end := bar.X, bar.X+bar.Width
			if bar.Width < 1 || start < label.X || end > drawn.right || bar.Y+bar.Height > drawn.bottom || bar.Class != seriesClass(b.Series) {
				t.Errorf("got bar %+v outside the chart, want it inside", bar)
			}
			if b.Value < 0 && (number.Class != "end" || number.X >= start || number.X <= label.X) || b.Value >= 0 && (number.X <= end || number.X >= drawn.right) {
				t.Errorf("got number %+v of bar %+v, want it after its end", number, bar)
			}
		}
	}
	drawn := parse(t, Bars{{Label: "a", Text: "−20.5", Value: -20.5}, {Label: "b", Text: "5", Value: 5}}.SVG("", "Bars"))
	if down, up := drawn.Rects[0], drawn.Rects[1]; math.Abs(up.X-down.X-down.Width) > 0.2 {
		t.Errorf("got %+v and %+v, want both to start at zero", down, up)
	}
}

// The labels of columns do not touch each other.
func TestColumns(t *testing.T) {
	for _, compact := range []bool{false, true} {
		c := &Columns{Compact: compact}
		for i := range 30 {
			c.Columns = append(c.Columns, Column{Label: fmt.Sprintf("%02d/26", i), Text: fmt.Sprint(i % 7), Title: "title", Value: float64(i % 7)})
		}
		drawn := parse(t, c.SVG("", "Columns"))
		if want := 30 - 5; len(drawn.Rects) != want {
			t.Errorf("got %d columns, want %d", len(drawn.Rects), want)
		}
		var labels int
		end := math.Inf(-1)
		for _, text := range drawn.Texts {
			if !strings.Contains(text.Text, "/") {
				continue
			}
			if labels++; text.X-22 < end {
				t.Errorf("got label %+v over the one before, want no overlap", text)
			}
			end = text.X + 22
		}
		if labels < 10 || labels == 30 {
			t.Errorf("got %d labels, want those that have room", labels)
		}
		for _, rect := range drawn.Rects {
			if rect.X < drawn.left || rect.X+rect.Width > drawn.right || rect.Y < 0 || rect.Y+rect.Height > drawn.bottom {
				t.Errorf("got column %+v outside the chart, want it inside", rect)
			}
		}
	}
}

// Texts never become markup.
func TestTextsAreEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	plot := NewLines([]string{evil, evil}, []Series{{evil, []Point{{XText: evil, YText: evil}}}}, func(float64) string { return evil })
	plot.Legend = true
	dots := &Plot{Kind: Dots, X: Axis{To: 1}, Y: Axis{To: 1}, Series: []Series{{Points: []Point{{YText: evil, Label: evil}}}}}
	for _, c := range []Chart{plot, dots, Bars{{Label: evil, Text: evil, Value: 1}}, &Columns{Columns: []Column{{Label: evil, Text: evil, Title: evil, Class: evil, Value: 1}}}} {
		if got := string(c.SVG("", evil)); strings.Contains(got, "<script") || !strings.Contains(got, "&lt;script&gt;") {
			t.Errorf("%T: got %s, want texts escaped", c, got)
		}
	}
}
