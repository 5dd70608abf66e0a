package queries

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"palmares/internal/core/lang"
	draw "palmares/internal/web/chart"
)

// chart draws one number by one or two keys as bars, or over time as lines.
type chart struct {
	Title         string // what it shows
	Note          string // what it leaves out, or ""
	Width, Height float64
	Bars          []bar
	Lines         []line
	Axis          []draw.Label // of the values, at grid lines
	Times         []draw.Label // below lines
	Left          float64      // x where the plot starts
	LabelEnd      float64      // x where the labels of bars end
}

type bar struct {
	Label, Value    string
	X, Y, W, Middle float64
	Series          int  // color, by the second key
	IsNegative      bool // left of zero
}

// line is a line with its place in the legend.
type line struct {
	draw.Line
	X, Y float64
}

// Dimensions in SVG units.
const (
	chartWidth = draw.Width
	charWidth  = 7.0 // of the labels and values of bars
	gap        = 8.0 // between these and the bars
	barSpace   = 26.0
	legendLine = 20.0

	maxBars = 40

	negativeSeries = 1 // color of negative bars among positive ones
)

var period = regexp.MustCompile(`^[0-9]{4}(-([0-9]{2}(-[0-9]{2}(T.*)?)?|Q[1-4]|W[0-9]{2}))?$`)

