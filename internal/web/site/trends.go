package site

import (
	"context"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"palmares/graph"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
	"palmares/internal/web/chart"
)

type trendsView struct {
	Feed feedInfo
	// Releases are the newest, at most 200.
	Releases struct {
		TotalCount int
		Nodes      []struct {
			Number int
			Date   string
			Stats  releaseStats
		}
	}
	Oldest     struct{ Nodes []struct{ Date string } }
	Series     []categorySeries
	Catalog    []*figure    `json:"-"` // by release
	ByCategory []*figure    `json:"-"` // by month
	From       string       `json:"-"` // the day since which scores are compared
	Headline   string       `json:"-"` // who gained and lost most
	Improved   []scoreMover `json:"-"`
	Declined   []scoreMover `json:"-"`
	Downloads  []download   `json:"-"`
}

// releaseStats are numbers about a release, as charts show them.
type releaseStats struct{ ToolsTotal, ToolsRetired, ComparisonsTotal, ToolsAvgScore *float64 }

// categorySeries has the values of one metric of one category over time.
type categorySeries struct {
	Metric, Key string
	Points      []seriesPoint
}

type seriesPoint struct {
	Period string
	Value  *float64
}

// scoreMover is a tool whose score changed.
type scoreMover struct {
	Slug          string
	Before, After *float64
	Change        float64
	Tool          *tool         // nil if it was removed
	Bar           template.HTML // how large the change is, among those of the page
}

// Name returns the name of the tool, or the slug of one that was removed.
func (m scoreMover) Name() string {
	if m.Tool == nil {
		return m.Slug
	}
	return m.Tool.Name
}

// signed formats the change of a score with its sign.
func signed(l lang.Language, change float64) string {
	if change > 0 {
		return "+" + l.Decimal(change, 1, 2)
	}
	return "−" + l.Decimal(-change, 1, 2)
}

// Coverage returns the days of the first and the last release, as an interval.
func (v *trendsView) Coverage() string {
	if len(v.Oldest.Nodes) == 0 {
		return ""
	}
	return v.Oldest.Nodes[0].Date + "/" + v.Feed.UpdatedAt
}

const moversDays, moversShown = 90, 10

func (v *trendsView) prepare(_ context.Context, _ *Site, r *request) error {
	v.draw(r)
	newest, err := time.Parse(time.DateOnly, v.Feed.UpdatedAt)
	switch {
	case err != nil || len(v.Releases.Nodes) < 2:
		return nil //nolint:nilerr // nothing to compare with
	case r.shown.Partial():
		return graph.ErrUnavailable // for a moment: the series needed the history, too
	}
	v.From = newest.AddDate(0, 0, -moversDays).Format(time.DateOnly)
	v.findMovers(r)
	return nil
}

// findMovers finds the scores that changed most in the last months.
func (v *trendsView) findMovers(r *request) {
	start, end := r.shown.Between(v.From, "")
	for _, m := range r.shown.Movers(start, end, "score", 0, nil) {
		list := &v.Improved
		if m.Change < 0 {
			list = &v.Declined
		}
		if len(*list) < moversShown {
			mover := scoreMover{Slug: m.Slug, Before: &m.Before, After: &m.After, Change: m.Change}
			if t := r.shown.Tool(m.Slug); t != nil {
				mover.Tool = toolOf(t)
			}
			*list = append(*list, mover)
		}
	}
	sentences, largest := []string(nil), 0.0
	for _, list := range [][]scoreMover{v.Improved, v.Declined} {
		var names []string
		for _, m := range list {
			if largest = max(largest, math.Abs(m.Change)); signed(r.lang, m.Change) == signed(r.lang, list[0].Change) {
				names = append(names, m.Name())
			}
		}
		if len(names) > 0 && len(names) <= maxNamedInHeadline {
			message := mostChanged[map[bool]string{true: "up", false: "down"}[list[0].Change > 0]]
			sentences = append(sentences, r.lang.Plural(len(names), message, r.lang.List(names), signed(r.lang, list[0].Change)))
		}
	}
	v.Headline = lang.Typeset(strings.Join(sentences, " "))
	for _, list := range [][]scoreMover{v.Improved, v.Declined} {
		for i, m := range list {
			list[i].Bar = changeBar(scoreDelta(r.lang, *m.Before, *m.After), largest)
		}
	}
}

