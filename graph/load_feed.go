package graph

import "palmares/graph/model"

func (r *reading) feed() *model.Feed {
	feed := &model.Feed{Credit: r.executor.credit}
	if r.release != nil {
		feed.Release, feed.UpdatedAt = r.release.ID, &r.release.FeedDate
	}
	return feed
}

// stats are kept with the release, ready to tell.
func (r *reading) stats() *model.Statistics {
	if r.release == nil {
		return &model.Statistics{}
	}
	return &model.Statistics{
		ToolsTotal: r.release.ToolsTotal, ToolsTested: r.release.ToolsTested,
		ToolsAvgScore: r.release.ToolsAvgScore, ToolsAvgScoreOrZero: orZero(r.release.ToolsAvgScore),
		ToolsRetired: r.release.ToolsRetired, ComparisonsTotal: r.release.ComparisonsTotal,
	}
}
