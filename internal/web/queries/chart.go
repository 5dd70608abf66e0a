package queries

import (
	"cmp"
	"slices"
	"strings"

	"palmares/internal/core/lang"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/words"
)

// form is how a chart shows a table: a kind ("line", "bar", "tiles", "table", or "" if
// the table decides), and the columns of its axes and series, as in the CSV, or "".
type form struct{ Kind, X, Y, Series string }

const (
	noColumn = -1
	maxBars  = 40
	maxTiled = 3 // values of a figure; with more, it is drawn over time

	// What a chart is planned and drawn from. A result with more is a table only.
	maxAxes   = 30    // columns
	maxPlans  = 100   // pairs of columns that are tried
	maxPoints = 2_000 // in all plots

	negativeSeries = 1 // color of negative bars among positive ones
)

// plan is what a chart shows: a number by a key or over time, for each of a series.
type plan struct {
	kind              string
	number, x, series int
}

// newChart returns the chart of a table, or nil if none suits it. Unless the form says
// otherwise, it shows the last column with numbers, since queries usually select the
// value they are about last: by a key that identifies the rows, over time, or by two
// columns. A single row of numbers becomes tiles. Of a result that is too large, it
// returns nil and marks the table.
func newChart(l lang.Language, t *table, f form, c catalog) *chart.Chart {
	if f.Kind == saved.Table {
		return nil
	}
	if t.Undrawn = len(t.Columns) > maxAxes; t.Undrawn {
		return nil
	}
	p := t.plan()
	for column, name := range map[*int]string{&p.x: f.X, &p.number: f.Y, &p.series: f.Series} {
		if at := t.column(name); at != noColumn {
			*column = at
		}
	}
	if f.X != "" && t.column(f.Y) != noColumn && f.Series == "" {
		p.series = noColumn
	}
	p.kind = cmp.Or(f.Kind, p.kind)
	switch {
	case p.number == noColumn:
	case p.kind == "tiles" && len(t.Rows) == 1:
		return t.tiles(l, c)
	case p.x == noColumn:
	case (p.kind == "line" || p.kind == "tiles") && t.kindOf(p.x) == dates:
		return t.lines(l, p, f.Y, c)
	case p.kind == "bar" || p.kind == "line":
		return t.bars(l, p, c)
	}
	return nil
}

// column returns a column by its name.
func (t *table) column(name string) int { return slices.Index(t.Columns, name) }

// plan returns what the columns suggest. Its kind is "" if there is nothing to draw.
func (t *table) plan() plan {
	var values, keys, days []int
	for i := range t.Columns {
		switch t.kindOf(i) {
		case numbers:
			values = append(values, i)
		case dates:
			days = append(days, i)
		case texts:
			keys = append(keys, i)
		}
	}
	none := plan{"", noColumn, noColumn, noColumn}
	if len(values) == 0 {
		return none
	}
	none.number = values[len(values)-1]
	if len(t.Rows) == 1 && len(values) > 1 {
		return plan{"tiles", none.number, noColumn, noColumn}
	}
	var plans []plan // the first one whose columns identify the rows is taken
	slices.SortStableFunc(keys, t.byReadability)
	for _, key := range keys {
		plans = append(plans, plan{"bar", t.numberFor(key, values), key, noColumn})
	}
	for _, date := range days {
		plans = append(plans, plan{"line", none.number, date, noColumn})
		for _, key := range keys {
			plans = append(plans, plan{"line", none.number, date, key})
		}
	}
	for _, seconds := range [][]int{keys, values[:len(values)-1]} {
		for _, first := range keys {
			for _, second := range seconds {
				plans = append(plans, plan{"bar", none.number, first, second})
			}
		}
	}
	tried := plans[:min(len(plans), maxPlans)]
	if i := slices.IndexFunc(tried, func(p plan) bool { return t.identifies(p.x, p.series) }); i >= 0 {
		return plans[i]
	}
	t.Undrawn = len(tried) < len(plans)
	return none
}

// numberFor returns the last number of the key's object, or of one around or inside
// it. The score of another tool says nothing about the one that the key names.
func (t *table) numberFor(key int, values []int) int {
	parent := func(column int) string { return t.Columns[column][:strings.LastIndexByte(t.Columns[column], '.')+1] }
	for _, number := range slices.Backward(values) {
		if a, b := parent(key), parent(number); strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
			return number
		}
	}
	return values[len(values)-1]
}

// byReadability orders names before other keys, and slugs and ids after them.
func (t *table) byReadability(a, b int) int {
	rank := map[string]int{"name": -1, "title": -1, "slug": 1, "id": 1}
	return rank[lastName(t.Columns[a])] - rank[lastName(t.Columns[b])]
}

