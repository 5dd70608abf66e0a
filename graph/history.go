package graph

import (
	"context"

	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// History returns how the price and the score of a tool changed.
func (activeResolver) History(ctx context.Context, t *model.Tool) ([]*model.ToolMoment, error) {
	r := readerFrom(ctx)
	scores, err := model.Once(t.Siblings, "history", func() (map[string][]release.ScoreChange, error) {
		changes, err := r.journalOf(slugsOf(t.Siblings.Items)...).ScoreChanges(ctx)
		scores := map[string][]release.ScoreChange{}
		for _, c := range changes {
			scores[c.Slug] = append(scores[c.Slug], release.ScoreChange{Day: c.Day, Score: c.Score})
		}
		return scores, err
	})
	moments := r.Moments(t.Tool, scores[t.Slug], document.MaxPageSize)
	return model.Map(moments, func(m release.Moment) *model.ToolMoment {
		return &model.ToolMoment{At: m.At, Pricing: model.Pricing(m.Pricing), Price: m.Price, Score: m.Score}
	}), err
}
