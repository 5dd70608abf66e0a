package site

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// meterWidth returns the width of a score's bar in percent.
func meterWidth(score *float64) float64 { return math.Round(*score*100) / 10 }

// The bands of scores, from which colors are derived.
const (
	excellentScore = 8
	goodScore      = 7
	fairScore      = 5
	highestScore   = 10
)

// band returns the class of a score from 0 (worst) to 10 (best).
func band(score *float64) string {
	switch {
	case score == nil:
		return "none"
	case *score >= excellentScore:
		return "excellent"
	case *score >= goodScore:
		return "good"
	case *score >= fairScore:
		return "fair"
	}
	return "poor"
}

// ageBand returns the class of an obsolescence, where 10 is the worst.
func ageBand(obsolescence *float64) string {
	if obsolescence == nil {
		return band(nil)
	}
	inverse := highestScore - *obsolescence
	return band(&inverse)
}

// figure is a chart with the same values as a table.
type figure struct {
	chart.Chart
	ID           string // of its title, or ""
	Class, Label string // of the chart
	Note         string // above the chart, or ""
	Caption      string // of the table
	Columns      []string
	IsCatalog    bool // columns are named after the catalog, except the first
	Rows         []figureRow
	IsTall       bool // the table is scrolled
}

type figureRow struct {
	Name, Date string // Date is "" if the row is not about a day
	Values     []string
}

// Legend returns the columns that are drawn as lines, if there are several.
func (f *figure) Legend() []string {
	if !f.IsCatalog || len(f.Columns) <= 2 {
		return nil
	}
	return f.Columns[1:min(len(f.Columns), 1+chart.MaxSeries)]
}

// bin is the number of tools with a score in a range.
type bin struct {
	From, To float64
	Count    int
}

// newHistogram returns nil if there are no scores.
func newHistogram(l lang.Language, bins []bin) *figure {
	f := &figure{
		Class: "histogram", Label: l.Text("Number of tools by score, as in the table"),
		Caption: l.Text("Number of tools by score"), Columns: []string{l.Text("Score"), l.Text("Tools")},
	}
	c := &chart.Columns{Compact: true}
	for _, b := range bins {
		middle := (b.From + b.To) / 2
		c.Columns = append(c.Columns, chart.Column{
			Label: chart.Plain(b.From), Text: strconv.Itoa(b.Count), Class: band(&middle), Value: float64(b.Count),
		})
		name := l.Text("%v to under %v", b.From, b.To)
		if b.To >= highestScore { // includes its upper bound
			name = l.Text("%v to %v", b.From, b.To)
		}
		f.Rows = append(f.Rows, figureRow{Name: name, Values: []string{l.Number(b.Count)}})
	}
	if !slices.ContainsFunc(bins, func(b bin) bool { return b.Count > 0 }) {
		return nil
	}
	f.Chart = c
	return f
}

// reader returns the value in an entry of a history as a point without X. ok is false
// if there is none.
type reader func(historyEntry) (value chart.Point, ok bool)

// scoreIn reads scores.
func scoreIn(l lang.Language) reader {
	return func(e historyEntry) (value chart.Point, ok bool) {
		if e.Score == nil {
			return value, false
		}
		text := formatScore(l, e.Score)
		return chart.Point{Y: *e.Score, YText: text, Label: text}, true
	}
}

// priceIn reads the prices with a period, since others are not comparable.
func priceIn(l lang.Language, period string) reader {
	return func(e historyEntry) (chart.Point, bool) {
		amount, per, ok := pricing.Parse(e.Price)
		return pricePoint(l, e.Price, amount), ok && per == period
	}
}

// monthlyPriceIn reads prices as prices per month.
func monthlyPriceIn(l lang.Language) reader {
	return func(e historyEntry) (chart.Point, bool) {
		amount, period, ok := pricing.Parse(e.Price)
		amount = pricing.Monthly(amount, pricing.Period(period))
		return pricePoint(l, e.Price, amount), ok && !math.IsNaN(amount)
	}
}

