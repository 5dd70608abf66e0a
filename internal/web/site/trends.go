package site

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"palmares/internal/core/lang"
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

func (v *trendsView) prepare(r *request) error {
	l := r.lang
	slices.Reverse(v.Releases.Nodes) // oldest first
	add := func(id string, title lang.Message, format func(float64) string, number func(releaseStats) *float64) {
		f := &figure{ID: id, Caption: l.Text(title), Columns: []string{l.Text("Release"), l.Text(title)}}
		var numbers []*float64
		for _, n := range v.Releases.Nodes {
			f.Rows = append(f.Rows, figureRow{Name: l.ShortDayOf(n.Date), Date: n.Date})
			numbers = append(numbers, number(n.Stats))
		}
		if f.drawLines(l, format, numbers) {
			v.Catalog = append(v.Catalog, f)
		}
	}
	whole := func(n float64) string { return l.Decimal(n, 0, 2) }
	average := func(n float64) string { return formatAverage(l, &n) }
	add("tools", "Active tools", whole, func(s releaseStats) *float64 { return s.ToolsTotal })
	add("scores", "Average score", average, func(s releaseStats) *float64 { return s.ToolsAvgScore })
	add("comparisons", "Comparisons", whole, func(s releaseStats) *float64 { return s.ComparisonsTotal })
	add("retired", "Retired tools", whole, func(s releaseStats) *float64 { return s.ToolsRetired })
	v.addCategories(l, "category-scores", "Average score by category", "mean_score", average)
	v.addCategories(l, "category-prices", "Average price per month by category", "mean_monthly_price", l.Euros)
	return nil
}

// addCategories adds the chart of a metric. Its table has all categories, the
// chart the largest ones.
func (v *trendsView) addCategories(l lang.Language, id string, title lang.Message, metric string, format func(float64) string) {
	size := map[string]int{}
	for _, c := range v.Categories {
		size[c.Slug] = c.ToolCount
	}
	selected := slices.DeleteFunc(slices.Clone(v.Series), func(s categorySeries) bool {
		return s.Metric != metric || !slices.ContainsFunc(s.Points, func(p seriesPoint) bool { return p.Value != nil })
	})
	slices.SortStableFunc(selected, func(a, b categorySeries) int { return cmp.Compare(size[b.Key], size[a.Key]) })
	f := &figure{ID: id, Caption: l.Text(title), Columns: []string{l.Text("Month")}, IsCatalog: true}
	var numbers [][]*float64
	for i, s := range selected {
		f.Columns, numbers = append(f.Columns, labelOf(v.Categories, s.Key)), append(numbers, nil)
		for _, p := range s.Points {
			if i == 0 {
				f.Rows = append(f.Rows, figureRow{Name: l.Month(parseDay(p.Start))})
			}
			numbers[i] = append(numbers[i], p.Value)
		}
	}
	if f.drawLines(l, format, numbers...) {
		v.ByCategory = append(v.ByCategory, f)
	}
}

// maxDots is how many points of a line have dots. With more, they would touch each
// other.
const maxDots = 60

// drawLines adds the numbers of each column to the rows, which are ordered by time,
// and to the chart. A number is nil if there is none. It returns false if there is
// nothing to draw.
func (f *figure) drawLines(l lang.Language, format func(float64) string, columns ...[]*float64) bool {
	f.Class, f.Label, f.IsTall = "lines", l.Text("%s, as in the table", f.Caption), true
	var times []string
	for _, row := range f.Rows {
		times = append(times, row.Name)
	}
	all := make([]chart.Series, len(columns))
	for column, numbers := range columns {
		s := &all[column]
		if f.IsCatalog { // otherwise the title names it
			s.Name = f.Columns[column+1]
		}
		for i, number := range numbers {
			text := noScore
			if number != nil {
				text = format(*number)
				s.Points = append(s.Points, chart.Point{X: float64(i), Y: *number, XText: times[i], YText: text})
			}
			f.Rows[i].Values = append(f.Rows[i].Values, text)
		}
		if last := len(s.Points) - 1; last >= maxDots {
			for i := range last {
				s.Points[i].YText = ""
			}
		}
	}
	slices.Reverse(f.Rows) // newest first, as in all lists
	plot := chart.NewLines(times, all, format)
	f.Chart = plot
	return plot != nil
}

// The graveyard.

type retiredToolsView struct {
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
// year, with the periods that had none.
func (v *retiredToolsView) prepareChart(r *request) {
	counts := map[string]float64{}
	var first, last string
	for _, g := range v.RetirementGroups {
		if reason := r.Param("reason"); reason != "" && reason != g.Reason {
			continue
		}
		if category := r.Param("category"); category != "" && category != g.Category {
			continue
		}
		counts[g.Period] += float64(g.Count)
		first, last = cmp.Or(first, g.Period), g.Period // they are ordered
	}
	const layout = "2006-01"
	from, err := time.Parse(layout, first)
	to, lastErr := time.Parse(layout, last)
	if err != nil || lastErr != nil {
		return
	}
	months := (to.Year()-from.Year())*12 + int(to.Month()-from.Month()) + 1
	v.ByMonth = months <= maxMonths
	var columns []chart.Column
	for at := from; !at.After(to); at = at.AddDate(0, 1, 0) {
		column := chart.Column{Title: r.lang.Month(at), Label: at.Format("01/06"), Value: counts[at.Format(layout)]}
		if !v.ByMonth {
			column.Title = strconv.Itoa(at.Year())
			column.Label = column.Title
		}
		if last := len(columns) - 1; last >= 0 && columns[last].Title == column.Title {
			columns[last].Value += column.Value
		} else {
			columns = append(columns, column)
		}
	}
	period := r.lang.Text("Month")
	if !v.ByMonth {
		period = r.lang.Text("Year")
	}
	v.Chart = &figure{
		Chart: &chart.Columns{Columns: columns}, Class: "retirements",
		Label:   r.lang.Text("Number of retired tools, as in the table"),
		Caption: r.lang.Text("Number of retired tools"), IsTall: true,
		Columns: []string{period, r.lang.Text("Retired tools")},
	}
	for i := range columns {
		c := &columns[i]
		c.Text = r.lang.Number(int(c.Value))
		v.Chart.Rows = append(v.Chart.Rows, figureRow{Name: c.Title, Values: []string{c.Text}})
		c.Title = chart.Title(c.Title, c.Text)
	}
	slices.Reverse(v.Chart.Rows)
}

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
