package graph

import (
	"context"

	"palmares/graph/generated"
	"palmares/graph/model"
)

// Resolver returns the resolvers of each type. They hold no state: each takes
// the reader of its operation from the context, so that all fields of an
// operation see the same release.
type Resolver struct{}

type (
	queryResolver        struct{}
	subscriptionResolver struct{}
	toolResolver         struct{}
	retiredToolResolver  struct{}
	categoryResolver     struct{}
)

func (Resolver) Query() generated.QueryResolver               { return queryResolver{} }
func (Resolver) Subscription() generated.SubscriptionResolver { return subscriptionResolver{} }
func (Resolver) Tool() generated.ToolResolver                 { return toolResolver{} }
func (Resolver) RetiredTool() generated.RetiredToolResolver   { return retiredToolResolver{} }
func (Resolver) Category() generated.CategoryResolver         { return categoryResolver{} }

func (queryResolver) Feed(ctx context.Context) (*model.Feed, error) {
	r := readerFrom(ctx)
	feed := &model.Feed{Credit: r.executor.config.Credit}
	if r.release != nil {
		feed.Release, feed.UpdatedAt = r.release.ID, &r.release.FeedDate
	}
	return feed, nil
}

func (queryResolver) Stats(ctx context.Context) (*model.Statistics, error) {
	release := readerFrom(ctx).release
	if release == nil {
		return &model.Statistics{}, nil
	}
	return &model.Statistics{
		ToolsTotal: release.ToolsTotal, ToolsTested: release.ToolsTested,
		ToolsAvgScore: release.ToolsAvgScore, ToolsAvgScoreOrZero: orZero(release.ToolsAvgScore),
		ToolsRetired: release.ToolsRetired, ComparisonsTotal: release.ComparisonsTotal,
	}, nil
}

func orZero(value *float64) float64 {
	if value == nil {
		return 0
	}
	return *value
}
