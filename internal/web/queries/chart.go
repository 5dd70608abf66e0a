package queries

import (
	"slices"

	"palmares/internal/core/lang"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/words"
)

const (
	maxBars   = 40
	maxTiled  = 3     // values of a figure; with more, it is drawn over time
	maxPoints = 2_000 // in all plots; a result with more is a table only

	negativeSeries = 1 // color of negative bars among positive ones
)

// newChart returns the chart of a table, or nil if none suits it. Of a result that is too
// large, it returns nil and marks the table.
func newChart(l lang.Language, t *table, chosen saved.Chart, c catalog) *chart.Chart {
	switch p := t.Plan(chosen); {
	case p.Number == saved.NoColumn:
	case p.Kind == saved.Tiles && len(t.Rows) == 1:
		return t.tiles(l, c)
	case p.X == saved.NoColumn:
	case (p.Kind == saved.Line || p.Kind == saved.Tiles) && t.KindOf(p.X) == saved.Dates:
		return t.lines(l, p, chosen.Y, c)
	case p.Kind == saved.Bar || p.Kind == saved.Line:
		return t.bars(l, p, c)
	}
	return nil
}

// fits reports whether a chart of some numbers is small enough, and marks the table if not.
func (t *table) fits(numbers *chart.Table, points int) bool {
	t.Undrawn = t.Undrawn || points > maxPoints || numbers != nil && len(numbers.Slots)*len(numbers.Names) > chart.MaxNumbers
	return !t.Undrawn
}

// bars shows a number by a key, or by a key and a second column. With numbers as the
// second, each key has columns of its own.
func (t *table) bars(l lang.Language, p saved.Plan, c catalog) *chart.Chart {
	name, unit := t.words(l, p.Number, c)
	key, _ := t.words(l, p.X, c)
	shown := &chart.Chart{Title: l.Text("%s by %s", name, lowered(key))}
	if p.Series != saved.NoColumn && t.Numeric(p.Series) {
		data := chart.Table{Kind: chart.Columns, Unit: unit}
		for _, r := range t.Rows {
			data.Add(chart.Slot{From: r[p.Series].Number, Text: r[p.Series].Text}, c.name(l, t.Columns[p.X], r[p.X].Text), r[p.Number].Value())
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
		b := chart.Bar{Label: c.name(l, t.Columns[p.X], r[p.X].Text), Value: r[p.Number].Number}
		if r[p.Number].IsNumber {
			all = append(all, b.Value)
		}
		if p.Series != saved.NoColumn {
			second, _ := t.words(l, p.Series, c)
			shown.Title = l.Text("%s by %s and %s", name, lowered(key), lowered(second))
			b.Label = chart.Title(b.Label, c.name(l, t.Columns[p.Series], r[p.Series].Text))
			if b.Series = slices.Index(series, r[p.Series].Text); b.Series < 0 {
				b.Series, series = len(series), append(series, r[p.Series].Text)
			}
		}
		bars = append(bars, b)
	}
	if len(all) < 2 {
		return nil
	}
	format := unit.Formatter(l, all...)
	for i := range bars {
		if t.Rows[i][p.Number].IsNumber {
			bars[i].Text = t.number(l, t.Rows[i], p.Number, format)
		}
		if bars[i].Value < 0 && slices.Max(all) > 0 && p.Series == saved.NoColumn {
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
func (t *table) lines(l lang.Language, p saved.Plan, only string, c catalog) *chart.Chart {
	name, unit := t.words(l, p.Number, c)
	field := saved.LastName(t.Columns[p.Number])
	isFlow := words.IsFlow(field)
	shown := &chart.Chart{Title: l.Text("%s over time", name)}
	isMetric := p.Series != saved.NoColumn && saved.LastName(t.Columns[p.Series]) == "metric"
	if p.Series != saved.NoColumn {
		by, _ := t.words(l, p.Series, c)
		shown.Title = l.Text("%s over time by %s", name, lowered(by))
	} else if isFlow {
		shown.Title = name
	}
	if isMetric && !slices.ContainsFunc(t.Rows, func(r []saved.Cell) bool { return r[p.Series].Text == only }) {
		only = ""
	}
	figures := map[string]*chart.Table{}
	var metrics []string
	for _, r := range t.Rows {
		metric, series := "", ""
		switch {
		case r[p.X].Text == "":
			continue
		case isMetric:
			if metric = r[p.Series].Text; only != "" && metric != only {
				continue // the CSV has a column for each metric
			}
		case p.Series != saved.NoColumn:
			series = c.name(l, t.Columns[p.Series], r[p.Series].Text)
		}
		if figures[metric] == nil {
			figures[metric] = &chart.Table{Unit: unit}
			metrics = append(metrics, metric)
		}
		figures[metric].Add(chart.Period(l, r[p.X].Text), series, r[p.Number].Value())
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
			}
			if metric == "count" || metric == "tested" {
				plot.Kind = chart.Steps // the numbers last until the next edition
			}
			if first := chart.Time(c.from); !isMetric && isFlow && plot.X.From < first && first <= plot.X.To {
				shown.Notes = []string{l.Text("Before %s: entered with the first edition.", l.Month(c.from))}
			}
		}
		plots, tiles = append(plots, drawn...), append(tiles, figure.Tile(l, name))
	}
	switch {
	case !t.fits(nil, plots.Points()):
		return nil
	case isMetric && (p.Kind == saved.Tiles || len(figures[metrics[0]].Slots) <= maxTiled):
		shown.Title, shown.Content = l.Text("Key figures"), tiles
	case isMetric:
		if shown.Title, shown.Content = l.Text("Figures over time"), plots; figures["count"] != nil && figures["additions"] != nil {
			shown.Notes = append(shown.Notes, l.Text("Added tools include those that became active again; removals are not shown."))
		}
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
