package queries

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
	"palmares/internal/web/words"
)

// form is how a chart shows a table: a kind ("line", "bar", "tiles", "table", or "" if
// the table decides), and the columns of its axes and series, as in the CSV, or "".
type form struct{ Kind, X, Y, Series string }

const (
	noColumn  = -1
	maxBars   = 40
	maxPoints = 500 // on a line
	maxTiled  = 3   // values of a figure; with more, it is drawn over time

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
// columns. A single row of numbers becomes tiles.
func newChart(l lang.Language, t *table, f form, c catalog) *chart.Chart {
	p, ok := t.plan()
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
	case len(t.Rows) == 0 || !ok && (f.Kind == "" || f.X == "" || f.Y == "") && f.Kind != "tiles":
		return nil
	case p.kind == "tiles" && len(t.Rows) == 1:
		return t.tiles(l, c)
	case (p.kind == "line" || p.kind == "tiles") && t.kindOf(p.x) == dates:
		return t.lines(l, p, f.Y, c)
	case p.kind == "bar" || p.kind == "line":
		return t.bars(l, p, c)
	}
	return nil
}

// column returns a column by its name or the end of it, since a CSV leaves out the
// names of lists.
func (t *table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(column string) bool {
		return name != "" && (column == name || strings.HasSuffix(column, "."+name))
	})
}

