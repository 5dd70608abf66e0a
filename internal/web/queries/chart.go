package queries

import (
	"regexp"
	"slices"
	"strings"

	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// figure is a chart of one number by one or two keys as bars, or over time as lines.
type figure struct {
	chart.Chart
	Title string // what it shows
	Note  string // what it leaves out, or ""
}

const (
	maxBars = 40

	negativeSeries = 1 // color of negative bars among positive ones
)

var period = regexp.MustCompile(`^[0-9]{4}(-([0-9]{2}(-[0-9]{2}(T.*)?)?|Q[1-4]|W[0-9]{2}))?$`)

// newChart returns the chart of a table, or nil if none suits it. It shows the last
// column with numbers, since queries usually select the value they are about last:
// by a key that identifies the rows, over time, or by two columns.
func newChart(l lang.Language, t *table) *figure {
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
	if len(values) == 0 || len(t.Rows) < 2 {
		return nil
	}
	number, others := values[len(values)-1], values[:len(values)-1]
	keys = t.withoutIdentifiers(keys)
	for _, key := range keys {
		if t.identifies(key) {
			return t.bars(l, t.numberFor(key, values), key)
		}
	}
	for _, date := range days {
		if t.identifies(date) {
			return t.lines(l, number, date)
		}
		for _, key := range keys {
			if !t.equivalent(key, date) && t.identifies(date, key) {
				return t.lines(l, number, date, key)
			}
		}
	}
	for _, seconds := range [][]int{keys, others} {
		for _, first := range keys {
			for _, second := range seconds {
				if first != second && t.identifies(first, second) {
					return t.bars(l, number, first, second)
				}
			}
		}
	}
	return nil
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
		switch t.Columns[key][strings.LastIndexByte(t.Columns[key], '.')+1:] {
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

const (
	empty = iota
	numbers
	dates
	texts
)

// kindOf returns what all cells of a column have in common.
func (t *table) kindOf(column int) int {
	kind := empty
	for _, r := range t.Rows {
		c, found := r[column], texts
		switch {
		case c.Text == "":
			continue
		case c.IsNumber:
			found = numbers
		case period.MatchString(c.Text):
			found = dates
		}
		if kind == empty {
			kind = found
		} else if kind != found {
			return texts
		}
	}
	return kind
}

func (t *table) bars(l lang.Language, number int, keys ...int) *figure {
	var values []float64
	rows := t.Rows[:min(len(t.Rows), maxBars)]
	for _, r := range rows {
		if r[number].Text != "" {
			values = append(values, r[number].Number)
		}
	}
	if len(values) < 2 {
		return nil
	}
	var bars chart.Bars
	var series []string
	for _, r := range rows {
		b := chart.Bar{Label: r[keys[0]].Text, Text: withMinus(r[number].Text), Value: r[number].Number}
		switch {
		case len(keys) == 2:
			b.Label = chart.Title(b.Label, r[keys[1]].Text)
			b.Series = indexOf(&series, r[keys[1]].Text) % chart.MaxSeries
		case b.Value < 0 && slices.Max(values) > 0:
			b.Series = negativeSeries
		}
		bars = append(bars, b)
	}
	by := t.Columns[keys[0]]
	if len(keys) == 2 {
		by += " " + l.Text("and") + " " + t.Columns[keys[1]]
	}
	f := &figure{Chart: bars, Title: l.Text("%s by %s", t.Columns[number], by)}
	if len(rows) < len(t.Rows) {
		f.Note = l.Text("The chart shows %d of %d rows.", len(rows), t.Total)
	}
	return f
}

// withMinus replaces the hyphen of a negative number by a minus sign.
func withMinus(number string) string {
	if rest, isNegative := strings.CutPrefix(number, "-"); isNegative {
		return "−" + rest
	}
	return number
}

func (t *table) lines(l lang.Language, number, date int, keys ...int) *figure {
	rows := slices.Clone(t.Rows)
	rows = slices.DeleteFunc(rows, func(r []cell) bool { return r[date].Text == "" || r[number].Text == "" })
	nameOf := func(r []cell) string {
		if len(keys) == 0 {
			return ""
		}
		return r[keys[0]].Text
	}
	var names, times []string
	for _, r := range rows {
		indexOf(&names, nameOf(r))
	}
	all := make([]chart.Series, min(len(names), chart.MaxSeries)) // no more lines than colors
	slices.SortStableFunc(rows, func(a, b []cell) int { return strings.Compare(a[date].Text, b[date].Text) })
	for _, r := range rows {
		if line := indexOf(&names, nameOf(r)); line < len(all) {
			all[line].Name = nameOf(r)
			all[line].Points = append(all[line].Points, chart.Point{
				X: float64(indexOf(&times, r[date].Text)), XText: r[date].Text,
				Y: r[number].Number, YText: withMinus(r[number].Text),
			})
		}
	}
	plot := chart.NewLines(times, all, func(n float64) string { return withMinus(chart.Plain(n)) })
	if plot == nil {
		return nil
	}
	plot.Legend = len(keys) == 1
	f := &figure{Chart: plot, Title: l.Text("%s over time", t.Columns[number])}
	if plot.Legend {
		f.Title = l.Text("%s over time by %s", t.Columns[number], t.Columns[keys[0]])
	}
	if len(all) < len(names) {
		f.Note = l.Text("The chart shows %d of %d series.", len(all), len(names))
	}
	return f
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
