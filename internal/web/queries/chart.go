package queries

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"palmares/internal/core/lang"
)

// chart draws one number by one or two keys as bars, or over time as lines.
type chart struct {
	Title         string // what it shows
	Width, Height float64
	Bars          []bar
	Lines         []line
	Axis          []label // of the values, at grid lines
	Times         []label // below lines
	Base          float64 // y of zero, or of the lowest value
	Left          float64 // x where the plot starts
}

type bar struct {
	Label, Value    string
	X, Y, W, Middle float64
	Series          int // color, by the second key
}

type line struct {
	Name   string
	Path   string // of an SVG
	Points []chartPoint
	Series int
	X, Y   float64 // of its name in the legend
}

type chartPoint struct {
	X, Y  float64
	Title string
}

type label struct {
	X, Y float64
	Text string
}

// Dimensions in SVG units.
const (
	chartWidth  = 640.0
	labelWidth  = 190.0 // of the keys beside bars
	valueWidth  = 70.0  // of the numbers after bars
	barSpace    = 26.0
	plotHeight  = 220.0
	plotTop     = 14.0
	axisWidth   = 56.0
	timesHeight = 26.0
	legendLine  = 20.0

	maxBars   = 40
	maxSeries = 8 // colors
	gridLines = 4
)

var period = regexp.MustCompile(`^[0-9]{4}(-([0-9]{2}(-[0-9]{2}(T.*)?)?|Q[1-4]|W[0-9]{2}))?$`)

// newChart returns the chart of a table, or nil if none suits it. It shows the
// last number, because queries select what they are about last: by a key that
// identifies the rows, over time, or by two columns.
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
			return t.bars(l, number, by)
		}
	}
	for _, date := range days {
		others := slices.DeleteFunc(slices.Clone(keys), func(key int) bool { return t.sameAs(key, date) })
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

// sameAs reports whether a column has another value exactly where the other has.
func (t *table) sameAs(a, b int) bool {
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

// scale returns a function from values to a share of the plot, and the values of
// grid lines. Bars start at zero, and so do lines unless they stay far above it.
func scale(values []float64, fromZero bool) (share func(float64) float64, grid []float64) {
	low, high := slices.Min(values), slices.Max(values)
	if fromZero || low > 0 && low < high/2 {
		low = min(low, 0)
	}
	high = max(high, 0, low+1e-9)
	if high == low {
		high = low + 1
	}
	step := niceStep((high - low) / gridLines)
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	for v := low; v <= high+step/2; v += step {
		grid = append(grid, v)
	}
	return func(v float64) float64 { return (v - low) / (high - low) }, grid
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(rough float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if rough <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

func (t *table) bars(l lang.Language, number int, keys []int) *chart {
	var values []float64
	for _, r := range t.Rows {
		values = append(values, r[number].Number)
	}
	share, _ := scale(values, true)
	c := &chart{Title: l.Text("%s by %s", t.Columns[number], t.names(l, keys)), Width: chartWidth, Left: labelWidth}
	room := chartWidth - labelWidth - valueWidth
	zero := share(0)
	var series []string
	for _, r := range t.Rows {
		if r[number].Text == "" || len(c.Bars) == maxBars {
			continue // null, or more than fit
		}
		i := len(c.Bars)
		from, to := min(zero, share(r[number].Number)), max(zero, share(r[number].Number))
		b := bar{
			Label: shorten(r[keys[0]].Text, 26), Value: r[number].Text,
			X: round(labelWidth + from*room), W: round(max((to-from)*room, 1)), Y: barSpace*float64(i) + 4, Middle: barSpace*float64(i) + barSpace/2 + 4,
		}
		if len(keys) == 2 {
			b.Label = shorten(r[keys[0]].Text+" · "+r[keys[1]].Text, 26)
			b.Series = indexOf(&series, r[keys[1]].Text) % maxSeries
		}
		c.Bars = append(c.Bars, b)
	}
	if len(c.Bars) < 2 {
		return nil
	}
	c.Height = barSpace * float64(len(c.Bars))
	return c
}

// End returns the x coordinate after a bar.
func (b bar) End() float64 { return round(b.X + b.W + 6) }

func (t *table) lines(l lang.Language, number, date int, keys []int) *chart {
	var times, series []string
	var values []float64
	byLine := map[int]map[string]cell{}
	for _, r := range t.Rows {
		if r[date].Text == "" || r[number].Text == "" {
			continue
		}
		name := ""
		if len(keys) == 1 {
			name = r[keys[0]].Text
		}
		at := indexOf(&series, name)
		if at >= maxSeries {
			continue // more lines than colors
		}
		if byLine[at] == nil {
			byLine[at] = map[string]cell{}
		}
		byLine[at][r[date].Text] = r[number]
		if !slices.Contains(times, r[date].Text) {
			times = append(times, r[date].Text)
		}
		values = append(values, r[number].Number)
	}
	if len(times) < 2 {
		return nil
	}
	series = series[:min(len(series), maxSeries)]
	slices.Sort(times)
	share, grid := scale(values, false)
	c := &chart{Title: l.Text("%s over time", t.Columns[number]), Width: chartWidth, Base: plotTop + plotHeight, Left: axisWidth}
	if len(keys) == 1 {
		c.Title = l.Text("%s over time by %s", t.Columns[number], t.Columns[keys[0]])
	}
	x := func(i int) float64 {
		return round(axisWidth + float64(i)/float64(len(times)-1)*(chartWidth-axisWidth-12))
	}
	y := func(v float64) float64 { return round(c.Base - share(v)*plotHeight) }
	for _, v := range grid {
		c.Axis = append(c.Axis, label{axisWidth - 8, y(v), strconv.FormatFloat(math.Round(v*100)/100, 'g', 6, 64)})
	}
	for _, i := range slices.Compact([]int{0, (len(times) - 1) / 2, len(times) - 1}) {
		c.Times = append(c.Times, label{x(i), c.Base + 18, times[i]})
	}
	c.Height = c.Base + timesHeight
	for at, name := range series {
		l := line{Name: shorten(name, 30), Series: at}
		var path strings.Builder
		for i, at := range times {
			found, ok := byLine[l.Series][at]
			if !ok {
				continue
			}
			command := "L"
			if path.Len() == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%g %g", command, x(i), y(found.Number))
			title := at + ": " + found.Text
			if name != "" {
				title = name + ", " + title
			}
			l.Points = append(l.Points, chartPoint{x(i), y(found.Number), title})
		}
		l.Path = path.String()
		if name != "" {
			l.X, l.Y = axisWidth+float64(at%2)*(chartWidth-axisWidth)/2, c.Height+legendLine*float64(at/2)+12
		}
		c.Lines = append(c.Lines, l)
	}
	if len(keys) == 1 {
		c.Height += legendLine*float64((len(series)+1)/2) + 10
	}
	return c
}

// Side returns how the label of a time is aligned with its place.
func (c *chart) Side(i int) string {
	switch i {
	case 0:
		return "start"
	case len(c.Times) - 1:
		return "end"
	}
	return "middle"
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

func round(n float64) float64 { return math.Round(n*10) / 10 }

// shorten cuts a text that is too long for its place.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
