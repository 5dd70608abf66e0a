package graph

import (
	"context"
	"errors"

	"palmares/graph/model"
)

var errUnfinished = errors.New("unfinished")

// node.go
func (queryResolver) Node(context.Context, string) (model.Node, error) { return nil, errUnfinished }
func (queryResolver) Nodes(context.Context, []string) ([]model.Node, error) {
	return nil, errUnfinished
}

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
