package graph

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/pricechange"
	"palmares/graph/model"
)

func (r *reading) fillPriceHistory(ctx context.Context, tools []*model.Tool) error {
	bySlug := make(map[string]*model.Tool, len(tools))
	for _, t := range tools {
		bySlug[t.Slug] = t
	}
	slugs := mapped(tools, func(t *model.Tool) string { return t.Slug })
	rows, err := r.client.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).
		Order(pricechange.ByChangedAt(entsql.OrderDesc()), pricechange.ByID(entsql.OrderDesc())).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		t := bySlug[row.ToolSlug]
		t.PriceHistory = append(t.PriceHistory, priceChangeModel(row))
	}
	return nil
}

func priceChangeModel(row *ent.PriceChange) *model.PriceChange {
	return &model.PriceChange{
		ChangedAt: row.ChangedAt, Pricing: model.Pricing(row.Pricing), Price: row.Price,
		PreviousPricing: model.Pricing(row.PreviousPricing), PreviousPrice: row.PreviousPrice,
	}
}
