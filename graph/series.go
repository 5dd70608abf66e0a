package graph

import (
	"cmp"
	"context"
	"slices"
	"time"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const (
	maxYears  = 100 // between the first and the last day
	maxChange = 1e9 // far above any difference
)

func (queryResolver) Series(
	ctx context.Context, metrics []model.SeriesMetric, by model.SeriesKey, every model.SeriesInterval,
	from, to *string, filter *model.ToolFilter, includeFirstImport bool,
) ([]*model.Series, error) {
	if len(metrics) == 0 {
		return nil, problem.New(problem.BadInput, "metrics must not be empty.")
	}
	described := make([]release.Metric, len(metrics))
	for i, metric := range metrics {
		if slices.Contains(metrics[:i], metric) {
			return nil, problem.New(problem.BadInput,
				"metrics must not contain duplicates (got %s more than once).", metric)
		}
		described[i], _ = release.MetricNamed(string(metric)) // checkFields found all of them
	}
	condition, err := conditionsOverTime(filter, func(*model.ToolFilter) (release.Filter, error) {
		return nil, problem.New(problem.BadInput, "filter.priceIncreases is not supported here. "+
			"Use movers, or list the tools with tools and pass their slugs to filter.slugs.")
	})
	if err := cmp.Or(err, checkDays(orZero(from), orZero(to))); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	if r.Partial() {
		return nil, release.ErrPartial
	}
	points, err := release.Points(r.Readable(), string(every), orZero(from), orZero(to))
	if err != nil {
		return nil, problem.New(problem.BadInput,
			"The series would have more than %d points. "+
				"Use a longer interval, or limit it with from and to.", release.MaxPoints)
	}
	keyOf := func(*release.Tool) string { return "" }
	if by != model.SeriesKeyNone {
		keyOf = release.Key(string(by))
	}
	found := r.Series(points, described, keyOf, condition, includeFirstImport)
	return model.Map(found, func(s release.Series) *model.Series {
		series := &model.Series{Metric: metrics[s.Metric]}
		if by != model.SeriesKeyNone {
			series.Key = &s.Key
		}
		for i, p := range points {
			series.Points = append(series.Points, &model.SeriesPoint{
				Period: p.Name, Start: p.Start, End: p.End, Release: p.Release, Value: s.Values[i],
			})
		}
		return series
	}), nil
}

// conditionsOverTime converts a filter to conditions on tools of earlier releases. Their
// text is not in memory, so it cannot be searched.
func conditionsOverTime(
	filter *model.ToolFilter, priceIncreases func(*model.ToolFilter) (release.Filter, error),
) (release.Filter, error) {
	return filter.Conditions(func(f *model.ToolFilter) (release.Filter, error) {
		switch {
		case f.Search != nil:
			return nil, problem.New(problem.BadInput,
				"filter.search is not supported here. Search a release with @asOf instead.")
		case f.PriceIncreases != nil:
			return priceIncreases(f)
		}
		return nil, nil
	})
}

// checkDays rejects days that are not in order or too far apart; both may be
// empty.
func checkDays(from, to string) error {
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

func (queryResolver) Movers(
	ctx context.Context, metric model.MoverMetric, from string, to *string,
	direction *model.MoverDirection, filter *model.ToolFilter, minChange *float64, first int,
) ([]*model.Mover, error) {
	if err := cmp.Or(params.CheckRange("first", first, 1, document.MaxPageSize), checkDays(from, orZero(to))); err != nil {
		return nil, err
	}
	if orZero(minChange) < 0 || orZero(minChange) > maxChange {
		return nil, problem.New(problem.BadInput,
			"minChange must be a number from 0 to %d (got %v).", int(maxChange), *minChange)
	}
	r := readerFrom(ctx)
	condition, err := conditionsOverTime(filter, r.increased)
	if err != nil {
		return nil, err
	}
	if r.Partial() {
		return nil, release.ErrPartial
	}
	start, end := r.Between(from, orZero(to))
	if start >= end {
		return nil, nil
	}
	found := slices.DeleteFunc(r.Movers(start, end, string(metric), orZero(minChange), condition),
		func(m release.Mover) bool {
			return direction != nil && (*direction == model.MoverDirectionUp) != (m.After > m.Before)
		})
	movers := model.Map(found[:min(first, len(found))], func(m release.Mover) *model.Mover {
		return &model.Mover{Slug: m.Slug, Before: m.Before, After: m.After, Change: m.Change, Percent: m.Percent}
	})
	addTools(r, movers, func(m *model.Mover) (string, *model.ComparedTool) { return m.Slug, &m.Tool })
	return movers, nil
}