func pricePoint(l lang.Language, price string, amount float64) chart.Point {
	text, attribute := formatPrice(l, price)
	return chart.Point{Y: amount, YText: text, Lang: attribute, Label: l.Euros(amount)}
}

// newSeries reads the values of a tool without those equal to the previous one.
func newSeries(l lang.Language, t *tool, read reader) chart.Series {
	s := chart.Series{Name: t.Name}
	for _, entry := range t.History {
		point, ok := read(entry)
		at, err := time.Parse(time.DateOnly, entry.At)
		if last := len(s.Points) - 1; !ok || err != nil || last >= 0 && s.Points[last].Y == point.Y {
			continue
		}
		point.X, point.XText = chart.Time(at), l.ShortDay(at)
		s.Points = append(s.Points, point)
	}
	return s
}

func newSparkline(t *tool, read reader, until string) template.HTML {
	return chart.Sparkline(newSeries(lang.English, t, read).Points, parseDay(until)) // it has no texts
}

// newStepChart returns the values of some tools, or nil if none of them changed. The
// axis ends at the highest value unless highest is given.
func newStepChart(l lang.Language, tools []tool, read reader, highest float64, until string) *chart.Plot {
	var all []chart.Series
	for i := range tools {
		all = append(all, newSeries(l, &tools[i], read))
	}
	return chart.NewSteps(all, highest, parseDay(until), l.ShortDay)
}

// parseDay returns the start of a day, or zero if it is none.
func parseDay(day string) time.Time {
	at, _ := time.Parse(time.DateOnly, day)
	return at
}

const maxNamed = 24 // characters of a name in the chart

// newMarket shows the tools that have a score and a price per month by both. The tool
// with the slug is highlighted. It returns nil unless there are two.
func newMarket(l lang.Language, tools []tool, slug string) *figure {
	tools = slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return t.Score == nil || t.MonthlyPrice == nil })
	if len(tools) < 2 {
		return nil
	}
	// The highlighted tool gets its label first, then the best ones.
	slices.SortStableFunc(tools, func(a, b tool) int {
		return cmp.Or(boolOrder(a.Slug == slug, b.Slug == slug), cmp.Compare(*b.Score, *a.Score))
	})
	f := &figure{
		Class: "scatter", Label: l.Text("Price per month and score of each tool, as in the table"),
		Note:    l.Text("Price per month (horizontal) and score (vertical). Yearly prices are divided by 12; tools without a score or a price per month are not shown."),
		Caption: l.Text("Price per month and score of each tool"),
		Columns: []string{l.Text("Tool"), l.Text("Price per month"), l.Text("Score")},
	}
	y, maxPrice := chart.Axis{From: highestScore}, 1.0
	points := make([]chart.Point, len(tools))
	for i, t := range tools {
		y.From, y.To = min(y.From, math.Floor(*t.Score)), max(y.To, math.Ceil(*t.Score))
		maxPrice = max(maxPrice, *t.MonthlyPrice)
		price, score := l.Euros(*t.MonthlyPrice), formatScore(l, t.Score)
		text := chart.Title(t.Name, score, price)
		points[i] = chart.Point{X: *t.MonthlyPrice, Y: *t.Score, YText: text, Highlighted: t.Slug == slug}
		f.Rows = append(f.Rows, figureRow{Name: t.Name, Values: []string{price, score}})
		if utf8.RuneCountInString(t.Name) <= maxNamed {
			points[i].Label = t.Name
		}
	}
	if y.From == y.To {
		y.From, y.To = max(0, y.From-1), min(highestScore, y.To+1)
	}
	for score := y.From; score <= y.To; score++ {
		y.Ticks = append(y.Ticks, chart.Tick{At: score, Text: chart.Plain(score)})
	}
	x := chart.Numbers([]float64{maxPrice}, true, l.Euros)
	f.Chart = &chart.Plot{Kind: chart.Dots, X: x, Y: y, Series: []chart.Series{{Points: points}}}
	return f
}

// boolOrder orders true before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