func (t *table) plan() (p plan, ok bool) {
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
	p = plan{"", noColumn, noColumn, noColumn}
	if len(values) == 0 {
		return p, false
	}
	p.number = values[len(values)-1]
	if len(t.Rows) == 1 {
		p.kind = "tiles"
		return p, len(values) > 1
	}
	keys = t.withoutIdentifiers(keys)
	for _, key := range keys {
		if t.identifies(key) {
			return plan{"bar", t.numberFor(key, values), key, noColumn}, true
		}
	}
	for _, date := range days {
		if t.identifies(date) {
			return plan{"line", p.number, date, noColumn}, true
		}
		for _, key := range keys {
			if !t.equivalent(key, date) && t.identifies(date, key) {
				return plan{"line", p.number, date, key}, true
			}
		}
	}
	for _, seconds := range [][]int{keys, values[:len(values)-1]} {
		for _, first := range keys {
			for _, second := range seconds {
				if first != second && t.identifies(first, second) {
					return plan{"bar", p.number, first, second}, true
				}
			}
		}
	}
	return p, false
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

// withoutIdentifiers drops slugs and ids if there is something better to read, and
// puts names first.
func (t *table) withoutIdentifiers(keys []int) []int {
	var names, others []int
	for _, key := range keys {
		switch lastName(t.Columns[key]) {
		case "slug", "id":
		case "name", "title":
			names = append(names, key)
		default:
			others = append(others, key)
		}
	}
	if readable := append(names, others...); len(readable) > 0 {
		return readable
	}
	return keys
}

// identifies reports whether no two rows have the same values in some columns.
func (t *table) identifies(columns ...int) bool { return t.distinct(columns...) == len(t.Rows) }

// equivalent reports whether two rows have the same value in one column exactly if
// they have the same value in the other.
func (t *table) equivalent(a, b int) bool {
	both := t.distinct(a, b)
	return both == t.distinct(a) && both == t.distinct(b)
}

func (t *table) distinct(columns ...int) int {
	seen := map[string]bool{}
	for _, r := range t.Rows {
		key := ""
		for _, i := range columns {
			key += r[i].Text + "\x00"
		}
		seen[key] = true
	}
	return len(seen)
}

// bars shows a number by a key, or by a key and a second column. With numbers as the
// second, each key has columns of its own.
func (t *table) bars(l lang.Language, p plan, c catalog) *chart.Chart {
	name, unit := t.words(l, p.number, c)
	key, _ := t.words(l, p.x, c)
	shown := &chart.Chart{Title: l.Text("%s by %s", name, lowered(key))}
	if p.series != noColumn {
		if t.Numeric(p.series) {
			shown.Content = t.distributions(l, p, unit, c)
			return shown
		}
		second, _ := t.words(l, p.series, c)
		shown.Title = l.Text("%s by %s and %s", name, lowered(key), lowered(second))
	}
	var bars chart.Bars
	var series []string
	positive, drawn := false, 0
	for _, r := range t.Rows[:min(len(t.Rows), maxBars)] {
		b := chart.Bar{Label: c.name(l, t.Columns[p.x], r[p.x].Text), Value: r[p.number].Number}
		if r[p.number].IsNumber {
			b.Text = unit.Format(l, b.Value)
			drawn, positive = drawn+1, positive || b.Value > 0
		}
		if p.series != noColumn {
			b.Label = chart.Title(b.Label, c.name(l, t.Columns[p.series], r[p.series].Text))
			b.Series = indexOf(&series, r[p.series].Text)
		}
		bars = append(bars, b)
	}
	for i := range bars {
		if positive && bars[i].Value < 0 && p.series == noColumn {
			bars[i].Series = negativeSeries
		}
	}
	if drawn < 2 {
		return nil
	}
	if shown.Content = bars; len(bars) < t.Total {
		shown.Notes = append(shown.Notes, l.Text("The chart shows %d of %d rows.", len(bars), t.Total))
	}
	return shown
}

// distributions shows the number of each key in ranges that start with the second
// column.
func (t *table) distributions(l lang.Language, p plan, unit chart.Unit, c catalog) chart.Plots {
	var names []string
	var all []chart.Series
	first, step, last := math.Inf(1), math.Inf(1), math.Inf(-1)
	for _, r := range t.Rows {
		from := r[p.series].Number
		if i := indexOf(&names, c.name(l, t.Columns[p.x], r[p.x].Text)); i == len(all) {
			all = append(all, chart.Series{Name: names[i]})
		} else if points := all[i].Points; len(points) > 0 {
			step = min(step, math.Abs(from-points[len(points)-1].X))
		}
		s := &all[indexOf(&names, c.name(l, t.Columns[p.x], r[p.x].Text))]
		text := unit.Format(l, r[p.number].Number)
		s.Points = append(s.Points, chart.Point{X: from, Y: r[p.number].Number, Text: chart.Title(s.Name, r[p.series].Text, text), Label: text})
		first, last = min(first, from), max(last, from)
	}
	if math.IsInf(step, 0) || step == 0 {
		step = 1
	}
	for _, s := range all {
		for i := range s.Points {
			s.Points[i].End = s.Points[i].X + step
		}
	}
	plots, _ := chart.NewLines(l, chart.Columns, chart.Numbers(l, chart.Number, []float64{first, last + step}, true, 5), unit, all)
	return plots
}

// lines shows a number over time. Figures of different kinds, which the metrics of a
// series are, have a plot each, or a tile if there are few values.
func (t *table) lines(l lang.Language, p plan, only string, c catalog) *chart.Chart {
	times := newTimes(t, p.x, c.until)
	name, unit := t.words(l, p.number, c)
	shown := &chart.Chart{Title: l.Text("%s over time", name)}
	isMetric := p.series != noColumn && lastName(t.Columns[p.series]) == "metric"
	groups := map[string][][]cell{}
	var keys []string
	for _, r := range t.Rows {
		key := ""
		if p.series != noColumn {
			key = r[p.series].Text
		}
		if isMetric && t.column(only) == noColumn && only != "" && key != only {
			continue // the CSV has a column for each metric
		}
		keys = append(keys, key)
		groups[key] = append(groups[key], r)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if isMetric {
		indexes := map[string]int{}
		for i, r := range slices.Backward(t.Rows) {
			indexes[r[p.series].Text] = i
		}
		slices.SortFunc(keys, func(a, b string) int { return indexes[a] - indexes[b] })
		var plots chart.Plots
		var tiles chart.Tiles
		for _, metric := range keys {
			_, unit := words.Field(l, metric)
			name := metricName(l, metric)
			s := times.series(l, "", groups[metric], p, unit, metric != "count" && words.IsFlow(metric))
			tiles = append(tiles, tileOf(l, name, unit, s))
			single, _ := chart.NewLines(l, kindOfMetric(metric), times.axis(l), unit, []chart.Series{s})
			for _, plot := range single {
				plot.Heading = name
				plots = append(plots, plot)
			}
		}
		if shown.Title = l.Text("Figures over time"); len(times.starts) <= maxTiled || p.kind == "tiles" {
			shown.Title, shown.Content = l.Text("Key figures"), tiles
			return shown
		}
		shown.Content = plots
		return shown
	}
	isFlow := words.IsFlow(lastName(t.Columns[p.number]))
	kind := chart.Lines
	if isFlow {
		kind = chart.Columns
		shown.Title = name
	}
	if p.series != noColumn {
		by, _ := t.words(l, p.series, c)
		shown.Title = l.Text("%s over time by %s", name, lowered(by))
	}
	var all []chart.Series
	for _, key := range keys {
		name := ""
		if p.series != noColumn {
			name = c.name(l, t.Columns[p.series], key)
		}
		all = append(all, times.series(l, name, groups[key], p, unit, isFlow))
	}
	plots, note := chart.NewLines(l, kind, times.axis(l), unit, all)
	if len(plots) == 0 || len(times.starts) < 2 {
		return nil
	}
	if isFlow && !c.from.IsZero() && times.contains(c.from) {
		for _, plot := range plots {
			plot.Remarks = append(plot.Remarks, chart.Remark{X: chart.Time(c.from), Text: l.Text("first import")})
		}
	}
	if shown.Content = plots; note != "" {
		shown.Notes = append(shown.Notes, note)
	}
	return shown
}

func kindOfMetric(metric string) chart.Kind {
	if metric != "count" && words.IsFlow(metric) {
		return chart.Columns
	}
	return chart.Lines
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
	return &chart.Chart{Content: tiles, Title: l.Text("Key figures")}
}

// tileOf shows the latest value of a series, and its change.
func tileOf(l lang.Language, name string, unit chart.Unit, s chart.Series) chart.Tile {
	tile := chart.Tile{Label: name, Text: "–"}
	if last := len(s.Points) - 1; last >= 0 {
		tile.Text = s.Points[last].Label
		if last > 0 {
			change, before := math.Round((s.Points[last].Y-s.Points[last-1].Y)*100)/100, s.Points[last-1].XText
			switch {
			case change > 0:
				tile.Change = l.Text("%s since %s", "+"+unit.Format(l, change), before)
			case change < 0:
				tile.Change = l.Text("%s since %s", unit.Format(l, change), before)
			default:
				tile.Change = l.Text("unchanged since %s", before)
			}
		}
	}
	return tile
}

// times are the periods or days of a column, with those without rows.
type times struct {
	column int
	starts []time.Time
	end    time.Time // where the axis ends
	next   func(time.Time) time.Time
	text   func(lang.Language, time.Time) string
}

func newTimes(t *table, column int, until time.Time) *times {
	found := &times{column: column}
	for _, r := range t.Rows {
		start, next, text := parsePeriod(r[column].Text)
		if start.IsZero() {
			continue
		}
		found.starts, found.text = append(found.starts, start), text
		if next != nil {
			found.next = next
		}
	}
	slices.SortFunc(found.starts, time.Time.Compare)
	found.starts = slices.Compact(found.starts)
	if len(found.starts) == 0 {
		return found
	}
	last := found.starts[len(found.starts)-1]
	if found.end = last; until.After(last) {
		found.end = until
	}
	if found.next == nil {
		return found
	}
	var all []time.Time
	for at := found.starts[0]; !at.After(found.end) && len(all) < maxPoints; at = found.next(at) {
		all = append(all, at)
	}
	found.starts = all
	return found
}

func (ts *times) axis(l lang.Language) chart.Axis {
	from, to := ts.starts[0], ts.end
	if ts.next != nil {
		to = ts.next(ts.starts[len(ts.starts)-1])
	}
	return chart.Dates(l, from, to)
}

func (ts *times) contains(at time.Time) bool {
	return !at.Before(ts.starts[0]) && !at.After(ts.end)
}

// series returns the values of some rows. A time without a value is zero for what
// happened in periods, and a gap for others.
func (ts *times) series(l lang.Language, name string, rows [][]cell, p plan, unit chart.Unit, isFlow bool) chart.Series {
	values := map[time.Time]cell{}
	for _, r := range rows {
		start, _, _ := parsePeriod(r[ts.column].Text)
		values[start] = r[p.number]
	}
	s, gap := chart.Series{Name: name}, false
	for _, at := range ts.starts {
		value := values[at]
		if !value.IsNumber && !isFlow {
			gap = len(s.Points) > 0
			continue
		}
		point := chart.Point{X: chart.Time(at), Y: value.Number, Gap: gap, XText: ts.text(l, at), Label: unit.Format(l, value.Number)}
		if ts.next != nil {
			point.End = chart.Time(ts.next(at))
		}
		point.Text = chart.Title(name, point.XText, point.Label)
		s.Points, gap = append(s.Points, point), false
	}
	return s
}

// parsePeriod reads a year, quarter, month, week or day. next is nil for a day, because
// nothing says how often there is one.
func parsePeriod(text string) (start time.Time, next func(time.Time) time.Time, format func(lang.Language, time.Time) string) {
	every := func(months, days int) func(time.Time) time.Time {
		return func(at time.Time) time.Time { return at.AddDate(0, months, days) }
	}
	year, rest, _ := strings.Cut(text, "-")
	number, err := strconv.Atoi(year)
	part, partErr := strconv.Atoi(strings.TrimLeft(rest, "QW"))
	switch {
	case err != nil:
	case rest == "":
		return time.Date(number, 1, 1, 0, 0, 0, 0, time.UTC), every(12, 0), func(_ lang.Language, at time.Time) string { return at.Format("2006") }
	case strings.HasPrefix(rest, "Q") && partErr == nil:
		return time.Date(number, time.Month(3*part-2), 1, 0, 0, 0, 0, time.UTC), every(3, 0), func(l lang.Language, at time.Time) string {
			return l.Text("Q%d %s", (int(at.Month())+2)/3, at.Format("2006"))
		}
	case strings.HasPrefix(rest, "W") && partErr == nil:
		fourth := time.Date(number, 1, 4, 0, 0, 0, 0, time.UTC) // is in the first week
		return fourth.AddDate(0, 0, 7*(part-1)-(int(fourth.Weekday())+6)%7), every(0, 7), func(l lang.Language, at time.Time) string {
			return l.Text("week of %s", l.ShortDay(at))
		}
	case len(rest) == 2:
		start, _ = time.Parse("2006-01", text)
		return start, every(1, 0), lang.Language.Month
	}
	start, _ = time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	return start, nil, lang.Language.ShortDay
}

// indexOf returns the position of a text, which is added if it is new.
func indexOf(texts *[]string, text string) int {
	at := slices.Index(*texts, text)
	if at < 0 {
		at = len(*texts)
		*texts = append(*texts, text)
	}
	return at
}
