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
			Stats  struct {
				ToolsTotal, ToolsRetired, ComparisonsTotal int
				ToolsAvgScore                              *float64
			}
		}
	}
	Oldest     struct{ Nodes []struct{ Date string } }
	Series     []categorySeries
	Categories []category
	Catalog    []lineChart  `json:"-"` // by release
	ByCategory []lineChart  `json:"-"` // by month
	From       string       `json:"-"` // the day since which scores are compared
	Improved   []scoreMover `json:"-"`
	Declined   []scoreMover `json:"-"`
}

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
	Slug                  string
	Before, After, Change float64
	Tool                  *tool // nil if it was removed
}

// Sign returns the change with its sign.
func (m scoreMover) Sign(l lang.Language) string {
	if m.Change > 0 {
		return "+" + l.Decimal(m.Change, 1, 2)
	}
	return "−" + l.Decimal(-m.Change, 1, 2)
}

// Scores returns the scores before and after.
func (m scoreMover) Scores(l lang.Language) string {
	return formatScore(l, &m.Before) + " → " + formatScore(l, &m.After)
}

// Coverage returns the days of the first and the last release, as an interval.
func (v *trendsView) Coverage() string {
	if len(v.Oldest.Nodes) == 0 {
		return ""
	}
	return v.Oldest.Nodes[0].Date + "/" + v.Feed.UpdatedAt
}

// lineChart is a chart with the same numbers as a table.
type lineChart struct {
	ID, Title string
	First     string // what the first column of the table is
	Columns   []tableColumn
	Rows      []tableRow
	Lines     *chart.Lines
}

type tableColumn struct {
	Name     string
	Catalog  bool // the name is from the catalog
	Series   int  // color of its line
	HasColor bool
}

type tableRow struct {
	Name, Date string // Date is "" for a month
	Values     []string
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
	var rows []tableRow
	for _, n := range v.Releases.Nodes {
		rows = append(rows, tableRow{Name: l.ShortDayOf(n.Date), Date: n.Date})
	}
	whole := func(n float64) string { return l.Decimal(n, 0, 2) }
	average := func(n float64) string { return l.Decimal(n, 2, 2) }
	add := func(id string, title lang.Message, format func(float64) string, value func(i int) *chart.Value) {
		one := chart.Series{}
		for i := range v.Releases.Nodes {
			one.Values = append(one.Values, value(i))
		}
		if c := newLineChart(id, l.Text(title), l.Text("Release"), rows, []chart.Series{one}, format); c != nil {
			c.Columns = []tableColumn{{Name: l.Text(title)}}
			v.Catalog = append(v.Catalog, *c)
		}
	}
	count := func(n int) *chart.Value { return &chart.Value{Number: float64(n), Text: l.Number(n)} }
	add("tools", "Active tools", whole, func(i int) *chart.Value { return count(v.Releases.Nodes[i].Stats.ToolsTotal) })
	add("scores", "Average score", average, func(i int) *chart.Value {
		if score := v.Releases.Nodes[i].Stats.ToolsAvgScore; score != nil {
			return &chart.Value{Number: *score, Text: formatAverage(l, score)}
		}
		return nil
	})
	add("comparisons", "Comparisons", whole, func(i int) *chart.Value { return count(v.Releases.Nodes[i].Stats.ComparisonsTotal) })
	add("retired", "Retired tools", whole, func(i int) *chart.Value { return count(v.Releases.Nodes[i].Stats.ToolsRetired) })
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
	if len(selected) == 0 {
		return
	}
	slices.SortStableFunc(selected, func(a, b categorySeries) int { return cmp.Compare(size[b.Key], size[a.Key]) })
	var rows []tableRow
	for _, p := range selected[0].Points {
		month, err := time.Parse(time.DateOnly, p.Start)
		if err != nil {
			return
		}
		rows = append(rows, tableRow{Name: l.Month(month)})
	}
	var all []chart.Series
	var columns []tableColumn
	for i, s := range selected {
		one := chart.Series{Name: labelOf(v.Categories, s.Key)}
		for _, p := range s.Points {
			var value *chart.Value
			if p.Value != nil {
				value = &chart.Value{Number: *p.Value, Text: format(*p.Value)}
			}
			one.Values = append(one.Values, value)
		}
		all = append(all, one)
		columns = append(columns, tableColumn{Name: one.Name, Catalog: true, Series: i, HasColor: i < chart.MaxSeries})
	}
	if c := newLineChart(id, l.Text(title), l.Text("Month"), rows, all, format); c != nil {
		c.Columns = columns
		v.ByCategory = append(v.ByCategory, *c)
	}
}

// newLineChart returns nil if there is nothing to draw.
func newLineChart(id, title, first string, rows []tableRow, all []chart.Series, format func(float64) string) *lineChart {
	c := &lineChart{ID: id, Title: title, First: first}
	var times []string
	for i, row := range rows {
		for _, s := range all {
			text := noScore
			if s.Values[i] != nil {
				text = s.Values[i].Text
			}
			row.Values = append(row.Values[:len(row.Values):len(row.Values)], text)
		}
		times, c.Rows = append(times, row.Name), append(c.Rows, row)
	}
	slices.Reverse(c.Rows) // newest first, as in all lists
	if c.Lines = chart.NewLines(times, all, format); c.Lines == nil {
		return nil
	}
	return c
}

// The graveyard.

type retiredToolsView struct {
	RetiredTools     listOf[tool]
	RetirementGroups []struct {
		Period, Reason, Category string
		Count                    int
	}
	Categories []category
	Years      []retiredYear  `json:"-"` // the tools of the page
	Chart      *chart.Columns `json:"-"` // nil if there is nothing to draw
	Periods    []retiredCount `json:"-"` // what the chart shows, newest first
	ByMonth    bool           `json:"-"`
}

type retiredYear struct {
	Year   string
	Months []retiredMonth
}

type retiredMonth struct {
	Name  string
	Tools []tool
}

type retiredCount struct {
	Name  string
	Count int
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
	counts := map[string]int{}
	var first, last string
	for _, g := range v.RetirementGroups {
		if reason := r.Param("reason"); reason != "" && reason != g.Reason {
			continue
		}
		if category := r.Param("category"); category != "" && category != g.Category {
			continue
		}
		counts[g.Period] += g.Count
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
	var labels, titles []string
	var heights []int
	for at := from; !at.After(to); at = at.AddDate(0, 1, 0) {
		name, year := r.lang.Month(at), strconv.Itoa(at.Year())
		count := counts[at.Format(layout)]
		switch {
		case v.ByMonth:
			labels, titles, heights = append(labels, at.Format("01/06")), append(titles, name), append(heights, count)
		case len(titles) > 0 && titles[len(titles)-1] == year:
			heights[len(heights)-1] += count
		default:
			labels, titles, heights = append(labels, year), append(titles, year), append(heights, count)
		}
	}
	for i, title := range titles {
		v.Periods = append(v.Periods, retiredCount{title, heights[i]})
	}
	slices.Reverse(v.Periods)
	v.Chart = chart.NewColumns(labels, titles, heights)
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
