package site

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"palmares/internal/catalog/pricing"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/chart"
	"palmares/internal/web/words"
)

// figure is a chart with the same values as a table.
type figure struct {
	chart.Chart
	ID      string // identifies its title and its files
	request *request
	Caption string // caption of the table
	Finding string // what the chart shows in a few words, or ""
	Columns []string
	Rows    []chart.Row
}

// newFigure returns a figure without a chart.
func newFigure(r *request, id string, title lang.Message, columns ...string) *figure {
	f := &figure{ID: id, Caption: r.lang.Text(title), Columns: columns, request: r}
	f.Title = f.Caption
	if id == "category-prices" {
		f.Notes = []string{r.lang.Text("Free tools count as €0; hourly and per-use prices are left out.")}
	}
	return f
}

// draw adds the numbers of a table to the figure's own, and draws them. It returns the
// plots, or nil if there is nothing to draw.
func (f *figure) draw(t *chart.Table) chart.Plots {
	plots, notes := t.Plots(f.request.lang)
	if len(plots) > 1 { // as in the table; those that ended are last
		end := func(p *chart.Plot) float64 { return p.Series[0].Points[len(p.Series[0].Points)-1].X }
		slices.SortFunc(plots, func(a, b *chart.Plot) int {
			return cmp.Or(cmp.Compare(end(b), end(a)), cmp.Compare(slices.Index(t.Names, a.Heading), slices.Index(t.Names, b.Heading)))
		})
	}
	if len(f.Columns) == 1 {
		f.Columns = append(f.Columns, t.Names...)
	}
	f.Rows = t.Rows(f.request.lang, noScore)
	if f.Notes = append(f.Notes, notes...); plots != nil {
		f.Content = plots
	}
	return plots
}

// drawTimes draws numbers over time up to a day. The newest are first in the table, as
// in all lists.
func (f *figure) drawTimes(t *chart.Table, until string) chart.Plots {
	if len(t.Slots) == 0 {
		return nil
	}
	t.SetTimes(f.request.lang, parseDay(until))
	plots := f.draw(t)
	slices.Reverse(f.Rows)
	return plots
}

// File returns the URL of the chart as a file with an extension.
func (f *figure) File(extension string) string { return f.request.With(chartParam, f.ID+"."+extension) }

// chartParam selects the chart of a page, and the type of its file.
const chartParam = "chart"

