package release

import (
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"palmares/internal/core/text"
)

// Metric is a number that describes a group of tools: a count, or a statistic of one of
// their values.
type Metric struct {
	measure int // a position in measures; -1 for a count
	of      func(*figures) *float64
}

// measure is a number of tools that metrics describe.
type measure struct {
	name string // in the schema
	of   func(*Tool) float64
}

// daysSinceUpdate is the position of a number that depends on the date of a release, which
// figures add to it.
const daysSinceUpdate = 0

// measures are that number and those fields that are optional, which schemas name.
var measures = func() []measure {
	all := []measure{daysSinceUpdate: {"days_since_update", func(t *Tool) float64 { return -dayNumber(t.UpdatedAt) }}}
	for name, f := range fields {
		if f.number != nil && f.optional {
			all = append(all, measure{enumName(name), f.number})
		}
	}
	return all
}()

// statistics describe a set of numbers, or return nil if there are none. Averages and
// percentiles are rounded.
var statistics = map[string]func(*numbers) *float64{
	"min":    (*numbers).min,
	"max":    (*numbers).max,
	"avg":    (*numbers).mean,
	"mean":   (*numbers).mean,
	"median": func(n *numbers) *float64 { return n.percentile(50) },
	"p25":    func(n *numbers) *float64 { return n.percentile(25) },
	"p75":    func(n *numbers) *float64 { return n.percentile(75) },
	"p90":    func(n *numbers) *float64 { return n.percentile(90) },
}

// countMetrics are the metrics that count tools.
var countMetrics = map[string]func(*figures) int{
	"count":       func(f *figures) int { return f.count },
	"tested":      func(f *figures) int { return f.tested },
	"additions":   func(f *figures) int { return f.additions },
	"retirements": func(f *figures) int { return f.retirements },
}

// MetricNamed returns a metric by its name in the schema, such as count, p90_score or
// avgMonthlyPrice.
func MetricNamed(name string) (Metric, bool) {
	name = enumName(name)
	if name == "price_index" {
		return Metric{-1, func(f *figures) *float64 { return f.priceIndex }}, true
	}
	if count, ok := countMetrics[name]; ok {
		return Metric{-1, func(f *figures) *float64 { n := float64(count(f)); return &n }}, true
	}
	statistic, of, _ := strings.Cut(name, "_")
	for i, m := range measures {
		if describe := statistics[statistic]; m.name == of && describe != nil {
			return Metric{i, func(f *figures) *float64 { return describe(f.numbers[i]) }}, true
		}
	}
	return Metric{}, false
}

// figures are what metrics need to know of a group of tools.
type figures struct {
	count, tested          int
	additions, retirements int        // since the previous point of a series
	priceIndex             *float64   // at a point of a series; nil before the first price
	numbers                []*numbers // by position in measures; nil if no metric needs them
}

func newFigures(metrics []Metric) *figures {
	f := &figures{numbers: make([]*numbers, len(measures))}
	for _, m := range metrics {
		if m.measure >= 0 && f.numbers[m.measure] == nil {
			f.numbers[m.measure] = &numbers{counts: map[float64]int{}}
		}
	}
	return f
}

// add adds a tool or, with a difference of -1, removes it.
func (f *figures) add(t *Tool, difference int) {
	f.count += difference
	if !math.IsNaN(t.Score) {
		f.tested += difference
	}
	for i, n := range f.numbers {
		if n != nil {
			n.add(measures[i].of(t), difference)
		}
	}
}

// describe returns the values of metrics on a day.
func (f *figures) describe(metrics []Metric, day string) []*float64 {
	if days := f.numbers[daysSinceUpdate]; days != nil {
		days.offset = dayNumber(day)
	}
	described := make([]*float64, len(metrics))
	for i, m := range metrics {
		described[i] = m.of(f)
	}
	return described
}

// dayNumber returns the number of a day since a fixed one.
func dayNumber(day string) float64 {
	date, _ := time.Parse(time.DateOnly, day) // imports are checked
	return float64(date.Unix() / (24 * 60 * 60))
}

// DaysBetween returns the number of days from one day to another.
func DaysBetween(first, last string) int { return int(dayNumber(last) - dayNumber(first)) }

// numbers is a set of numbers that may repeat. Numbers are counted instead of
// added up, so that removing one leaves no rounding error.
type numbers struct {
	size   int
	counts map[float64]int
	offset float64 // which is added to all of them

	sorted []float64 // the distinct numbers; nil if out of date
	upTo   []int     // how many numbers are not greater than each of them; empty if out of date
	sum    float64   // as of upTo
}

func (n *numbers) add(number float64, difference int) {
	if math.IsNaN(number) {
		return
	}
	n.size += difference
	n.upTo = n.upTo[:0]
	before := n.counts[number]
	if n.counts[number] = before + difference; before+difference == 0 {
		delete(n.counts, number)
	}
	if before == 0 || before+difference == 0 {
		n.sorted = nil
	}
}

// update sorts and adds up the numbers, unless that is up to date.
func (n *numbers) update() {
	if len(n.upTo) > 0 {
		return
	}
	if n.sorted == nil {
		n.sorted = slices.Sorted(maps.Keys(n.counts))
	}
	n.sum = 0
	total := 0
	for _, number := range n.sorted {
		count := n.counts[number]
		n.sum += number * float64(count)
		total += count
		n.upTo = append(n.upTo, total)
	}
}

func (n *numbers) min() *float64 { return n.at(0) }
func (n *numbers) max() *float64 { return n.at(n.size - 1) }

func (n *numbers) mean() *float64 {
	n.update()
	return text.Mean(n.sum+n.offset*float64(n.size), n.size)
}

// percentile returns the number at a share of the sorted set. Between two numbers, it is
// interpolated, as spreadsheets and NumPy do by default.
func (n *numbers) percentile(percent int) *float64 {
	if n.size == 0 {
		return nil
	}
	position := percent * (n.size - 1)
	low, share := n.at(position/100), float64(position%100)
	if share == 0 {
		return text.Mean(*low, 1)
	}
	return text.Mean(*low*(100-share)+*n.at(position/100 + 1)*share, 100)
}

// at returns the number at a position of the sorted set, or nil if it is empty.
func (n *numbers) at(position int) *float64 {
	if n.size == 0 {
		return nil
	}
	n.update()
	number := n.sorted[sort.SearchInts(n.upTo, position+1)] + n.offset
	return &number
}
