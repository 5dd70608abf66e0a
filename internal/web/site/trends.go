package site

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/core/table"
	"palmares/internal/web/chart"
)

type trendsView struct {
	Feed  feedInfo
	Stats struct{ ToolsTotal, ToolsRetired, ComparisonsTotal int }
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
	Categories []category
	Catalog    []*figure    `json:"-"` // by release
	ByCategory []*figure    `json:"-"` // by month
	From       string       `json:"-"` // the day since which scores are compared
	Improved   []scoreMover `json:"-"`
	Declined   []scoreMover `json:"-"`
	Downloads  []download   `json:"-"`
}

// trendFiles are the service's own query of the same figures as files.
func trendFiles(l lang.Language) []download {
	const file = "/q/palmares/growth"
	dialect := table.Excel
	if l == lang.French {
		dialect = table.ExcelFR
	}
	return []download{{"CSV", file + ".csv"}, {"Excel", file + ".csv?dialect=" + dialect}, {"NDJSON", file + ".ndjson"}}
}

// releaseStats are numbers about a release, as charts show them.
type releaseStats struct{ ToolsTotal, ToolsRetired, ComparisonsTotal, ToolsAvgScore *float64 }

// categorySeries has the values of one metric of one category over time.
type categorySeries struct {
	Metric, Key string
	Points      []seriesPoint
}

type seriesPoint struct {
	Start string
	Value *float64
}

// scoreMover is a tool whose score changed.
type scoreMover struct {
	Slug          string
	Before, After *float64
	Change        float64
	Tool          *tool // nil if it was removed
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

const moversDays = 90

// load reads which scores changed most in the last months.
func (v *trendsView) load(ctx context.Context, s *Site, r *request) error {
	newest, err := time.Parse(time.DateOnly, v.Feed.UpdatedAt)
	if err != nil || len(v.Releases.Nodes) < 2 {
		return nil //nolint:nilerr // nothing to compare with
	}
	v.From = newest.AddDate(0, 0, -moversDays).Format(time.DateOnly)
	var movers struct{ Up, Down []scoreMover }
	if err := s.execute(ctx, r.asOf, "scoreMovers", map[string]any{"from": v.From}, &movers); err != nil {
		return err
	}
	v.Improved, v.Declined = movers.Up, movers.Down
	return nil
}

func (v *trendsView) figures() []*figure { return slices.Concat(v.Catalog, v.ByCategory) }

func (v *trendsView) prepare(r *request) error {
	v.Downloads = trendFiles(r.lang)
	slices.Reverse(v.Releases.Nodes) // oldest first
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
		f := newFigure(r, c.id, c.title, r.lang.Text("Release"), r.lang.Text(c.title))
		column := timeColumn{}
		for _, n := range v.Releases.Nodes {
			f.Rows = append(f.Rows, figureRow{Name: r.lang.ShortDayOf(n.Date), Date: n.Date})
			column.points = append(column.points, seriesPoint{n.Date, c.of(n.Stats)})
		}
		if f.Half = true; f.drawLines(v.Feed.UpdatedAt, c.unit, column) {
			v.Catalog = append(v.Catalog, f)
		}
		if c.id == "retired" && f.Content != nil {
			f.remarkFalls()
		}
	}
	v.addCategories(r, "category-scores", "Average score by category", "mean_score", chart.Score)
	v.addCategories(r, "category-prices", "Average price per month by category", "mean_monthly_price", chart.Euros)
	return nil
}

// remarkFalls says why a number of retired tools can fall, where it does.
func (f *figure) remarkFalls() {
	plot := f.Content.(chart.Plots)[0]
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
	f := newFigure(r, id, title, r.lang.Text("Month"))
	f.IsCatalog = true
	var columns []timeColumn
	for _, s := range v.Series {
		if s.Metric != metric || !slices.ContainsFunc(s.Points, func(p seriesPoint) bool { return p.Value != nil }) {
			continue
		}
		f.Columns, columns = append(f.Columns, labelOf(v.Categories, s.Key)), append(columns, timeColumn{labelOf(v.Categories, s.Key), s.Points})
		if len(columns) == 1 {
			for _, p := range s.Points {
				f.Rows = append(f.Rows, figureRow{Name: r.lang.Month(parseDay(p.Start))})
			}
		}
	}
	if f.drawLines(v.Feed.UpdatedAt, unit, columns...) {
		v.ByCategory = append(v.ByCategory, f)
	}
}

// timeColumn is a column of a table over time.
type timeColumn struct {
	name   string // "" if the title says it
	points []seriesPoint
}

