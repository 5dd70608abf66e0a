package site

import (
	"cmp"
	"context"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/chart"
)

// figure is a chart with the same values as a table.
type figure struct {
	chart.Chart
	ID        string // identifies its title and its files
	request   *request
	Caption   string // caption of the table
	Columns   []string
	IsCatalog bool // columns are named after the catalog, except the first
	Rows      []figureRow
	IsTall    bool // the table is scrolled
}

type figureRow struct {
	Name, Date string // Date is "" if the row is not about a day
	Values     []string
}

// newFigure returns a figure without a chart.
func newFigure(r *request, id string, title lang.Message, columns ...string) *figure {
	f := &figure{ID: id, Caption: r.lang.Text(title), Columns: columns, request: r}
	f.Title = f.Caption
	return f
}

// File returns the URL of the chart as a file with an extension.
func (f *figure) File(extension string) string { return f.request.With(chartParam, f.ID+"."+extension) }

// charted is a view with charts, which can be downloaded.
type charted interface{ figures() []*figure }

// chartParam selects the chart of a page, and the type of its file.
const chartParam = "chart"

// chartFile returns a chart of a page as a file, such as "scores.svg".
func (r *request) chartFile(view any, caching string) (*cache.Entry, error) {
	id, extension, _ := strings.Cut(r.Param(chartParam), ".")
	if v, ok := view.(charted); ok && chart.ContentTypes[extension] != "" {
		for _, f := range v.figures() {
			if f != nil && f.ID == id {
				return f.Entry(r.lang, extension, r.service.Credit, caching)
			}
		}
	}
	return nil, problem.New(problem.NotFound, "This page has no such chart.")
}

// bin is the number of tools with a score in a range.
type bin struct {
	From, To float64
	Count    int
}

// newHistogram returns nil if there are no scores.
func newHistogram(r *request, bins []bin) *figure {
	l := r.lang
	f := newFigure(r, "distribution", "Number of tools by score", l.Text("Score"), l.Text("Tools"))
	var points []chart.Point
	counts := []float64{0}
	for _, b := range bins {
		middle, count := (b.From+b.To)/2, l.Number(b.Count)
		name := l.Text("%v to under %v", b.From, b.To)
		if b.To >= highestScore { // includes its upper bound
			name = l.Text("%v to %v", b.From, b.To)
		}
		points = append(points, chart.Point{X: b.From, End: b.To, Y: float64(b.Count), Label: count, Color: band(&middle), Text: chart.Title(name, count)})
		counts = append(counts, float64(b.Count))
		f.Rows = append(f.Rows, figureRow{Name: name, Values: []string{count}})
	}
	if slices.Max(counts) == 0 {
		return nil
	}
	x := chart.Numbers(l, chart.Number, []float64{0, highestScore}, true, 5)
	x.Caption, f.Half = l.Text("Score"), true
	f.Content = chart.Plots{{Kind: chart.Columns, X: x, Y: chart.Numbers(l, chart.Count, counts, true, 4), Series: []chart.Series{{Points: points}}}}
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
		point.Text = chart.Title(t.Name, point.XText, point.YText)
		s.Points = append(s.Points, point)
	}
	return s
}

func newSparkline(t *tool, read reader, until string) template.HTML {
	return chart.Sparkline(newSeries(lang.English, t, read).Points, parseDay(until)) // it has no texts
}

// newStepChart returns the values of some tools, or nil if none of them changed. The
// axis of scores ends at the highest one that a tool can have.
func newStepChart(r *request, id string, title lang.Message, tools []tool, read reader, unit chart.Unit, until string) *figure {
	f := newFigure(r, id, title, r.lang.Text("Tool"))
	f.Half = true
	var all []chart.Series
	var values []float64
	first, changed := math.Inf(1), false
	for i := range tools {
		s := newSeries(r.lang, &tools[i], read)
		for _, p := range s.Points {
			values, first = append(values, p.Y), min(first, p.X)
		}
		all, changed = append(all, s), changed || len(s.Points) > 1
	}
	if !changed {
		return nil
	}
	if unit == chart.Score {
		values = append(values, highestScore)
	}
	x := chart.Dates(r.lang, time.Unix(int64(first), 0).UTC(), parseDay(until))
	f.Content = chart.Plots{{Kind: chart.Steps, X: x, Y: chart.Numbers(r.lang, unit, values, true, 4), Series: all}}
	return f
}