// newChart returns the chart of a table, or nil if none suits it. It shows the last
// column with numbers, since queries usually select the value they are about last:
// by a key that identifies the rows, over time, or by two columns.
func newChart(l lang.Language, t *table) *chart {
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
	for _, by := range singles(keys) {
		if t.identifies(by) {
			return t.bars(l, t.numberFor(by[0], values), by)
		}
	}
	for _, date := range days {
		others := slices.DeleteFunc(slices.Clone(keys), func(key int) bool { return t.equivalent(key, date) })
		for _, by := range append([][]int{nil}, singles(others)...) {
			if t.identifies(append([]int{date}, by...)) {
				return t.lines(l, number, date, by)
			}
		}
	}
	for _, by := range slices.Concat(pairs(keys, keys), pairs(keys, others)) {
		if t.identifies(by) {
			return t.bars(l, number, by)
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
	is := func(key int, names ...string) bool {
		last := t.Columns[key][strings.LastIndexByte(t.Columns[key], '.')+1:]
		return slices.Contains(names, last)
	}
	readable := slices.DeleteFunc(slices.Clone(keys), func(key int) bool { return is(key, "slug", "id") })
	if len(readable) == 0 {
		return keys
	}
	slices.SortStableFunc(readable, func(a, b int) int {
		switch named := is(a, "name", "title"); {
		case named == is(b, "name", "title"):
			return 0
		case named:
			return -1
		}
		return 1
	})
	return readable
}

// identifies reports whether no two rows have the same values in some columns.
func (t *table) identifies(columns []int) bool { return t.distinct(columns) == len(t.Rows) }

// equivalent reports whether two rows have the same value in one column exactly if
// they have the same value in the other.
func (t *table) equivalent(a, b int) bool {
	both := t.distinct([]int{a, b})
	return both == t.distinct([]int{a}) && both == t.distinct([]int{b})
}

func (t *table) distinct(columns []int) int {
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

func singles(columns []int) (sets [][]int) {
	for _, i := range columns {
		sets = append(sets, []int{i})
	}
	return sets
}

func pairs(first, second []int) (sets [][]int) {
	for _, i := range first {
		for _, j := range second {
			if i != j {
				sets = append(sets, []int{i, j})
			}
		}
	}
	return sets
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

func (t *table) bars(l lang.Language, number int, keys []int) *chart {
	var values []float64
	longestKey, longestValue := 0, 0
	rows := t.Rows[:min(len(t.Rows), maxBars)]
	for _, r := range rows {
		longestKey = max(longestKey, utf8.RuneCountInString(barLabel(r, keys)))
		longestValue = max(longestValue, len(r[number].Text))
		if r[number].Text != "" {
			values = append(values, r[number].Number)
		}
	}
	if len(values) < 2 {
		return nil
	}
	share, _ := draw.Scale(values, true)
	c := &chart{Title: l.Text("%s by %s", t.Columns[number], t.names(l, keys)), Width: chartWidth, Height: barSpace * float64(len(rows)), LabelEnd: charWidth * float64(longestKey)}
	c.Left = c.LabelEnd + gap
	valueWidth := charWidth*float64(longestValue) + gap
	if slices.Min(values) < 0 {
		c.Left += valueWidth // the numbers of bars to the left
	}
	if len(rows) < len(t.Rows) {
		c.Note = l.Text("The chart shows %d of %d rows.", len(rows), t.Total)
	}
	room := chartWidth - c.Left - valueWidth
	zero := share(0)
	var series []string
	for i, r := range rows {
		value := r[number]
		from, to := min(zero, share(value.Number)), max(zero, share(value.Number))
		b := bar{
			Label: barLabel(r, keys), Value: withMinus(value.Text), IsNegative: value.Number < 0,
			X: draw.Round(c.Left + from*room), W: draw.Round(max((to-from)*room, 1)), Y: barSpace*float64(i) + 4, Middle: barSpace*float64(i) + barSpace/2 + 4,
		}
		if value.Text == "" { // null has a place, but no bar
			b.Value, b.W = "–", 0
		}
		switch {
		case len(keys) == 2:
			b.Series = indexOf(&series, r[keys[1]].Text) % draw.MaxSeries
		case b.IsNegative && slices.Max(values) > 0:
			b.Series = negativeSeries
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// End returns the x coordinate of the number at the end of a bar.
func (b bar) End() float64 {
	if b.IsNegative {
		return draw.Round(b.X - gap)
	}
	return draw.Round(b.X + b.W + gap)
}

func barLabel(r []cell, keys []int) string {
	label := r[keys[0]].Text
	if len(keys) == 2 {
		label += " · " + r[keys[1]].Text
	}
	return shorten(label, 26)
}

// withMinus replaces the hyphen of a negative number by a minus sign.
func withMinus(number string) string {
	if rest, isNegative := strings.CutPrefix(number, "-"); isNegative {
		return "−" + rest
	}
	return number
}

func (t *table) lines(l lang.Language, number, date int, keys []int) *chart {
	var times, names []string
	byLine := map[int]map[string]*draw.Value{}
	for _, r := range t.Rows {
		if r[date].Text == "" || r[number].Text == "" {
			continue
		}
		name := ""
		if len(keys) == 1 {
			name = r[keys[0]].Text
		}
		at := indexOf(&names, name)
		if at >= draw.MaxSeries {
			continue // more lines than colors
		}
		if byLine[at] == nil {
			byLine[at] = map[string]*draw.Value{}
		}
		byLine[at][r[date].Text] = &draw.Value{Number: r[number].Number, Text: withMinus(r[number].Text)}
		indexOf(&times, r[date].Text)
	}
	slices.Sort(times)
	var all []draw.Series
	for i, name := range names[:min(len(names), draw.MaxSeries)] {
		series := draw.Series{Name: name}
		for _, at := range times {
			series.Values = append(series.Values, byLine[i][at])
		}
		all = append(all, series)
	}
	drawn := draw.NewLines(times, all, func(n float64) string { return withMinus(draw.Plain(n)) })
	if drawn == nil {
		return nil
	}
	c := &chart{Title: l.Text("%s over time", t.Columns[number]), Width: drawn.Width, Height: drawn.Height, Axis: drawn.Axis, Times: drawn.Times, Left: drawn.Left}
	if len(keys) == 1 {
		c.Title = l.Text("%s over time by %s", t.Columns[number], t.Columns[keys[0]])
		c.Height += legendLine*float64((len(all)+1)/2) + 10
	}
	if len(all) < len(names) {
		c.Note = l.Text("The chart shows %d of %d series.", len(all), len(names))
	}
	for i, l := range drawn.Lines {
		l.Name = shorten(l.Name, 30)
		c.Lines = append(c.Lines, line{l, c.Left + float64(i%2)*(c.Width-c.Left)/2, drawn.Height + legendLine*float64(i/2) + 12})
	}
	return c
}

func (t *table) names(l lang.Language, columns []int) string {
	var names []string
	for _, i := range columns {
		names = append(names, t.Columns[i])
	}
	return strings.Join(names, " "+l.Text("and")+" ")
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

// shorten truncates a text to a number of characters.
func shorten(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