// chartFile returns a chart of a page as a file, such as "scores.svg".
func (r *request) chartFile(ctx context.Context, caching string) (*cache.Entry, error) {
	id, extension, _ := strings.Cut(r.Param(chartParam), ".")
	for _, f := range r.figures {
		if f != nil && f.ID == id && chart.ContentTypes[extension] != "" {
			return f.Entry(ctx, r.lang, extension, r.service.Credit, caching)
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
	l, t, total := r.lang, chart.Table{Kind: chart.Columns, Unit: chart.Count}, 0
	f := newFigure(r, "distribution", "Number of tools by score", l.Text("Score"), l.Text("Tools"))
	for _, b := range bins {
		name, count := l.Text("%v to under %v", b.From, b.To), float64(b.Count)
		if b.To >= highestScore { // includes its upper bound
			name = l.Text("%v to %v", b.From, b.To)
		}
		t.Add(chart.Slot{From: b.From, Text: name}, "", &count)
		total += b.Count
	}
	if total == 0 {
		return nil
	}
	t.SetRanges(l)
	t.X.Caption, f.Half = l.Text("Score"), true
	points := f.draw(&t)[0].Series[0].Points
	for i, p := range points {
		if middle := (p.X + p.End) / 2; p.Y > 0 {
			points[i].Color = band(&middle)
		}
	}
	return f
}

// measure reads values in entries of a history. They are nil where there is none.
type measure struct {
	unit    chart.Unit
	caption string // of their axis
	read    func(historyEntry) *float64
}

var scores = measure{unit: chart.Score, read: func(e historyEntry) *float64 { return e.Score }}

// pricesPer reads the prices with a period, since others are not comparable.
func pricesPer(l lang.Language, period string) measure {
	m := measure{unit: chart.Euros}
	if name, ok := words.Period(l, period); ok {
		m.caption = "€/" + name
	}
	m.read = func(e historyEntry) *float64 {
		if amount, per, ok := pricing.Parse(e.Price); ok && per == period {
			return &amount
		}
		return nil
	}
	return m
}

// monthlyPrices reads prices as prices per month.
func monthlyPrices(l lang.Language) measure {
	m := pricesPer(l, "mois")
	m.read = func(e historyEntry) *float64 {
		amount, period, ok := pricing.Parse(e.Price)
		if amount = pricing.Monthly(amount, pricing.Period(period)); !ok || math.IsNaN(amount) {
			return nil
		}
		return &amount
	}
	return m
}

// changesIn calls add with each value of a tool's history that differs from the one
// before.
func (t *tool) changesIn(m measure, add func(day string, value float64)) {
	last := math.NaN()
	for _, entry := range t.History {
		if value := m.read(entry); value != nil && *value != last {
			last = *value
			add(entry.At, last)
		}
	}
}

// newStepChart returns the values of some tools, or nil if none of them changed.
func newStepChart(r *request, id string, title lang.Message, tools []tool, m measure, until string) *figure {
	f, values, changed := newFigure(r, id, title, r.lang.Text("From")), chart.Table{Kind: chart.Steps, Unit: m.unit}, false
	for i := range tools {
		count := 0
		tools[i].changesIn(m, func(day string, value float64) {
			values.Add(chart.Period(r.lang, day), tools[i].Name, &value)
			count++
		})
		changed = changed || count > 1
	}
	if f.Half = true; !changed {
		return nil
	}
	for _, plot := range f.drawTimes(&values, until) {
		plot.Y.Caption = chart.Title(m.caption, plot.Y.Caption)
	}
	return f
}

// newToolHistory shows the price and the score of a tool over time, with the editions that
// published them. It returns nil if neither changed.
func newToolHistory(r *request, t *tool, until string) *figure {
	l := r.lang
	f := newFigure(r, "history", "Price and score over time")
	unnamed := []tool{{History: t.History}} // the title of the page names it
	var plots chart.Plots
	for _, one := range []struct {
		*figure
		field string
	}{
		{newStepChart(r, "", "Price over time", unnamed, pricesPer(l, t.PricePeriod), until), "price"}, {newStepChart(r, "", "Score over time", unnamed, scores, until), "score"},
	} {
		if one.figure == nil {
			continue
		}
		for _, plot := range one.Content.(chart.Plots) {
			plot.Heading = one.Title
			markEditions(l, plot.Series[0].Points, t.Versions, one.field)
			plots = append(plots, plot)
		}
	}
	if plots == nil {
		return nil
	}
	f.Content = plots // the list below has the same values
	return f
}

// markEditions adds the edition that published a value to its texts.
func markEditions(l lang.Language, points []chart.Point, versions []version, field string) {
	for _, v := range versions {
		if v.Type != toolUpdated || !slices.Contains(v.Fields, field) {
			continue
		}
		for i := range slices.Backward(points) {
			if points[i].X <= chart.Time(parseDay(v.Date)) {
				edition := l.Text("ed. %d", v.FirstRelease)
				points[i].Label, points[i].Text = chart.Title(points[i].Label, edition), chart.Title(points[i].Text, edition)
				break
			}
		}
	}
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

// marketOf draws all tools of a category with a score and a price per month.
func marketOf(r *request, category, slug string) *figure {
	var tools []tool
	priced := catalog.Where(func(t *catalog.Tool) bool {
		return t.Category == category && !math.IsNaN(t.Score) && !math.IsNaN(t.MonthlyPrice)
	})
	for _, t := range r.shown.Matching(catalog.ByScore, catalog.Filter{priced}) {
		tools = append(tools, *toolOf(t))
	}
	return newMarket(r, tools[:min(len(tools), maxCharted)], len(tools), slug)
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
		return cmp.Or(cmp.Compare(*b.Score, *a.Score), cmp.Compare(*a.MonthlyPrice, *b.MonthlyPrice))
	})
	if at := slices.IndexFunc(tools, func(t tool) bool { return t.Slug == slug }); at > 0 {
		tools = slices.Concat(tools[at:at+1], tools[:at], tools[at+1:])
	}
	f := newFigure(r, "market", "Price per month and score of each tool", l.Text("Tool"), l.Text("Price per month"), l.Text("Score"))
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
		f.Rows = append(f.Rows, chart.Row{Name: t.Name, Values: []string{price, score}})
		switch slug {
		case "":
			p.Color = band(t.Score)
		case t.Slug: // has that of the catalog
		default:
			p.Color = "soft"
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
	x.Caption, _ = words.Field(l, "monthlyPrice")
	y.Caption = chart.Title(l.Text("Score"), y.Caption)
	f.Content = chart.Plots{{Kind: chart.Dots, X: x, Y: y, Series: []chart.Series{{Points: points}}}}
	return f
}