// Steps returns the series of a chart of steps, for its table.
func (f *figure) Steps() []chart.Series {
	if plots, ok := f.Content.(chart.Plots); ok && plots[0].Kind == chart.Steps {
		return plots[0].Series
	}
	return nil
}

// parseDay returns the start of a day, or zero if it is none.
func parseDay(day string) time.Time {
	at, _ := time.Parse(time.DateOnly, day)
	return at
}

const (
	maxCharted = 2_000 // tools of a category
	maxNamed   = 24    // tools that all have a label; with more, only those that stand out
)

// loadMarket reads all tools of a category with a score and a price per month.
func (s *Site) loadMarket(ctx context.Context, r *request, category string) (tools []tool, total int, err error) {
	for number := 1; len(tools) < maxCharted; number++ {
		var found struct{ Tools listOf[tool] }
		if err := s.execute(ctx, r.asOf, "market", map[string]any{"slug": category, "page": number}, &found); err != nil {
			return nil, 0, err
		}
		tools, total = append(tools, found.Tools.Items...), found.Tools.Meta.Total
		if number >= found.Tools.Meta.Pages {
			break
		}
	}
	return tools, total, nil
}

// newMarket shows tools by price per month and score. The tool with the slug is
// highlighted. It returns nil unless there are two.
func newMarket(r *request, tools []tool, total int, slug string) *figure {
	l := r.lang
	if len(tools) < 2 {
		return nil
	}
	// The highlighted tool gets its label first, then the best and of these the cheapest.
	slices.SortStableFunc(tools, func(a, b tool) int {
		return cmp.Or(boolOrder(a.Slug == slug, b.Slug == slug), cmp.Compare(*b.Score, *a.Score), cmp.Compare(*a.MonthlyPrice, *b.MonthlyPrice))
	})
	f := newFigure(r, "market", "Price per month and score of each tool", l.Text("Tool"), l.Text("Price per month"), l.Text("Score"))
	f.IsTall = true
	f.Notes = []string{l.Text("Yearly prices are divided by 12; tools without a score or a price per month are not shown.")}
	if len(tools) > maxNamed {
		f.Notes = append(f.Notes, l.Text("All %d tools are shown. Those with a name are the best at their price: no other one is both cheaper and better.", len(tools)))
	}
	if total > len(tools) {
		f.Notes = []string{l.Text("%d of %d tools, those with the highest scores.", len(tools), total)}
	}
	var scores, prices []float64
	cheapest := math.Inf(1)
	points := make([]chart.Point, len(tools))
	for i, t := range tools {
		scores, prices = append(scores, *t.Score), append(prices, *t.MonthlyPrice)
		price, score := l.Euros(*t.MonthlyPrice), formatScore(l, t.Score)
		p := chart.Point{X: *t.MonthlyPrice, Y: *t.Score, Text: chart.Title(t.Name, score, price)}
		f.Rows = append(f.Rows, figureRow{Name: t.Name, Values: []string{price, score}})
		if t.Slug == slug {
			p.Color = "s1"
		}
		if t.Slug == slug || len(tools) <= maxNamed || p.X < cheapest {
			p.Label = t.Name
		}
		if t.Slug != slug {
			cheapest = min(cheapest, p.X)
		}
		points[i] = p
	}
	x, y := chart.Numbers(l, chart.Euros, prices, true, 5), chart.Numbers(l, chart.Score, scores, false, 5)
	x.Caption, y.Caption = l.Text("Price per month"), chart.Title(l.Text("Score"), y.Caption)
	f.Content = chart.Plots{{Kind: chart.Dots, X: x, Y: y, Series: []chart.Series{{Points: points}}}}
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