func (v *trendsView) draw(r *request) {
	v.Downloads = filesOf(r.lang, "/q/palmares/growth", url.Values{}) // our own query of the same figures
	for _, c := range []struct {
		id    string
		title lang.Message
		unit  chart.Unit
		of    func(releaseStats) *float64
	}{
		{"tools", "Active tools", chart.Count, func(s releaseStats) *float64 { return s.ToolsTotal }},
		{"scores", "Average score", chart.Score, func(s releaseStats) *float64 { return s.ToolsAvgScore }},
		{"comparisons", "Comparisons", chart.Count, func(s releaseStats) *float64 { return s.ComparisonsTotal }},
		{"retired", "Retired tools", chart.Count, func(s releaseStats) *float64 { return s.ToolsRetired }},
	} {
		f, t := newFigure(r, c.id, c.title, r.lang.Text("Edition"), r.lang.Text(c.title)), chart.Table{Unit: c.unit}
		for _, n := range v.Releases.Nodes {
			t.Add(chart.Period(r.lang, n.Date), "", c.of(n.Stats))
		}
		plots := f.drawTimes(&t, v.Feed.UpdatedAt)
		if f.Half = true; plots == nil || len(t.Slots) < 2 {
			continue
		}
		newest := t.Tile(r.lang, "")
		f.Finding = chart.Title(newest.Text, newest.Change)
		plots[0].Kind = chart.Steps // the numbers last until the next edition
		if v.Catalog = append(v.Catalog, f); c.id == "retired" {
			f.Notes = append(f.Notes, r.lang.Text("Tools in the graveyard at each edition, whenever they closed."))
			f.remarkFalls(plots[0])
		}
	}
	slices.SortStableFunc(v.Series, func(a, b categorySeries) int {
		return strings.Compare(text.Fold(r.named(a.Key).Label), text.Fold(r.named(b.Key).Label))
	})
	v.addCategories(r, "category-scores", "Average score by category", "mean_score", chart.Score)
	v.addCategories(r, "category-prices", "Average price per month by category", "mean_monthly_price", chart.Euros)
	r.figures = slices.Concat(v.Catalog, v.ByCategory)
}

// remarkFalls says why a number of retired tools can fall, where it does.
func (f *figure) remarkFalls(plot *chart.Plot) {
	points := plot.Series[0].Points
	for i := 1; i < len(points); i++ {
		if fall := points[i-1].Y - points[i].Y; fall > 0 {
			plot.Remarks = append(plot.Remarks, chart.Remark{X: points[i].X, Text: chart.Count.Format(f.request.lang, -fall)})
		}
	}
	if len(plot.Remarks) > 0 {
		f.Notes = append(f.Notes, f.request.lang.Text("The number falls, as marked, when retired tools become active again or are removed from the catalog."))
	}
}

// addCategories adds the chart of a metric. Its table has all categories, the chart
// those with the highest latest values.
func (v *trendsView) addCategories(r *request, id string, title lang.Message, metric string, unit chart.Unit) {
	f, t := newFigure(r, id, title, r.lang.Text("Month")), chart.Table{Unit: unit}
	for _, s := range v.Series {
		name := r.named(s.Key).Label
		if r.shown.Category(s.Key) == nil {
			name = r.lang.Text("%s (removed)", name)
		}
		isEmpty := !slices.ContainsFunc(s.Points, func(p seriesPoint) bool { return p.Value != nil })
		for _, p := range s.Points {
			if s.Metric == metric && !isEmpty {
				t.Add(chart.Period(r.lang, p.Period), name, p.Value)
			}
		}
	}
	if f.drawTimes(&t, v.Feed.UpdatedAt) != nil && len(t.Slots) > 1 {
		v.ByCategory = append(v.ByCategory, f)
	}
}