// identifies reports whether the values of two columns, of which the second may be none,
// differ in all rows.
func (t *table) identifies(a, b int) bool {
	seen := make(map[[2]string]bool, len(t.Rows))
	for _, r := range t.Rows {
		key := [2]string{r[a].Text}
		if b != noColumn {
			key[1] = r[b].Text
		}
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// fits reports whether a chart of some numbers is small enough, and marks the table if not.
func (t *table) fits(numbers *chart.Table, points int) bool {
	t.Undrawn = t.Undrawn || points > maxPoints || numbers != nil && len(numbers.Slots)*len(numbers.Names) > chart.MaxNumbers
	return !t.Undrawn
}

// bars shows a number by a key, or by a key and a second column. With numbers as the
// second, each key has columns of its own.
func (t *table) bars(l lang.Language, p plan, c catalog) *chart.Chart {
	name, unit := t.words(l, p.number, c)
	key, _ := t.words(l, p.x, c)
	shown := &chart.Chart{Title: l.Text("%s by %s", name, lowered(key))}
	if p.series != noColumn && t.Numeric(p.series) {
		data := chart.Table{Kind: chart.Columns, Unit: unit}
		for _, r := range t.Rows {
			data.Add(chart.Slot{From: r[p.series].Number, Text: r[p.series].Text}, c.name(l, t.Columns[p.x], r[p.x].Text), r[p.number].number())
		}
		if !t.fits(&data, 0) {
			return nil
		}
		data.SetRanges(l)
		plots, notes := data.Plots(l)
		if shown.Content, shown.Notes = plots, notes; !t.fits(nil, plots.Points()) {
			return nil
		}
		return shown
	}
	var bars chart.Bars
	var all []float64
	var series []string
	for _, r := range t.Rows[:min(len(t.Rows), maxBars)] {
		b := chart.Bar{Label: c.name(l, t.Columns[p.x], r[p.x].Text), Value: r[p.number].Number}
		if r[p.number].IsNumber {
			all = append(all, b.Value)
		}
		if p.series != noColumn {
			second, _ := t.words(l, p.series, c)
			shown.Title = l.Text("%s by %s and %s", name, lowered(key), lowered(second))
			b.Label = chart.Title(b.Label, c.name(l, t.Columns[p.series], r[p.series].Text))
			if b.Series = slices.Index(series, r[p.series].Text); b.Series < 0 {
				b.Series, series = len(series), append(series, r[p.series].Text)
			}
		}
		bars = append(bars, b)
	}
	if len(all) < 2 {
		return nil
	}
	format := unit.Formatter(l, all...)
	for i := range bars {
		if t.Rows[i][p.number].IsNumber {
			bars[i].Text = format(bars[i].Value)
		}
		if bars[i].Value < 0 && slices.Max(all) > 0 && p.series == noColumn {
			bars[i].Series = negativeSeries
		}
	}
	if shown.Content = bars; t.IsMore {
		shown.Notes = append(shown.Notes, l.Text("The chart shows the first %d rows.", len(bars)))
	} else if len(bars) < t.Total {
		shown.Notes = append(shown.Notes, l.Text("The chart shows %d of %d rows.", len(bars), t.Total))
	}
	return shown
}

// lines shows a number over time. Figures of different kinds, which the metrics of a
// series are, have a plot each, or a tile if there are few values.
func (t *table) lines(l lang.Language, p plan, only string, c catalog) *chart.Chart {
	name, unit := t.words(l, p.number, c)
	field := lastName(t.Columns[p.number])
	isFlow := words.IsFlow(field)
	shown := &chart.Chart{Title: l.Text("%s over time", name)}
	isMetric := p.series != noColumn && lastName(t.Columns[p.series]) == "metric"
	if p.series != noColumn {
		by, _ := t.words(l, p.series, c)
		shown.Title = l.Text("%s over time by %s", name, lowered(by))
	} else if isFlow {
		shown.Title = name
	}
	if isMetric && !slices.ContainsFunc(t.Rows, func(r []cell) bool { return r[p.series].Text == only }) {
		only = ""
	}
	figures := map[string]*chart.Table{}
	var metrics []string
	for _, r := range t.Rows {
		metric, series := "", ""
		switch {
		case r[p.x].Text == "":
			continue
		case isMetric:
			if metric = r[p.series].Text; only != "" && metric != only {
				continue // the CSV has a column for each metric
			}
		case p.series != noColumn:
			series = c.name(l, t.Columns[p.series], r[p.series].Text)
		}
		if figures[metric] == nil {
			figures[metric] = &chart.Table{Unit: unit}
			metrics = append(metrics, metric)
		}
		figures[metric].Add(chart.Period(l, r[p.x].Text), series, r[p.number].number())
	}
	var plots chart.Plots
	var tiles chart.Tiles
	if t.Undrawn = len(metrics) > chart.MaxPlots; t.Undrawn {
		return nil
	}
	for _, metric := range metrics {
		figure := figures[metric]
		if !t.fits(figure, plots.Points()) {
			return nil
		}
		if isMetric {
			name = metricName(l, metric)
			_, figure.Unit = words.Field(l, metric)
			isFlow = metric != "count" && words.IsFlow(metric)
		}
		if isFlow {
			figure.Kind = chart.Columns
		}
		figure.SetTimes(l, c.until)
		drawn, notes := figure.Plots(l)
		shown.Notes = append(shown.Notes, notes...)
		for _, plot := range drawn {
			if isMetric {
				plot.Heading = name
			} else if first := chart.Time(c.from); isFlow && plot.X.From <= first && first <= plot.X.To {
				plot.Remarks = []chart.Remark{{X: first, Text: l.Text("first import")}}
			}
		}
		plots, tiles = append(plots, drawn...), append(tiles, figure.Tile(l, name))
	}
	switch {
	case !t.fits(nil, plots.Points()):
		return nil
	case isMetric && (p.kind == "tiles" || len(figures[metrics[0]].Slots) <= maxTiled):
		shown.Title, shown.Content = l.Text("Key figures"), tiles
	case isMetric:
		shown.Title, shown.Content = l.Text("Figures over time"), plots
	case len(plots) == 0 || len(figures[""].Slots) < 2:
		return nil
	default:
		shown.Content = plots
	}
	return shown
}

// tiles shows the numbers of a single row.
func (t *table) tiles(l lang.Language, c catalog) *chart.Chart {
	var tiles chart.Tiles
	for i := range t.Columns {
		if value := t.Rows[0][i]; value.IsNumber {
			name, unit := t.words(l, i, c)
			tiles = append(tiles, chart.Tile{Label: name, Text: unit.Format(l, value.Number)})
		}
	}
	if tiles == nil {
		return nil
	}
	return &chart.Chart{Content: tiles, Title: l.Text("Key figures")}
}
