package graph

import (
	"cmp"
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

// AddedAt returns the date of the release that first had a tool.
func (linksResolver[T]) AddedAt(ctx context.Context, t T) (string, error) {
	r := readerFrom(ctx)
	own := t.InCatalog()
	added, err := model.Once(own.Siblings, "addedAt", func() (map[string]int, error) {
		return r.journalOf(slugsOf(own.Siblings.Items)...).FirstReleases(ctx)
	})
	if err != nil {
		return "", err
	}
	return r.Numbered(cmp.Or(added[own.Slug], own.Since)).FeedDate, nil
}

// LifetimeDays returns how many days a retired tool was in the catalog before.
func (retired retiredResolver) LifetimeDays(ctx context.Context, t *model.RetiredTool) (*int, error) {
	added, err := retired.AddedAt(ctx, t)
	if err != nil || added > t.RetiredAt {
		return nil, err
	}
	days := release.DaysBetween(added, t.RetiredAt)
	return &days, nil
}

// Rank returns the rank of a tool by score.
func (activeResolver) Rank(ctx context.Context, t *model.Tool, in model.RankScope) (*model.ToolRank, error) {
	r, inCategory := readerFrom(ctx), in == model.RankScopeCategory
	rank := r.Rank(t.CatalogTool.Tool, inCategory)
	if rank.Position == 0 {
		return nil, nil
	}
	found := &model.ToolRank{Position: rank.Position, Of: rank.Of}
	if selects(ctx, "previous") {
		if r.Partial() {
			return nil, release.ErrPartial
		}
		if previous := r.PreviousRank(t.CatalogTool.Tool, inCategory); previous.Position > 0 {
			found.Previous = &previous.Position
		}
	}
	return found, nil
}
