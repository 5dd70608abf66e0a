package release

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/text"
)

// MaxPoints is the maximum number of points of a series.
const MaxPoints = 1_000

// ErrTooManyPoints is returned for a series of more than MaxPoints points.
var ErrTooManyPoints = errors.New("the series would have too many points")

// Point is a period of a series, and the release that its values come from.
type Point struct {
	Period
	Release int
	before  int // the release of the previous period; 0 if there is none
}

// ByRelease is the interval of a series with a point for each release.
const ByRelease = "release"

// Points returns the points of a series over some releases, which are newest first.
// The points are oldest first. The interval is a period or ByRelease; from and to are
// days or empty.
func Points(releases []*ent.Release, interval, from, to string) (points []Point, err error) {
	if len(releases) == 0 {
		return nil, nil
	}
	first, last := releases[0].FeedDate, releases[0].FeedDate
	for _, release := range releases {
		first, last = min(first, release.FeedDate), max(last, release.FeedDate)
	}
	if first = max(first, from); to != "" {
		last = min(last, to)
	}
	if interval == ByRelease {
		for _, release := range slices.Backward(releases) {
			if release.FeedDate >= first && release.FeedDate <= last {
				period := Period{strconv.Itoa(release.ID), release.FeedDate, release.FeedDate}
				points = append(points, Point{period, release.ID, release.ID - 1})
			}
		}
		if len(points) > MaxPoints {
			return nil, ErrTooManyPoints
		}
		return points, nil
	}
	for p := PeriodOf(first, interval); p.Start <= last; p = p.next(interval) {
		if len(points) == MaxPoints {
			return nil, ErrTooManyPoints
		}
		before := 0
		if earlier := Dated(releases, dayBefore(p.Start)); earlier != nil {
			before = earlier.ID
		}
		if release := Dated(releases, p.End); release != nil {
			points = append(points, Point{p, release.ID, before})
		}
	}
	return points, nil
}

// CountPoints returns the number of Points up to this release, or 0 if there are too many.
// The interval may be empty for the default, a month.
func (r *Release) CountPoints(interval, from, to string) int {
	points, _ := Points(r.Readable(), cmp.Or(interval, Month), from, to)
	return len(points)
}

func dayBefore(day string) string {
	date, _ := time.Parse(time.DateOnly, day)
	return date.AddDate(0, 0, -1).Format(time.DateOnly)
}

// Series has the values of one metric for one group of tools.
type Series struct {
	Metric int // its position
	Key    string
	Values []*float64 // at each point
}

// Series returns the values of metrics for each group of tools at each point, ordered by
// metric, then by key. The tools of the first import are additions only if firstImport is
// set.
//
// Each version of a tool is added to its group at its first point and removed after its
// last, so that the time does not depend on the number of points in between.
func (r *Release) Series(
	points []Point, metrics []Metric, keyOf func(*Tool) string, filter Filter, firstImport bool,
) (all []Series) {
	type group struct {
		now                    *figures
		additions, retirements []int
		prices                 priceChain
		values                 [][]*float64 // of all metrics at each point
	}
	groups := map[string]*group{}
	groupOf := func(key string) *group {
		if groups[key] == nil {
			groups[key] = &group{
				now: newFigures(metrics), additions: make([]int, len(points)), retirements: make([]int, len(points)),
				prices: newPriceChain(len(points)),
			}
		}
		return groups[key]
	}
	// pointOf returns the first point whose release is at least a given one.
	pointOf := func(release int) int {
		return sort.Search(len(points), func(i int) bool { return points[i].Release >= release })
	}
	begins, ends := make([][]*Tool, len(points)+1), make([][]*Tool, len(points)+1)
	r.history.versionsOf(func(versions []version[Tool]) {
		var before *Tool // as it was at the last point that it had a price at
		until := -1      // the point after that one
		for i, v := range versions {
			t := v.value
			if !t.Active() || !filter.Matches(t) {
				continue
			}
			key, first, end := keyOf(t), pointOf(v.since), pointOf(v.until)
			if first < len(points) && r.history.added(versions, i, firstImport) && v.since > points[first].before {
				groupOf(key).additions[first]++
			}
			if end < len(points) && retired(versions, i) && v.until > points[end].before {
				groupOf(key).retirements[end]++
			}
			if first < end {
				begins[first], ends[end] = append(begins[first], t), append(ends[end], t)
				prices := &groupOf(key).prices
				if t.MonthlyPrice > 0 {
					if first == until && keyOf(before) == key {
						prices.link(first, before.MonthlyPrice, t.MonthlyPrice)
					}
					prices.start = min(prices.start, first)
					prices.keep(first+1, end)
					before, until = t, end
				}
			}
		}
	})
	for p, point := range points {
		for _, t := range ends[p] {
			groups[keyOf(t)].now.add(t, -1)
		}
		for _, t := range begins[p] {
			groups[keyOf(t)].now.add(t, 1)
		}
		for _, g := range groups {
			g.now.additions, g.now.retirements = g.additions[p], g.retirements[p]
			g.now.priceIndex = g.prices.at(p)
			g.values = append(g.values, g.now.describe(metrics, r.Numbered(point.Release).FeedDate))
		}
	}
	for metric := range metrics {
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			s := Series{Metric: metric, Key: key}
			for _, values := range groups[key].values {
				s.Values = append(s.Values, values[metric])
			}
			all = append(all, s)
		}
	}
	return all
}