// drawLines adds the values of each column to the rows, which are ordered by time, and
// to the chart, whose time ends with the catalog's. Where a value is missing, the line
// has a gap. It returns false if there is nothing to draw.
func (f *figure) drawLines(until string, unit chart.Unit, columns ...timeColumn) bool {
	l := f.request.lang
	f.IsTall = true
	if len(f.Rows) < 2 {
		return false
	}
	all := make([]chart.Series, len(columns))
	for column, c := range columns {
		s, gap := &all[column], false
		s.Name = c.name
		for i, p := range c.points {
			text := noScore
			if p.Value != nil {
				text = unit.Format(l, *p.Value)
				s.Points = append(s.Points, chart.Point{
					X: chart.Time(parseDay(p.Start)), Y: *p.Value, Gap: gap, Text: chart.Title(c.name, f.Rows[i].Name, text), Label: text,
				})
			}
			gap = p.Value == nil
			f.Rows[i].Values = append(f.Rows[i].Values, text)
		}
	}
	x := chart.Dates(l, parseDay(columns[0].points[0].Start), parseDay(until))
	plots, note := chart.NewLines(l, chart.Lines, x, unit, all)
	slices.Reverse(f.Rows) // newest first, as in all lists
	if f.Content = plots; note != "" {
		f.Notes = append(f.Notes, note)
	}
	return plots != nil
}

// The graveyard.

type retiredToolsView struct {
	Feed             feedInfo
	RetiredTools     listOf[tool]
	RetirementGroups []struct {
		Period, Reason, Category string
		Count                    int
	}
	Categories []category
	Years      []retiredYear `json:"-"` // the tools of the page
	Chart      *figure       `json:"-"` // nil if there is nothing to draw
	ByMonth    bool          `json:"-"`
}

type retiredYear struct {
	Year   string
	Months []retiredMonth
}

type retiredMonth struct {
	Name  string
	Tools []tool
}

func (v *retiredToolsView) prepare(r *request) error {
	for _, t := range v.RetiredTools.Items {
		at, err := time.Parse(time.DateOnly, t.RetiredAt)
		if err != nil {
			return err
		}
		year, month := strconv.Itoa(at.Year()), r.lang.Month(at)
		if len(v.Years) == 0 || v.Years[len(v.Years)-1].Year != year {
			v.Years = append(v.Years, retiredYear{Year: year})
		}
		y := &v.Years[len(v.Years)-1]
		if len(y.Months) == 0 || y.Months[len(y.Months)-1].Name != month {
			y.Months = append(y.Months, retiredMonth{Name: month})
		}
		m := &y.Months[len(y.Months)-1]
		m.Tools = append(m.Tools, t)
	}
	v.prepareChart(r)
	return nil
}

// maxMonths is the longest time that the chart shows by month. Longer ones are
// shown by year.
const maxMonths = 36

// prepareChart counts the retirements that the filters select, by month or by
// year, with the periods that had none, up to the end of the catalog.
func (v *retiredToolsView) prepareChart(r *request) {
	counts := map[string]float64{}
	var first string
	for _, g := range v.RetirementGroups {
		if reason := r.Param("reason"); reason != "" && reason != g.Reason {
			continue
		}
		if category := r.Param("category"); category != "" && category != g.Category {
			continue
		}
		counts[g.Period] += float64(g.Count)
		counts[g.Period[:4]] += float64(g.Count)
		first = cmp.Or(first, g.Period) // they are ordered
	}
	const month = "2006-01"
	from, err := time.Parse(month, first)
	if err != nil {
		return
	}
	to := parseDay(v.Feed.UpdatedAt)
	v.ByMonth = (to.Year()-from.Year())*12+int(to.Month()-from.Month()) < maxMonths
	period, months, layout, format := r.lang.Text("Month"), 1, month, r.lang.Month
	if !v.ByMonth {
		period, months, layout = r.lang.Text("Year"), 12, "2006"
		format = func(t time.Time) string { return t.Format(layout) }
		from = time.Date(from.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	}
	f := newFigure(r, "retirements", "Number of retired tools", period, r.lang.Text("Retired tools"))
	var points []chart.Point
	end := from
	for at := from; !at.After(to); at = end {
		end = at.AddDate(0, months, 0)
		count := counts[at.Format(layout)]
		text := chart.Count.Format(r.lang, count)
		points = append(points, chart.Point{X: chart.Time(at), End: chart.Time(end), Y: count, Label: text, Text: chart.Title(format(at), text)})
		f.Rows = append(f.Rows, figureRow{Name: format(at), Values: []string{text}})
	}
	slices.Reverse(f.Rows)
	f.Content, _ = chart.NewLines(r.lang, chart.Columns, chart.Dates(r.lang, from, end), chart.Count, []chart.Series{{Points: points}})
	f.IsTall, v.Chart = true, f
}

func (v *retiredToolsView) figures() []*figure { return []*figure{v.Chart} }

// lifetime is how long a retired tool was in the catalog as an active one.
type lifetime struct {
	First, Last string // days
	Months      int
}

// newLifetime returns nil if that is unknown: the tool was retired before the
// first release that has it, or its list of versions is not complete.
func newLifetime(versions []version, retiredAt string) *lifetime {
	if len(versions) == 0 || len(versions) > maxVersions {
		return nil
	}
	oldest := versions[len(versions)-1]
	from, err := time.Parse(time.DateOnly, oldest.Date)
	to, lastErr := time.Parse(time.DateOnly, retiredAt)
	if err != nil || lastErr != nil || oldest.Type != toolCreated || oldest.After["retired_at"] != nil || to.Before(from) {
		return nil
	}
	months := (to.Year()-from.Year())*12 + int(to.Month()-from.Month())
	if to.Day() < from.Day() {
		months--
	}
	return &lifetime{oldest.Date, retiredAt, months}
}
