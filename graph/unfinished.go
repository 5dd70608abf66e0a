package graph

import (
	"context"
	"errors"

	"palmares/graph/model"
)

var errUnfinished = errors.New("unfinished")

// groups and series
func (queryResolver) ComparisonGroups(context.Context, model.ComparisonGroupKey, *string, *string, *string, *string, *string, model.ComparisonGroupSort, int) ([]*model.ComparisonGroup, error) {
	return nil, errUnfinished
}
func (queryResolver) RetirementGroups(context.Context, []model.RetirementGroupKey, *model.Period, *string, *string) ([]*model.RetirementGroup, error) {
	return nil, errUnfinished
}
func (queryResolver) Series(context.Context, []model.SeriesMetric, model.SeriesKey, model.SeriesInterval, *string, *string, *model.ToolFilter) ([]*model.Series, error) {
	return nil, errUnfinished
}
func (queryResolver) Movers(context.Context, model.MoverMetric, string, *string, *model.MoverDirection, *model.ToolFilter, int) ([]*model.Mover, error) {
	return nil, errUnfinished
}