// priceChain has the changes of prices from each point of a series to the next, of the tools
// that have a price at both, and their index.
type priceChain struct {
	start  int       // the first point with prices
	tools  []int     // how many more there are than from the point before
	ratios []float64 // the sum of the logarithms of their ratios
	linked int       // at the point that was read last
	index  float64
}

func newPriceChain(points int) priceChain {
	return priceChain{start: points, tools: make([]int, points+1), ratios: make([]float64, points)}
}

// link adds a tool whose price may have changed at a point.
func (c *priceChain) link(point int, before, after float64) {
	c.keep(point, point+1)
	if before != after {
		c.ratios[point] += math.Log(after / before)
	}
}

// keep adds a tool whose price did not change from first to before end.
func (c *priceChain) keep(first, end int) {
	if first < end {
		c.tools[first]++
		c.tools[end]--
	}
}

// at returns the index at the point after the one that was read last; nil before the first
// price.
func (c *priceChain) at(point int) *float64 {
	c.linked += c.tools[point]
	switch {
	case point < c.start:
		return nil
	case point == c.start:
		c.index = 100
	case c.linked > 0:
		c.index *= math.Exp(c.ratios[point] / float64(c.linked))
	}
	rounded := text.Round(c.index)
	return &rounded
}

// Mover is a tool whose value changed between two releases. The change and the
// percentage are rounded.
type Mover struct {
	Slug          string
	Before, After float64
	Change        float64
	Percent       *float64 // nil if the value was 0
	difference    int64    // in units of precision
}

// precision is the smallest difference between two values that counts: scores and prices
// have fewer decimals. Subtracting whole numbers of it is exact, unlike subtracting
// fractions, so that equal differences are in the order of slugs.
const precision = 1e6

func inUnits(value float64) int64 { return int64(math.Round(value * precision)) }

// Movers returns the tools that were active in two releases and whose score or price per
// month, by its name in the schema, changed by at least a difference. They are ordered by
// the size of the change, then by slug. The condition applies to the later release.
func (r *Release) Movers(start, end int, metric string, least float64, filter Filter) (movers []Mover) {
	value := fields["score"].number
	if metric == "price" {
		value = fields["monthlyPrice"].number
	}
	r.history.versionsOf(func(versions []version[Tool]) {
		then, now := activeAt(versions, start), activeAt(versions, end)
		if then == nil || now == nil || !filter.Matches(now) {
			return
		}
		before, after := value(then), value(now)
		if math.IsNaN(before) || math.IsNaN(after) || before == after {
			return
		}
		if difference := inUnits(after) - inUnits(before); max(difference, -difference) >= inUnits(least) {
			change := text.Round(float64(difference) / precision)
			movers = append(movers, Mover{now.Slug, before, after, change, pricing.Percent(before, after), difference})
		}
	})
	slices.SortFunc(movers, func(a, b Mover) int {
		return cmp.Or(cmp.Compare(max(b.difference, -b.difference), max(a.difference, -a.difference)),
			strings.Compare(a.Slug, b.Slug))
	})
	return movers
}

// Between returns the numbers of the releases that two days select for a comparison,
// or 0 if there are none; to may be empty. Before the oldest release, its values
// count.
func (r *Release) Between(from, to string) (start, end int) {
	releases := r.Readable()
	if len(releases) == 0 {
		return 0, 0
	}
	number := func(release *ent.Release, otherwise int) int {
		if release == nil {
			return otherwise
		}
		return release.ID
	}
	start, end = number(Dated(releases, from), releases[len(releases)-1].ID), releases[0].ID
	if to != "" {
		end = number(Dated(releases, to), 0)
	}
	return start, end
}
