package graph

import (
	"context"
	"errors"

	"palmares/graph/model"
)

var errUnfinished = errors.New("unfinished")

// node.go
func (queryResolver) Node(context.Context, string) (model.Node, error)      { return nil, errUnfinished }
func (queryResolver) Nodes(context.Context, []string) ([]model.Node, error) { return nil, errUnfinished }

// nested connections
func (retiredToolResolver) ComparisonConnection(context.Context, *model.RetiredTool, *int, *string, *int, *string) (*model.ComparisonConnection, error) {
	return nil, errUnfinished
}
func (retiredToolResolver) Changes(context.Context, *model.RetiredTool, []model.ChangeType, *int, *string, *int, *string) (*model.ChangeConnection, error) {
	return nil, errUnfinished
}
func (toolResolver) ComparisonConnection(context.Context, *model.Tool, *int, *string, *int, *string) (*model.ComparisonConnection, error) {
	return nil, errUnfinished
}
func (toolResolver) Changes(context.Context, *model.Tool, []model.ChangeType, *int, *string, *int, *string) (*model.ChangeConnection, error) {
	return nil, errUnfinished
}
func (categoryResolver) ToolConnection(context.Context, *model.Category, model.ToolSort, *int, *string, *int, *string) (*model.ToolConnection, error) {
	return nil, errUnfinished
}

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
