package graph

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const (
	maxPoints = 1_000
	maxYears  = 100 // between the first and the last day
)

func (queryResolver) Series(ctx context.Context, metrics []model.SeriesMetric, by model.SeriesKey, every model.SeriesInterval, from, to *string, filter *model.ToolFilter) ([]*model.Series, error) {
	if len(metrics) == 0 {
		return nil, problem.New(problem.BadInput, "metrics must not be empty.")
	}
	for i, metric := range metrics {
		if slices.Contains(metrics[:i], metric) {
			return nil, problem.New(problem.BadInput, "metrics must not contain duplicates (got %s more than once).", metric)
		}
	}
	condition, err := conditionOverTime(filter)
	if err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	points, err := pointsOf(r.readable(), every, from, to)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	line, err := r.timeline(ctx)
	if err != nil {
		return nil, err
	}
	keyOf := func(*indexedTool) string { return "" }
	if by != model.SeriesKeyNone {
		keyOf = groupKeys[model.ToolGroupKey(by)]
	}
	groups := line.groupStates(points, keyOf, condition)
	var series []*model.Series
	for _, metric := range metrics {
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			s := &model.Series{Metric: metric, Key: &key}
			if by == model.SeriesKeyNone {
				s.Key = nil
			}
			for i, p := range points {
				s.Points = append(s.Points, &model.SeriesPoint{Period: p.name, Start: p.start, Release: p.release, Value: groups[key][i].metric(metric)})
			}
			series = append(series, s)
		}
	}
	return series, nil
}

// conditionOverTime converts a filter to a condition on tools of earlier releases.
// Their text is not in memory, so it cannot be searched.
func conditionOverTime(filter *model.ToolFilter) (func(*indexedTool) bool, error) {
	if filter == nil {
		return func(*indexedTool) bool { return true }, nil
	}
	if filter.Search != nil {
		return nil, problem.New(problem.BadInput, "filter.search is not supported here. Search a release with @asOf instead.")
	}
	return toolCondition(filter), checkFilter(filter)
}

// point is a period of a series, and the release that its values come from.
type point struct {
	name, start string
	release     int
	before      int // the release of the previous period; 0 if there is none
}

// pointsOf returns the points of a series over some releases, oldest first. The
// releases are newest first.
func pointsOf(releases []*ent.Release, every model.SeriesInterval, from, to *string) (points []point, err error) {
	if err := checkDays(orZero(from), orZero(to)); err != nil || len(releases) == 0 {
		return nil, err
	}
	first, last := releases[0].FeedDate, releases[0].FeedDate
	for _, release := range releases {
		first, last = min(first, release.FeedDate), max(last, release.FeedDate)
	}
	if from != nil {
		first = max(first, *from)
	}
	if to != nil {
		last = min(last, *to)
	}
	if every == model.SeriesIntervalRelease {
		for _, release := range slices.Backward(releases) {
			if release.FeedDate >= first && release.FeedDate <= last {
				points = append(points, point{strconv.Itoa(release.ID), release.FeedDate, release.ID, release.ID - 1})
			}
		}
		return points, checkPoints(len(points))
	}
	length := model.Period(every)
	for p := periodOf(first, length); p.start <= last; p = p.next(length) {
		if err := checkPoints(len(points) + 1); err != nil {
			return nil, err
		}
		before := 0
		if earlier := lastDated(releases, dayBefore(p.start)); earlier != nil {
			before = earlier.ID
		}
		if release := lastDated(releases, p.end); release != nil {
			points = append(points, point{p.name, p.start, release.ID, before})
		}
	}
	return points, nil
}

func checkPoints(count int) error {
	if count > maxPoints {
		return problem.New(problem.BadInput, "The series would have more than %d points. Use a longer interval, or limit it with from and to.", maxPoints)
	}
	return nil
}

// checkDays rejects days that are not in order or too far apart; both may be
// empty.
func checkDays(from, to string) error {
	for _, day := range []string{from, to} {
		if day != "" && !isDay(day) {
			return problem.New(problem.BadInput, "from and to must be days in the form YYYY-MM-DD (got %q).", params.Truncate(day))
		}
	}
	if from == "" || to == "" {
		return nil
	}
	start, _ := time.Parse(time.DateOnly, from)
	switch {
	case from >= to:
		return problem.New(problem.BadInput, "from must be before to (got %s and %s).", from, to)
	case start.AddDate(maxYears, 0, 0).Format(time.DateOnly) < to:
		return problem.New(problem.BadInput, "from and to must be at most %d years apart (got %s and %s).", maxYears, from, to)
	}
	return nil
}

func dayBefore(day string) string {
	date, _ := time.Parse(time.DateOnly, day)
	return date.AddDate(0, 0, -1).Format(time.DateOnly)
}

// groupState has the figures of a group of tools at one point.
type groupState struct {
	count, tested, additions, retirements              int
	meanScore, medianScore, meanMonthly, medianMonthly *float64
}

func (s groupState) metric(metric model.SeriesMetric) *float64 {
	number := func(n int) *float64 { f := float64(n); return &f }
	switch metric {
	case model.SeriesMetricCount:
		return number(s.count)
	case model.SeriesMetricTested:
		return number(s.tested)
	case model.SeriesMetricMeanScore:
		return s.meanScore
	case model.SeriesMetricMedianScore:
		return s.medianScore
	case model.SeriesMetricMeanMonthlyPrice:
		return s.meanMonthly
	case model.SeriesMetricMedianMonthlyPrice:
		return s.medianMonthly
	case model.SeriesMetricAdditions:
		return number(s.additions)
	case model.SeriesMetricRetirements:
		return number(s.retirements)
	}
	return nil
}

// groupStates returns the state of each group at each point. Each version is added to
// its group at its first point and removed after its last, so that the time does
// not depend on the number of points in between.
func (l *timeline) groupStates(points []point, keyOf func(*indexedTool) string, matches func(*indexedTool) bool) map[string][]groupState {
	groups := map[string][]groupState{}
	group := func(key string) []groupState {
		if groups[key] == nil {
			groups[key] = make([]groupState, len(points))
		}
		return groups[key]
	}
	// pointOf returns the first point whose release is at least a given one.
	pointOf := func(release int) int {
		return sort.Search(len(points), func(i int) bool { return points[i].release >= release })
	}
	begins, ends := make([][]*indexedTool, len(points)+1), make([][]*indexedTool, len(points)+1)
	l.tools(func(versions []toolVersion) {
		for i, v := range versions {
			if !v.active() || !matches(v.indexedTool) {
				continue
			}
			key, first, end := keyOf(v.indexedTool), pointOf(v.since), pointOf(v.until)
			if first < len(points) && l.added(versions, i) && v.since > points[first].before {
				group(key)[first].additions++
			}
			if end < len(points) && retired(versions, i) && v.until > points[end].before {
				group(key)[end].retirements++
			}
			if first < end {
				begins[first], ends[end] = append(begins[first], v.indexedTool), append(ends[end], v.indexedTool)
				group(key)
			}
		}
	})
	now := map[string]*figures{}
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
			s.count, s.tested = f.count, f.scores.count
			s.meanScore, s.medianScore = f.scores.mean(), f.scores.median()
			s.meanMonthly, s.medianMonthly = f.prices.mean(), f.prices.median()
		}
	}
	return groups
}
