package release

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"palmares/ent"
	"palmares/internal/core/text"
)

// MaxPoints is the maximum number of points of a series.
const MaxPoints = 1_000

// ErrTooManyPoints is returned for a series of more than MaxPoints points.
var ErrTooManyPoints = errors.New("the series would have too many points")

// Point is a period of a series, and the release that its values come from.
type Point struct {
	Period, Start string
	Release       int
	before        int // the release of the previous period; 0 if there is none
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
				points = append(points, Point{strconv.Itoa(release.ID), release.FeedDate, release.ID, release.ID - 1})
			}
		}
		if len(points) > MaxPoints {
			return nil, ErrTooManyPoints
		}
		return points, nil
	}
	for p := PeriodOf(first, interval); p.start <= last; p = p.next(interval) {
		if len(points) == MaxPoints {
			return nil, ErrTooManyPoints
		}
		before := 0
		if earlier := Dated(releases, dayBefore(p.start)); earlier != nil {
			before = earlier.ID
		}
		if release := Dated(releases, p.end); release != nil {
			points = append(points, Point{p.Name, p.start, release.ID, before})
		}
	}
	return points, nil
}

func dayBefore(day string) string {
	date, _ := time.Parse(time.DateOnly, day)
	return date.AddDate(0, 0, -1).Format(time.DateOnly)
}

// State has the figures of a group of tools at one point.
type State struct {
	Count, Tested, Additions, Retirements              int
	MeanScore, MedianScore, MeanMonthly, MedianMonthly *float64
}

// States returns the state of each group of tools at each point. Each version of a
// tool is added to its group at its first point and removed after its last, so that
// the time does not depend on the number of points in between.
func (r *Release) States(points []Point, keyOf func(*Tool) string, filter Filter) map[string][]State {
	groups := map[string][]State{}
	group := func(key string) []State {
		if groups[key] == nil {
			groups[key] = make([]State, len(points))
		}
		return groups[key]
	}
	// pointOf returns the first point whose release is at least a given one.
	pointOf := func(release int) int {
		return sort.Search(len(points), func(i int) bool { return points[i].Release >= release })
	}
	begins, ends := make([][]*Tool, len(points)+1), make([][]*Tool, len(points)+1)
	r.history.versionsOf(func(versions []version[Tool]) {
		for i, v := range versions {
			t := v.value
			if !t.Active() || !filter.Matches(t) {
				continue
			}
			key, first, end := keyOf(t), pointOf(v.since), pointOf(v.until)
			if first < len(points) && r.history.added(versions, i) && v.since > points[first].before {
				group(key)[first].Additions++
			}
			if end < len(points) && retired(versions, i) && v.until > points[end].before {
				group(key)[end].Retirements++
			}
			if first < end {
				begins[first], ends[end] = append(begins[first], t), append(ends[end], t)
				group(key)
			}
		}
	})
	now := map[string]*Figures{}
	for key := range groups {
		now[key] = newFigures()
	}
	for p := range points {
		for _, t := range ends[p] {
			now[keyOf(t)].add(t, -1)
		}
		for _, t := range begins[p] {
			now[keyOf(t)].add(t, 1)
		}
		for key, f := range now {
			s := &groups[key][p]
			s.Count, s.Tested = f.Count, f.Scores.Count
			s.MeanScore, s.MedianScore = f.Scores.Mean(), f.Scores.Median()
			s.MeanMonthly, s.MedianMonthly = f.Prices.Mean(), f.Prices.Median()
		}
	}
	return groups
}

// Mover is a tool whose value changed between two releases.
type Mover struct {
	Slug          string
	Before, After float64
	Change        float64 // rounded
}

// Movers returns the tools that were active in two releases and whose value changed,
// by the size of the change, then by slug. The condition applies to the later
// release.
func (r *Release) Movers(start, end int, value func(*Tool) float64, filter Filter) (movers []Mover) {
	r.history.versionsOf(func(versions []version[Tool]) {
		then, now := activeAt(versions, start), activeAt(versions, end)
		if then == nil || now == nil || !filter.Matches(now) {
			return
		}
		before, after := value(then), value(now)
		change := text.Round(after - before) // NaN unless both are known
		if !math.IsNaN(change) && before != after {
			movers = append(movers, Mover{now.Slug, before, after, change})
		}
	})
	slices.SortFunc(movers, func(a, b Mover) int {
		return cmp.Or(cmp.Compare(math.Abs(b.After-b.Before), math.Abs(a.After-a.Before)),
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
