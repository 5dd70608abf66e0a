package graph

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const maxYears = 100 // between the first and the last day

func (queryResolver) Series(
	ctx context.Context, metrics []model.SeriesMetric, by model.SeriesKey, every model.SeriesInterval,
	from, to *string, filter *model.ToolFilter,
) ([]*model.Series, error) {
	if len(metrics) == 0 {
		return nil, problem.New(problem.BadInput, "metrics must not be empty.")
	}
	for i, metric := range metrics {
		if slices.Contains(metrics[:i], metric) {
			return nil, problem.New(problem.BadInput,
				"metrics must not contain duplicates (got %s more than once).", metric)
		}
	}
	condition, err := conditionsOverTime(filter)
	if err != nil {
		return nil, err
	}
	if err := checkDays(orZero(from), orZero(to)); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	points, err := release.Points(r.release.Readable(), string(every), orZero(from), orZero(to))
	if errors.Is(err, release.ErrTooManyPoints) {
		return nil, problem.New(problem.BadInput,
			"The series would have more than %d points. "+
				"Use a longer interval, or limit it with from and to.", release.MaxPoints)
	}
	if err != nil || len(points) == 0 {
		return nil, err
	}
	keyOf := func(*release.Tool) string { return "" }
	if by != model.SeriesKeyNone {
		keyOf = release.Key(string(by))
	}
	groups := r.release.States(points, keyOf, condition)
	var series []*model.Series
	for _, metric := range metrics {
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			s := &model.Series{Metric: metric, Key: &key}
			if by == model.SeriesKeyNone {
				s.Key = nil
			}
			for i, p := range points {
				s.Points = append(s.Points, &model.SeriesPoint{
					Period: p.Period, Start: p.Start, Release: p.Release, Value: metricOf(groups[key][i], metric),
				})
			}
			series = append(series, s)
		}
	}
	return series, nil
}

// conditionsOverTime converts a filter to conditions on tools of earlier releases.
// Their text is not in memory, so it cannot be searched.
func conditionsOverTime(filter *model.ToolFilter) (release.Filter, error) {
	if filter != nil && filter.Search != nil {
		return nil, problem.New(problem.BadInput,
			"filter.search is not supported here. Search a release with @asOf instead.")
	}
	return toolConditions(filter)
}

// checkDays rejects days that are not in order or too far apart; both may be
// empty.
func checkDays(from, to string) error {
	for _, day := range []string{from, to} {
		if day != "" && !isDay(day) {
			return problem.New(problem.BadInput, "from and to must be days in the form YYYY-MM-DD (got %q).",
				params.Truncate(day))
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
		return problem.New(problem.BadInput, "from and to must be at most %d years apart (got %s and %s).",
			maxYears, from, to)
	}
	return nil
}

// points returns the number of points of a series; 0 if it is invalid, which its
// resolver reports.
func (e *Executor) points(every, from, to string) int {
	newest := e.catalog.InMemory()
	if newest == nil || checkDays(from, to) != nil {
		return 0
	}
	points, _ := release.Points(newest.Readable(), cmp.Or(every, release.Month), from, to)
	return len(points)
}

func metricOf(s release.State, metric model.SeriesMetric) *float64 {
	number := func(n int) *float64 { f := float64(n); return &f }
	switch metric {
	case model.SeriesMetricCount:
		return number(s.Count)
	case model.SeriesMetricTested:
		return number(s.Tested)
	case model.SeriesMetricMeanScore:
		return s.MeanScore
	case model.SeriesMetricMedianScore:
		return s.MedianScore
	case model.SeriesMetricMeanMonthlyPrice:
		return s.MeanMonthly
	case model.SeriesMetricMedianMonthlyPrice:
		return s.MedianMonthly
	case model.SeriesMetricAdditions:
		return number(s.Additions)
	case model.SeriesMetricRetirements:
		return number(s.Retirements)
	}
	return nil
}

func (queryResolver) Movers(
	ctx context.Context, metric model.MoverMetric, from string, to *string,
	direction *model.MoverDirection, filter *model.ToolFilter, first int,
) ([]*model.Mover, error) {
	if err := cmp.Or(params.CheckRange("first", first, 1, document.MaxPageSize), checkDays(from, orZero(to))); err != nil {
		return nil, err
	}
	condition, err := conditionsOverTime(filter)
	if err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	start, end := r.release.Between(from, orZero(to))
	if start >= end {
		return nil, nil
	}
	value := func(t *release.Tool) float64 { return t.Score }
	if metric == model.MoverMetricPrice {
		value = func(t *release.Tool) float64 { return t.MonthlyPrice }
	}
	var movers []*model.Mover
	for _, m := range r.release.Movers(start, end, value, condition) {
		if direction == nil || (*direction == model.MoverDirectionUp) == (m.After > m.Before) {
			movers = append(movers, &model.Mover{
				Slug: m.Slug, Before: m.Before, After: m.After,
				Change: m.Change, Percent: pricing.Percent(m.Before, m.After),
			})
		}
	}
	movers = movers[:min(first, len(movers))]
	s := selected(ctx)
	if !s.has("tool") {
		return movers, nil
	}
	slugs := mapSlice(movers, func(m *model.Mover) string { return m.Slug })
	tools, err := r.comparedTools(ctx, existing(slugs, r.release.Tool), s.of("tool"))
	for _, m := range movers {
		m.Tool = tools[r.release.Tool(m.Slug)]
	}
	return movers, err
}
